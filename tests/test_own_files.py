"""Laws of text of one's own: each form gives the same pairs, and what is no pair is counted."""

import gzip
import json
import logging
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from made.corpora import FORMS, packed, write_form
from made.text import cleaned, tiny

from ems.base.errors import EmsError
from ems.config.experiment import Corpus
from ems.corpora.content import lock_of
from ems.corpora.own import LONGEST_ROW, count_own, own_files, read_own
from ems.text.evalkeys import write_keys

ROWS = [("Guten Tag", "Bonjour"), ("Zwei „Wörter“", "deux « mots »"), ("Ja\u2028nein", "oui")]


def corpus(files, pair="de-fr", **more):
    paths = {pair: (files,) if isinstance(files, str) else tuple(files)}
    return Corpus("Mine", "own", "", True, (pair,), None, paths=paths, **more)


def clean(folder, own, pair="de-fr", **changes):
    """(lines, report) of the cleaning stage."""
    keys = folder / "keys.tsv"
    write_keys({}, keys)
    experiment = tiny(own, decontaminate={"against": []}, **changes)
    return cleaned(experiment, own_files(own, pair), keys, pair)


@pytest.mark.parametrize(
    ("form", "suffix"),
    [
        *((form, "") for form in FORMS),
        *product(("tsv", "two", "jsonl"), (".gz", ".bz2", ".xz", ".zst")),
    ],
)
def test_every_form_gives_the_same_rows(tmp_path, form, suffix):
    own = corpus(write_form(tmp_path, form, ("de", "fr"), ROWS, suffix))
    files = own_files(own, "de-fr")
    assert count_own(files) == len(ROWS)
    assert list(read_own(files, ("de", "fr"))) == ROWS


@pytest.mark.parametrize("form", FORMS)
def test_the_key_says_which_language_comes_first(tmp_path, form):
    turned = [(second, first) for first, second in ROWS]
    place = write_form(tmp_path, form, ("fr", "de"), turned)
    own = corpus(place, variants={"de-fr": ("fr-de",)}, turned=frozenset({"fr-de"}))
    lines, report = clean(tmp_path, own)
    assert [line[:2] for line in lines] == [[a.replace("\u2028", " "), b] for a, b in ROWS]
    assert report["kept"] == len(ROWS)


BAD = [
    (b"one column\n", "malformed"),
    (b"three\tcolumns\there\n", "malformed"),
    (b"\n", "malformed"),
    (b"\tno first\n", "one_empty"),
    (b"no second\t \n", "one_empty"),
    (b"\t\n", "both_empty"),
    (b"a NUL\0\there\n", "nul"),
    (b"latin \xe4\there\n", "undecodable"),
    (b"x" * LONGEST_ROW + b"\ttoo long\n", "too_long"),
    (b"y" * 3 * LONGEST_ROW + b"\tfar too long\n", "too_long"),
]
GOOD = b"".join(b"gut %d\tbon %d\n" % (at, at) for at in range(20))


def test_bad_rows_are_counted_by_reason_with_examples_in_the_log(tmp_path, caplog):
    path = tmp_path / "mine.tsv"
    path.write_bytes(b"".join(row for row, _ in BAD) + GOOD)
    with caplog.at_level(logging.INFO, "ems"):
        lines, report = clean(tmp_path, corpus(str(path)))
    reasons = [reason for _, reason in BAD]
    assert {reason: n for reason, n in report["removed"].items() if n} == {
        reason: reasons.count(reason) for reason in reasons
    }
    assert report["read"] == len(BAD) + 20 == report["kept"] + len(BAD)
    assert [line[2] for line in lines] == [str(at) for at in range(11, 31)]
    for reason, example in (("malformed", "line 1: 'one column'"), ("undecodable", "latin")):
        assert any(f"removed as {reason}: " in line and example in line for line in caplog.messages)
    assert not any(len(line) > 2000 for line in caplog.messages)


def test_three_examples_of_a_reason_are_shown_and_no_more(tmp_path, caplog):
    path = tmp_path / "mine.tsv"
    path.write_bytes(b"".join(b"alone %d\n" % at for at in range(9)) + GOOD)
    with caplog.at_level(logging.INFO, "ems"):
        clean(tmp_path, corpus(str(path)))
    (line,) = [line for line in caplog.messages if "removed as malformed" in line]
    assert [f"alone {at}" in line for at in range(4)] == [True, True, True, False]


