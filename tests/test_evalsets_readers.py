"""Readers of evaluation sets: published formats, documents, malformed files by line."""

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


@pytest.fixture
def folder(tmp_path):
    return made.write_sets(tmp_path)


def flat(sides):
    return [sentence for side in sides for sentence in side]


# --- each set
EVERY = {  # the sides of German
    "tatoeba": [["a\u2028b", "c"], ["d", "e"]],
    "flores200": [made.FLORES_LINES],
    "sib200": [[text for rows in made.SIB_SPLITS.values() for _, text in rows]],
    "ntrex": [["eins"], ["one"]],
}


@pytest.mark.parametrize("name", EVERY)
def test_translations_and_topics_are_read_line_by_line(folder, tmp_path, name):
    entries = {each: {"version": "v1", "languages": ["de"]} for each in ("tatoeba", name)}
    experiment = Settings(tmp_path / "settings", MINIMAL | {"evalsets": entries}).load()
    items = [{"de": "eins", "fr": "un", "en": "one"}]  # in de-en and en-fr
    place = write_opus(tmp_path, "NTREX", "v1", items) if name == "ntrex" else folder / name
    (code,) = experiment.evalsets[name].languages
    assert [list(side) for side in read_sides(experiment, name, place, code)] == EVERY[name]
    files = data_files(experiment, name, place)
    assert files
    assert all(path.is_file() for path in files)
    if len(EVERY[name]) == 2:
        assert [list(side) for side in read_bitext(experiment, name, place, code)] == EVERY[name]
    if name == "ntrex":
        assert read_bitext(experiment, name, place, "fr") == [["un"], ["one"]]


def test_cr_before_lf_is_dropped_and_a_last_line_needs_no_lf(tmp_path):
    content = (b"a\nc\r\n", b"d\ne")
    made.write_files(tmp_path, dict(zip(tatoeba.file_names("deu"), content, strict=True)))
    assert tatoeba.read_language(tmp_path, "deu") == (["a", "c"], ["d", "e"])


READ = {  # a part of each set: how it is read
    "bucc2018 de training": lambda f: vars(bucc2018.read_part(f, "de", "training")).values(),
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
}
SIDES = ["bucc2018 de", "cls jp", "marc de", "mldoc german", "pawsx de", "rcv2 german"]
SIDES += ["xnli de", "xsimpp eng_Latn"]


