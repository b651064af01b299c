"""Readers of evaluation sets: published formats, documents, malformed files by line."""

import ast
import itertools
import json

import pytest
from conftest import SHARED, needs
from made import evalsets as made
from made import golden
from made.corpora import write_lines, write_opus
from made.experiments import MINIMAL, Settings, one_line

from ems.base.errors import EmsError
from ems.config.plugins import module
from ems.corpora.evalsets.formats import Document, parts, sentences
from ems.corpora.evalsets.sets import data_files, read_bitext, read_sides

NAMES = ("bucc2018", "cls", "flores200", "marc", "mldoc", "paracrawl", "pawsx", "rcv2", "sib200")
bucc2018, cls, flores200, marc, mldoc, paracrawl, pawsx, rcv2, sib200 = (
    module(name, "data") for name in NAMES
)
tatoeba, xnli, xsimpp = (module(name, "data") for name in ("tatoeba", "xnli", "xsimpp"))
wmt24pp = module("wmt24pp", "data")


@pytest.fixture
def folder(tmp_path):
    return made.write_sets(tmp_path)


def flat(sides):
    return [sentence for side in sides for sentence in side]


# --- each set
@pytest.mark.parametrize("name", ["tatoeba", "ntrex"])
def test_an_experiment_reads_both_sides_of_a_set_of_translations(folder, tmp_path, name):
    entries = {each: {"version": "v1", "languages": ["de"]} for each in ("tatoeba", name)}
    experiment = Settings(tmp_path / "settings", MINIMAL | {"evalsets": entries}).load()
    items = [{"de": "eins", "fr": "un", "en": "one"}]  # in de-en and en-fr
    place = write_opus(tmp_path, "NTREX", "v1", items) if name == "ntrex" else folder / name
    (code,) = experiment.evalsets[name].languages
    expected = [["a\u2028b", "c"], ["d", "e"]] if name == "tatoeba" else [["eins"], ["one"]]
    assert [list(side) for side in read_sides(experiment, name, place, code)] == expected
    assert [list(side) for side in read_bitext(experiment, name, place, code)] == expected
    files = data_files(experiment, name, place)
    assert files
    assert all(path.is_file() for path in files)
    if name == "ntrex":
        assert read_bitext(experiment, name, place, "fr") == [["un"], ["one"]]


def test_cr_before_lf_is_dropped_and_a_last_line_needs_no_lf(tmp_path):
    content = (b"a\nc\r\n", b"d\ne")
    made.write_files(tmp_path, dict(zip(tatoeba.file_names("deu"), content, strict=True)))
    assert tatoeba.read_language(tmp_path, "deu") == (["a", "c"], ["d", "e"])


READ = {  # a part of each set: how it is read
    "bucc2018 de training": lambda f: bucc2018.read_part(f, "de", "training"),
    "cls jp dvd test": lambda f: cls.read_split(f, "jp", "dvd", "test"),
    "marc de dev": lambda f: marc.read_split(f, "de", "dev"),
    "mldoc german dev": lambda f: mldoc.read_split(f, "german", "dev"),
    "mldoc german train.1000": lambda f: mldoc.read_split(f, "german", "train.1000"),
    "mldoc english test": lambda f: mldoc.read_split(f, "english", "test"),
    "pawsx de dev": lambda f: pawsx.read_split(f, "de", "dev"),
    "rcv2 german": lambda f: rcv2.read_titles(f, "german"),
    "sib200 deu_Latn test": lambda f: sib200.read_split(f / "deu_Latn" / "test.tsv"),
    "xnli de dev": lambda f: xnli.read_split(f, "de", "dev"),
    "xnli train": lambda f: xnli.read_train(f),
    "xsimpp": lambda f: xsimpp.read_negatives(f),
    "wmt24pp de": lambda f: wmt24pp.read_language(f, "de"),
    "wmt24pp en": lambda f: wmt24pp.read_language(f, "en"),
}
SIDES = ["bucc2018 de", "cls jp", "flores200 deu_Latn", "marc de", "mldoc german", "pawsx de"]
SIDES += ["rcv2 german", "sib200 deu_Latn", "tatoeba deu", "xnli de", "xsimpp eng_Latn"]
SIDES += ["wmt24pp de", "wmt24pp en"]


def blocks_of(folder, name):
    """What is read of a set, and its evaluation sentences, under a title each."""
    for key in READ:
        if key.split()[0] == name:
            yield "\n".join([f"# read {key}", *map(repr, READ[key](folder / name))])
    for key in SIDES:
        if key.split()[0] == name:
            sides = module(name, "data").read_sides(folder / name, key.split()[1])
            yield "\n".join([f"# evaluated {key}", *map(repr, flat(sides))])


def test_each_set_is_read_as_published_and_training_text_is_no_evaluation_sentence(folder):
    names = sorted({key.split()[0] for key in [*READ, *SIDES]})
    blocks = [block for name in names for block in blocks_of(folder, name)]
    golden.check("evalsets.txt", "\n\n".join(blocks) + "\n")