@pytest.mark.parametrize(
    "line",
    [b"{", b"[]", b'{"de": "a"}', b'{"de": "a", "fr": 3}', b'{"translation": {"de": "a"}}', b"3"],
)
def test_a_json_row_without_both_texts_is_malformed(tmp_path, line):
    path = tmp_path / "mine.jsonl"
    good = json.dumps({"de": "gut", "fr": "bon", "more": [1]}).encode()
    path.write_bytes(b"\n".join([b"\xef\xbb\xbf" + good, line, good]))
    _, report = clean(tmp_path, corpus(str(path)))
    assert (report["removed"]["malformed"], report["kept"]) == (1, 2)


def test_half_a_character_and_null_in_json_are_counted(tmp_path):
    path = tmp_path / "mine.jsonl"
    good = b'{"de": "gut", "fr": "bon"}\n'
    path.write_bytes(b'{"de": "\\ud800", "fr": "b"}\n{"de": null, "fr": "b"}\n' + 3 * good)
    _, report = clean(tmp_path, corpus(str(path)))
    assert (report["removed"]["undecodable"], report["removed"]["one_empty"]) == (1, 1)


def test_a_file_of_another_form_is_one_error(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_bytes(b"gut;bon\n" * 9 + GOOD[:20])
    with pytest.raises(EmsError, match=r"rows are no pairs.*like line 1: 'gut;bon'; expected two"):
        clean(tmp_path, corpus(str(path)))
    assert not (tmp_path / "out.tsv").exists()


def test_two_files_of_unequal_lines_are_an_error(tmp_path):
    paths = write_form(tmp_path, "two", ("de", "fr"), ROWS)
    Path(paths[1]).write_text("one line\n")
    with pytest.raises(EmsError, match=r"mine.de has 3 lines, but .*mine.fr has 1; line n of one"):
        clean(tmp_path, corpus(paths))


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_a_file_that_is_cut_short_is_an_error_and_leaves_nothing(tmp_path, suffix):
    path = tmp_path / f"mine.tsv{suffix}"
    noise = b"".join(b"%x\t%x\n" % (hash((at, 1)), hash((at, 2))) for at in range(5000))
    whole = packed(noise, suffix)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(EmsError, match=r"mine.tsv\S+: damaged or cut short"):
        clean(tmp_path, corpus(str(path)))
    assert not list(tmp_path.glob("*out*"))


def test_a_checksum_is_recorded_and_a_lock_beside_the_file_is_checked(tmp_path):
    own = corpus(write_form(tmp_path, "tsv", ("de", "fr"), ROWS, ".gz"))
    (path,) = own_files(own, "de-fr")
    _, report = clean(tmp_path, own)
    (sha256,) = report["sha256"].values()
    lock = {"url": str(path), "bytes": path.stat().st_size, "sha256": sha256}
    lock_of(path).write_text(json.dumps(lock))
    assert clean(tmp_path, own)[1]["sha256"] == {str(path): sha256}
    path.write_bytes(gzip.compress(b"ein\tautre\n"))
    with pytest.raises(EmsError, match="its sha256 is not the one in"):
        clean(tmp_path, own)


@pytest.mark.parametrize("change", ["unlink", "grow"])
def test_a_file_that_goes_or_grows_meanwhile_is_an_error(tmp_path, change, monkeypatch):
    path = tmp_path / "mine.tsv"
    path.write_bytes(GOOD)

    def meanwhile(*args):
        path.unlink() if change == "unlink" else path.write_bytes(GOOD + GOOD)

    monkeypatch.setattr("ems.text.clean._check_may_be_empty", meanwhile)
    monkeypatch.setattr("ems.text.clean.check_form", meanwhile)
    with pytest.raises(EmsError, match=r"restore this file|changed while it was being read"):
        clean(tmp_path, corpus(str(path)))
    assert not list(tmp_path.glob("*out*"))


def test_a_cap_draws_from_the_rows_of_the_file(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_bytes(GOOD)
    own = Corpus("Mine", "own", "", True, ("de-fr",), 5, paths={"de-fr": (str(path),)})
    _, report = clean(tmp_path, own)
    assert (report["read"], report["kept"], report["removed"]["cap"]) == (20, 5, 15)


STREAM = """
import resource, sys
from pathlib import Path
from ems.corpora.own import count_own, read_own
path = Path(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows = sum(1 for _ in read_own([path], ("de", "fr")))
assert rows == count_own([path]), rows
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_memory_does_not_grow_with_the_file(tmp_path, suffix):
    path = tmp_path / f"mine.tsv{suffix}"
    line = b"x" * 900 + b"\t" + b"y" * 900 + b"\n"
    path.write_bytes(packed(line * 40_000 + b"z" * 60_000_000, suffix))  # and one line of 60 MB
    run = [sys.executable, "-c", STREAM, str(path)]
    grown = int(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
    assert grown < 40_000  # KB; the file has 132 MB
