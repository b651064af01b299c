"""Laws of mined text: the pairs above the threshold, in order, or the number of the spoilt line."""

import gzip

import pytest

from ems.corpora.wikimatrix import count_mined, read_mined
from ems.errors import EmsError

LINES = ["1.25\tHallo\tHello", "1.0750\tZwei\tTwo", "1.0749\tDrei\tThree", "1.04\tVier\tFour"]


def mined(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content))
    return path


def test_pairs_of_the_threshold_or_better_come_in_the_files_order(tmp_path):
    path = mined(tmp_path / "x.tsv.gz", LINES)
    assert list(read_mined(path)) == [("Hallo", "Hello"), ("Zwei", "Two")]
    assert count_mined(path) == 2
    assert list(read_mined(path, 1.04))[2:] == [("Drei", "Three"), ("Vier", "Four")]
    assert [count_mined(path, threshold) for threshold in (1.2, 1.0749, 0)] == [1, 3, 4]


def test_nothing_relies_on_the_best_standing_first(tmp_path):
    path = mined(tmp_path / "x.tsv.gz", LINES[::-1])
    assert list(read_mined(path)) == [("Zwei", "Two"), ("Hallo", "Hello")]


def test_a_threshold_that_nothing_reaches_is_an_error_that_names_it(tmp_path):
    with pytest.raises(EmsError, match=r"x\.tsv\.gz: no pair in it has a score of 2 or more"):
        count_mined(mined(tmp_path / "x.tsv.gz", LINES), 2.0)


@pytest.mark.parametrize("breaker", ["\u2028", "\r", "\x85", "\x0c"])
def test_only_a_line_feed_ends_a_line_and_only_a_tab_a_column(tmp_path, breaker):
    path = mined(tmp_path / "x.tsv.gz", [f"1.2\ta{breaker}b c\td{breaker}e\r", "1.1\t\tf"])
    assert list(read_mined(path)) == [(f"a{breaker}b c", f"d{breaker}e"), ("", "f")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("1.2\tonly one", "has 2 columns"),
        ("1.2\ta\tb\tc", "has 4 columns"),
        ("", "has 1 columns"),
        ("high\ta\tb", "begins with 'high', expected a score"),
        ("nan\ta\tb", "begins with 'nan', expected a score"),
        ("\ta\tb", "begins with '', expected a score"),
    ],
)
def test_a_spoilt_line_is_an_error_with_its_number_even_below_the_threshold(
    tmp_path, line, expected
):
    path = mined(tmp_path / "x.tsv.gz", [*LINES, line])
    with pytest.raises(EmsError, match=rf"x\.tsv\.gz: line 5 {expected}"):
        count_mined(path)


def test_text_that_is_not_utf8_is_an_error_with_its_line(tmp_path):
    (tmp_path / "x.tsv.gz").write_bytes(gzip.compress(b"1.2\ta\tb\n1.1\t\xff\tb\n"))
    with pytest.raises(EmsError, match=r"x\.tsv\.gz: line 2 is not UTF-8"):
        list(read_mined(tmp_path / "x.tsv.gz"))


def test_a_file_cut_anywhere_is_an_error_and_never_a_shorter_corpus(tmp_path):
    content = mined(tmp_path / "x.tsv.gz", LINES * 100).read_bytes()
    for size in range(0, len(content), 7):
        (tmp_path / "cut.tsv.gz").write_bytes(content[:size])
        with pytest.raises(EmsError, match=r"cut\.tsv\.gz"):
            count_mined(tmp_path / "cut.tsv.gz")


def test_a_bomb_or_a_line_without_end_is_an_error(tmp_path):
    for content in (b"1.2\ta\tb\n" * (3 << 20), b"1.2\t" + b"a" * (17 << 20)):
        (tmp_path / "x.tsv.gz").write_bytes(gzip.compress(content))
        with pytest.raises(EmsError, match=r"unpacks to more than|is longer than"):
            count_mined(tmp_path / "x.tsv.gz")