def test_xnli_reads_the_same_from_its_json(folder):
    before = {code: flat(xnli.read_sides(folder / "xnli", code)) for code in made.XNLI_CODES}
    for split in ("dev", "test"):
        path = folder / "xnli" / "XNLI-1.0" / f"xnli.{split}.tsv"
        header, *rows = (line.split("\t") for line in path.read_text().splitlines())
        objects = [json.dumps(dict(zip(header, row, strict=True))) for row in rows]
        write_lines(path.with_suffix(".jsonl"), objects)
        path.unlink()
    after = {code: flat(xnli.read_sides(folder / "xnli", code)) for code in made.XNLI_CODES}
    assert before == after


def test_pawsx_is_read_in_the_layout_of_xtreme_too(folder):
    flat_layout = folder / "xtreme"  # with labels or without
    write_lines(flat_layout / "dev-de.tsv", ["a\tb\t1", "NS\tc\t0"])
    write_lines(flat_layout / "test-de.tsv", ["d\te"])
    assert pawsx.read_split(flat_layout, "de", "dev") == [pawsx.Paraphrase("a", "b", "1")]
    assert pawsx.read_split(flat_layout, "de", "test") == [pawsx.Paraphrase("d", "e", "")]
    assert flat(pawsx.read_sides(flat_layout, "de")) == ["a", "b", "d", "e"]


def test_paracrawl_has_english_second_whatever_the_order_of_the_codes(tmp_path):
    place = write_opus(tmp_path, "ParaCrawl", "v5", [{"de": "eins", "fr": "un", "en": "one"}])
    assert list(paracrawl.read_language(place, "de", "ParaCrawl")) == [("eins", "one")]
    assert list(paracrawl.read_language(place, "fr", "ParaCrawl")) == [("un", "one")]
    assert paracrawl.count(place, "fr", "ParaCrawl") == 1


def test_the_dev_part_of_flores_is_read_when_it_is_asked_for(tmp_path):
    write_lines(tmp_path / "devtest" / "deu_Latn.devtest", ["a"])
    write_lines(tmp_path / "dev" / "deu_Latn.dev", ["b"])
    assert flores200.read_language(tmp_path, "deu_Latn") == ["a"]
    assert flores200.read_language(tmp_path, "deu_Latn", dev=True) == ["a", "b"]


# --- documents
def test_the_parts_of_a_document_are_title_text_and_sentences_of_both():
    assert sentences("One. Two! Three?") == ["One.", "Two!", "Three?"]
    assert sentences("3.5 stars… maybe") == ["3.5 stars…", "maybe"]
    assert sentences("一。二！三") == ["一。", "二！", "三"]
    assert sentences("first line\n\n second") == ["first line", "second"]
    assert sentences("  ") == []
    texts = list(parts([Document("", "Good. Very.", "One. Two.\nThree"), Document("", "", "a b")]))
    expected = ["Good. Very.", "Good.", "Very.", "One. Two.\nThree", "One.", "Two.", "Three"]
    assert texts == [*expected, "a b"]


# --- malformed files
def test_a_malformed_or_missing_file_is_one_line_that_names_it(folder):
    def refused(line):
        file, content = line.split(" ", 1)
        name, path, wrong = file.split("/")[0], folder / file, ast.literal_eval(content)
        before = path.read_bytes()
        path.unlink() if wrong is None else path.write_bytes(wrong)
        message = one_line(list, blocks_of(folder, name))
        path.write_bytes(before)
        assert list(blocks_of(folder, name))
        assert message.startswith(str(path.parent if "both sides" in message else path))
        return message.replace(f"{folder}/", "")

    golden.replay("evalsets_malformed.txt", refused)
    with pytest.raises(EmsError, match="german: expected news items"):
        list(rcv2.read_titles(folder / "empty", "german"))


def test_the_real_sets_have_the_published_sizes():
    needs(SHARED.is_dir(), "no benchmarks in ../shared")
    for code in ("de", "fr", "ru", "zh"):
        for part, sizes in (("sample", (200, 200, 100)), ("training", (476, 476, 240))):
            read = bucc2018.read_part(SHARED / "bucc_mini", code, part)
            assert tuple(map(len, read)) == sizes
    parts = list(itertools.product(pawsx.CODES, pawsx.SPLITS))
    kept = {part: pawsx.read_split(SHARED / "pawsx", *part) for part in parts}
    assert len(kept["en", "dev"]) == len(kept["en", "test"]) == 2000
    assert sum(map(len, kept.values())) == 28_000 - 339
    assert {pair.label for pair in kept["de", "dev"]} == {"0", "1"}
    for code in ("deu_Latn", "zho_Hans", "yor_Latn"):
        devtest = flores200.read_language(SHARED / "flores200" / "flores200_dataset", code)
        assert len(devtest) == 1012
        examples = sib200.read_split(SHARED / "sib200" / code / "test.tsv")
        assert len(examples) == 204
        assert len({category for category, _ in examples}) == 7
        assert len(sib200.read_sides(SHARED / "sib200", code)[0]) == 1004
        known = {line.strip() for line in devtest}
        assert sum(text.strip() in known for _, text in examples) > 50
    assert {len(wmt24pp.read_language(SHARED / "wmt24pp", code)) for code in ("en", "zu")} == {960}
    assert len(wmt24pp.read_sides(SHARED / "wmt24pp", "zh")) == 2
