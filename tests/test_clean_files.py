"""Laws of a language pair's files: all of them are read, in order, each in its own form."""

from dataclasses import replace

import pytest
from made.corpora import write_mined, write_zip
from made.text import cleaned as clean
from made.text import tiny

from ems.base.errors import EmsError
from ems.config.corpus_entries import Split
from ems.config.experiment import Corpus
from ems.text.evalkeys import write_keys

PAIR = "en-zh"


def texts(file, count):
    """`count` sentence pairs of a file, {code: text} each."""
    first, second = file.split("-")
    return [{code: f"{file} {code} {at}" for code in (first, second)} for at in range(count)]


class Cleaned:
    """What is left of the files of one corpus, each with so many pairs."""

    def __init__(self, folder, files, split=None, **settings):
        corpus = Corpus("C", "v1", "x", True, (PAIR,), None, variants={PAIR: (*files,)})
        splits = {"C": split} if split else {}
        self.experiment = tiny(
            replace(corpus, **settings), decontaminate={"against": []}, splits=splits
        )
        self.folder, self.files = folder, files
        write_keys({}, folder / "keys.tsv")

    def run(self, *archives):
        return clean(self.experiment, archives, self.folder / "keys.tsv", PAIR)

    def zips(self):
        return [write_zip(self.folder, "C", "v1", f, texts(f, n)) for f, n in self.files.items()]


def test_the_files_of_a_pair_follow_each_other_and_every_line_is_numbered(tmp_path):
    cleaned = Cleaned(tmp_path, {"en-zh_cn": 3, "en-zh_tw": 2})
    lines, entry = cleaned.run(*cleaned.zips())
    places = [("cn", 0), ("cn", 1), ("cn", 2), ("tw", 0), ("tw", 1)]
    assert lines == [
        [f"en-zh_{to} en {at}", f"en-zh_{to} zh_{to} {at}", str(line)]
        for line, (to, at) in enumerate(places, start=1)
    ]
    assert entry["files"] == {"en-zh_cn": 3, "en-zh_tw": 2}
    assert entry["archives"] == {f: f"C/v1/moses/{f}.txt.zip" for f in ("en-zh_cn", "en-zh_tw")}
    assert entry["threshold"] is None
    assert entry["read"] == entry["kept"] == 5


def test_a_code_that_stands_before_english_changes_the_sides_of_the_file_alone(tmp_path):
    cleaned = Cleaned(tmp_path, {"cmn-en": 1, "en-zh": 1}, turned=frozenset({"cmn-en"}))
    lines, _ = cleaned.run(*cleaned.zips())
    assert lines == [["cmn-en en 0", "cmn-en cmn 0", "1"], ["en-zh en 0", "en-zh zh 0", "2"]]


def test_a_cap_holds_for_each_file(tmp_path):
    cleaned = Cleaned(tmp_path, {"en-zh_cn": 9, "en-zh_tw": 4, "en-zh": 2}, max_pairs={"zh": 4})
    lines, entry = cleaned.run(*cleaned.zips())
    assert [sum(line[0].startswith(f"{f} ") for line in lines) for f in cleaned.files] == [4, 4, 2]
    assert (entry["read"], entry["removed"]["cap"], entry["kept"]) == (15, 5, 10)


FIRST = Split(first={"validation": 3}, rest="train")


TWO = {"en-zh_cn": 5, "en-zh_tw": 2}


@pytest.mark.parametrize(
    ("files", "part", "numbers"),
    [(TWO, "validation", [1, 2, 3, 6, 7]), (TWO, "train", [4, 5]), ({"en-zh": 3}, "train", [])],
)
def test_the_first_lines_of_each_file_are_one_part_and_the_others_the_rest(
    tmp_path, files, part, numbers
):
    cleaned = Cleaned(tmp_path, files, FIRST, part=part)
    lines, entry = cleaned.run(*cleaned.zips())
    assert [int(line[2]) for line in lines] == numbers
    assert entry["read"] == entry["kept"] == len(numbers)


@pytest.mark.parametrize(("threshold", "kept"), [(1.075, 2), (1.0, 3), (1.5, 0)])
def test_of_mined_pairs_those_with_the_score_are_read(tmp_path, threshold, kept):
    cleaned = Cleaned(tmp_path, {PAIR: 3}, threshold=threshold)
    path = write_mined(tmp_path, PAIR, texts(PAIR, 3), [1.2, 1.075, 1.01])
    lines, entry = cleaned.run(path)
    assert [int(line[2]) for line in lines] == list(range(1, kept + 1))
    assert (entry["read"], entry["files"]) == (kept, {PAIR: kept})
    assert entry["archives"] == {PAIR: "C/v1/mined/WikiMatrix.en-zh.tsv.gz"}
    assert entry["threshold"] == threshold


def test_all_files_of_a_pair_must_be_given(tmp_path):
    cleaned = Cleaned(tmp_path, {"en-zh_cn": 1, "en-zh_tw": 1})
    with pytest.raises(EmsError, match=r"expected the archives of en-zh_cn, en-zh_tw, found .*cn"):
        cleaned.run(cleaned.zips()[0])


@pytest.mark.parametrize(("name", "own"), [("C", False), ("UNPC", True), ("UNPC", False)])
def test_nothing_left_is_an_error_but_of_a_file_of_opus(tmp_path, caplog, name, own):
    """One of Tatoeba's may be all benchmark; of a corpus of one's own it is a mistake."""
    cleaned = Cleaned(tmp_path, {PAIR: 2}, own=own, name=name, version="v1.0")
    path = write_zip(tmp_path, name, "v1.0", PAIR, [{"en": "", "zh": "x"}] * 2)
    if (name, own) == ("UNPC", False):
        caplog.set_level("WARNING", "ems")
        assert cleaned.run(path)[1]["removed"]["one_empty"] == 2
        assert "cleaning removed all 2 pairs" in caplog.text
    else:
        with pytest.raises(EmsError, match="cleaning removed all 2 pairs"):
            cleaned.run(path)