def test_each_set_is_read_as_published_and_training_text_is_no_evaluation_sentence(folder):
    blocks = {f"read {key}": list(read(folder / key.split()[0])) for key, read in READ.items()}
    for key in SIDES:
        name, code = key.split()
        blocks[f"evaluated {key}"] = flat(module(name, "data").read_sides(folder / name, code))
    text = "\n\n".join("\n".join([f"# {key}", *map(repr, own)]) for key, own in blocks.items())
    golden.check("evalsets.txt", text + "\n")


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
DE, GOLD = "bucc2018/de-en/de-en.training.de", "bucc2018/de-en/de-en.training.gold"
DEV, MT = "xnli/XNLI-1.0/xnli.dev.tsv", f"xnli/{xnli.TRAIN}"
PAWS, KINDS = "pawsx/de/dev_2k.tsv", f"xsimpp/{xsimpp.KINDS}"
CLS, MARC = "cls/de/books/test.review", "marc/dev/dataset_de_dev.json"
ITEM = "mldoc/RCV2_Multilingual_Corpus/german/REUTDE1/11.xml"
HEADER = "\t".join(made.XNLI_COLUMNS).encode() + b"\n"
PAWS_HEADER = b"id\tsentence1\tsentence2\tlabel\n"
TATOEBA, ENGLISH = "tatoeba/tatoeba.deu-eng.deu", "tatoeba/tatoeba.deu-eng.eng"
LINES, SIB = "flores200/devtest/deu_Latn.devtest", "sib200/deu_Latn/test.tsv"
SIB_HEADER = b"index_id\tcategory\ttext\n"
READERS = {
    "tatoeba": lambda folder: tatoeba.read_sides(folder, "deu"),
    "flores200": lambda folder: flores200.read_sides(folder, "deu_Latn"),
    "sib200": lambda folder: sib200.read_sides(folder, "deu_Latn"),
    "bucc2018": lambda folder: bucc2018.read_part(folder, "de", "training"),
    "xnli": lambda folder: [xnli.read_split(folder, "de", "dev"), *xnli.read_train(folder)],
    "pawsx": lambda folder: pawsx.read_split(folder, "de", "dev"),
    "xsimpp": lambda folder: xsimpp.read_negatives(folder),
    "cls": lambda folder: list(cls.read_split(folder, "de", "books", "test")),
    "marc": lambda folder: list(marc.read_split(folder, "de", "dev")),
    "mldoc": lambda folder: list(mldoc.read_split(folder, "german", "dev")),
}
MALFORMED = [
    (LINES, b"a\n\nb\n", "line 2 is empty"),
    (LINES, b"a\n \t\n", "line 2 is empty"),
    (LINES, b"", "line 1 is empty"),
    (LINES, b"a\nb\xe9\n", "not UTF-8 at byte 3"),
    (SIB, b"", "line 1 is empty"),
    (SIB, b"0\ttravel\ttext\n", "expected the columns index_id, category, text, found"),
    (SIB, SIB_HEADER + b"0\ttravel\ta\n1\ttravel\n", "line 3 has 2 columns, expected 3"),
    (SIB, SIB_HEADER + b"0\ttravel\ta\tb\n", "line 2 has 4 columns, expected 3"),
    (SIB, SIB_HEADER + b"0\ttravel\ta\n\n1\ttravel\tb\n", "line 3 is empty"),
    (SIB, SIB_HEADER + b"0\ttravel\t\n", "line 2"),  # an example without its sentence
    (SIB, SIB_HEADER + b"0\tother\ta\n", "line 2: found the category 'other'"),
    (SIB, SIB_HEADER + b"0\ttravel\t\xff\n", "not UTF-8 at byte 32"),
    (TATOEBA, b"a\n\n", "line 2 is empty"),
    (ENGLISH, b"d\n\n", "line 2 is empty"),
    (TATOEBA, b"\xff\n", "not UTF-8 at byte 0"),
    (TATOEBA, b"a\n", "deu has 1 lines and tatoeba.deu-eng.eng has 2; both sides"),
    (DE, b"de-1\ta\nde-2\n", "line 2: expected id<TAB>sentence, found 'de-2'"),
    (DE, b"de-1\ta\nde-1\tb\n", "line 2: the id de-1 occurs twice"),
    (DE, b"de-1\ta\nde-2\t\xff\n", "line 2 is not UTF-8"),
    (DE, b"", "expected sentences, found none"),
    (GOLD, b"de-1\ten-7\nde-1\ten-99\n", "line 2: no sentence has the id 'en-99'"),
    (GOLD, b"de-1\ten-7\nde-1\ten-7\n", "line 2: de-1 en-7 occurs twice"),
    (GOLD, b"de-1\n", "line 1 has 1 columns, expected 2"),
    (GOLD, b"", "expected pairs of ids, found none"),
    (DEV, b"", "expected the columns language, gold_label, sentence1, sentence2, found no lang"),
    (DEV, HEADER + b"de\tneutral\n", "line 2 has 2 columns, expected 9"),
    (DEV, HEADER + made.xnli_row("de", "maybe", "a", "b").encode(), "line 2: found the label 'may"),
    (DEV, HEADER, "expected pairs of the language de, found none"),
    (MT, b"premise\thypo\tlabel\na\tb\tc\n", "line 2: found the label 'c'; expected entailment"),
    (PAWS, PAWS_HEADER + b"1\ta\tb\t2\n", "line 2: found the label '2'; expected 0 or 1"),
    (PAWS, b"sentence1\tsentence2\nx\ty\n", "found no label in its first line"),
    (f"xsimpp/{xsimpp.AUGMENTED}", b"It has 3 wheels.\n\n", "line 2 is empty"),
    (f"xsimpp/{xsimpp.AUGMENTED}", b"other\n", "none of its 1 sentences is in eng_Latn_errtype"),
    (KINDS, b"[]", "expected a JSON object, found []"),
    (KINDS, b'{"a": {"src": "b"}}', "expected text under `a.errtype`, found nothing"),
    (CLS, b"<items>\n<item>\n", "line 3: not valid XML (no element found)"),
    (CLS, b"<items>\n<item><rating>3.0</rating></item></items>", "line 2: a review with the rati"),
    (CLS, b"<items>\n\n<item><rating>1</rating></item></items>", "line 3: a review without text"),
    (CLS, b"<items></items>", "expected reviews (<item>), found none"),
    (CLS, b'<!DOCTYPE a [<!ENTITY b "c">]><items/>', "declares entities of its own"),
    (MARC, b'{"stars": 6}\n', "line 1: expected a JSON object with stars (1 to 5), review_title"),
    (MARC, b"\n", "line 1: expected a JSON object with stars"),
    (MARC, made.marc_lines("en")[0].encode(), "line 1: a review in 'en', expected de"),
    (ITEM, b"<newsitem>\n<p></newsitem>", "line 2: not valid XML"),
    (ITEM, b"<html/>", "expected <newsitem>, found <html>"),
    (ITEM, made.news(1, ("CCAT", "ECAT"), "x", ()), "has 2 of the classes CCAT, ECAT, GCAT, MCAT"),
    (ITEM, b'<!DOCTYPE a [<!ENTITY b "c">]><newsitem/>', "declares entities of its own"),
    ("mldoc/mldoc-indices/german.dev", b"REUTDE1-11\n../x-1\n", "line 2: expected PART-NUMBER, f"),
]


@pytest.mark.parametrize(("file", "content", "message"), MALFORMED)
def test_a_malformed_file_is_one_line_that_names_it(folder, file, content, message):
    name, path = file.partition("/")[0], folder / file
    READERS[name](folder / name)
    path.write_bytes(content)
    line = one_line(READERS[name], folder / name)
    where = path.parent if "both sides" in message else path
    assert line.startswith(f"{where}: ")
    assert message in line


@pytest.mark.parametrize("file", sorted({file for file, _, _ in MALFORMED}))
def test_a_missing_file_is_one_line_that_names_it(folder, tmp_path, file):
    name = file.partition("/")[0]
    (folder / file).unlink()
    line = one_line(READERS[name], folder / name)
    assert line.startswith(f"{folder / file}: ")
    assert "no such file" in line
    with pytest.raises(EmsError, match="german: expected news items"):
        list(rcv2.read_titles(tmp_path / "empty", "german"))


def test_the_real_sets_have_the_published_sizes():
    needs(SHARED.is_dir(), "no benchmarks in ../shared")
    for code in ("de", "fr", "ru", "zh"):
        for part, sizes in (("sample", (200, 200, 100)), ("training", (476, 476, 240))):
            read = bucc2018.read_part(SHARED / "bucc_mini", code, part)
            assert (len(read.sentences), len(read.english), len(read.gold)) == sizes
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
