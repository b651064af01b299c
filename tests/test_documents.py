"""Laws of documents of one language: how they are read, cleaned, segmented and stored whole."""

import gzip
import json
import random
import re
import zipfile
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from made.experiments import one_line
from made.shards import sentences, vocabulary, write_numbers, write_shard
from made.text import law, of_languages, segment_alone
from made.train import CORPUS, cleaned, raw, read_clean, write_random

from ems.base.errors import Damaged
from ems.corpora import monolingual
from ems.corpora.monolingual import count_documents, read_documents
from ems.corpora.moses import decode_lines
from ems.shards.documents import DocumentStore
from ems.shards.index import shards_in
from ems.shards.inspect import inspect_shards
from ems.shards.writer import write_shards
from ems.text.subwords import languages_of, load_vocabulary, write_sample

LINES = [b"one", b"two  words", b"", b"", b" \t", b"three", b"\xef\xbb\xbf", b"caf\xc3\xa9\r"]


def by_hand(content):
    """(first line, lines) of each document: a blank line ends one; one alone is an empty one."""
    found, lines, first = [], [], 1
    for number, line in enumerate(content.removesuffix(b"\n").split(b"\n"), start=1):
        if line.strip():
            lines.append(line)
        else:
            found.append((first, lines))
            lines, first = [], number + 1
    return [*found, (first, lines)] if lines else found


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("suffix", ["txt", "txt.gz"])
def test_documents_equal_a_plain_loop(tmp_path, seed, suffix):
    draw = random.Random(seed)
    content = b"\n".join([b"first", *draw.choices(LINES, k=draw.randint(0, 30))])
    content += b"\n" * draw.randint(0, 3)
    path = tmp_path / f"en.{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    found = [(each.first, [x.rstrip(b"\n") for x in each.lines]) for each in read_documents(path)]
    expected = by_hand(content)
    assert found == expected
    counts = count_documents(path)
    assert counts["documents"] == sum(bool(lines) for _, lines in expected) > 0
    assert counts["sentences"] == sum(len(lines) for _, lines in expected)


# --- cleaning

EVALUATION = {law("The weather is fine."), law("Again!")}
DOCUMENTS = [  # lines: those of them that stay
    ([b"First one.", b"Second  one.", b"the WEATHER is fine", b"Last."], [0, 1, 3]),
    ([], None),  # an empty document
    ([b"Alone."], None),
    ([b"Again", b"Stays."], None),  # one sentence is left
    ([b"Again", b"again"], None),  # none is left
    ([b"\xef\xbb\xbf", b"Now two", b"sentences"], [1, 2]),  # a line of nothing
    ([b"Not \xff UTF-8", b"One", b"Two"], [1, 2]),
    ([b"x" * 41, b"Short", b"Also short"], [1, 2]),
    ([b"First one.", b"Second one.", b"Last."], "duplicate"),
]
CLEAN = {"undecodable": "drop", "max_characters": 40, "duplicates": "drop"}


def raw_zip(path, **members):
    """OPUS's raw/LANGUAGE.zip with these members."""
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in members.items():
            packed.writestr(f"Own/raw/en/{name}.xml", content)
        packed.writestr("README", "no document")
    return path


def test_each_xml_file_of_a_raw_zip_is_a_document(tmp_path, monkeypatch):
    one = '<text><p><s id="1">A &amp; b\n c.</s>\n<s id="2"><time/>D <i>e</i>.</s></p>loose</text>'
    path = raw_zip(tmp_path / "en.zip", a=one, b="<text><s>F.</s></text>", c="<text/>")
    *whole, empty = read_documents(path)
    texts = [(each.first, decode_lines(each.lines, "error", path, each.first)) for each in whole]
    assert texts == [(1, ["A & b c.", "D e."]), (3, ["F."])]
    assert (empty.first, empty.lines) == (4, ())
    assert count_documents(path) == {"documents": 2, "sentences": 3}
    path = raw_zip(tmp_path / "en.zip", a="<text><s>F.</s>")
    message = one_line(lambda: list(read_documents(path)))
    assert re.search("en.zip: .*a.xml: expected XML with a sentence in each", message)
    assert "contains no document" in one_line(count_documents, raw_zip(tmp_path / "de.zip"))
    monkeypatch.setattr(monolingual, "LARGEST", 10)
    assert "a.xml has 15 bytes, more than 10" in one_line(count_documents, path)


def test_kept_sentences_and_counts_are_as_in_the_table(tmp_path):
    content = raw([lines for lines, _ in DOCUMENTS])
    documents, report = cleaned(tmp_path, content, EVALUATION, clean=CLEAN)
    expected, line = [], 1
    for lines, stay in DOCUMENTS:
        if isinstance(stay, list):
            texts = (" ".join(lines[at].decode().split()) for at in stay)
            expected.append(list(zip(texts, (line + at for at in stay), strict=True)))
        line += max(len(lines) + 1, 1 + (not lines))  # `raw` writes two for an empty one
    assert documents == expected
    removed = {"cap": 0, "empty": 3, "no_context": 2, "duplicates": 1}
    assert report["documents"] == {"read": len(DOCUMENTS) + 1, "kept": 4, "removed": removed}
    removed = {"cap": 0, "empty": 1, "evaluation": 4, "no_context": 2, "duplicates": 3}
    assert report["removed"] == removed | {"undecodable": 1, "max_characters": 1}
    assert report["read"] == sum(len(lines) for lines, _ in DOCUMENTS)
    assert report["kept"] == sum(map(len, documents))
    assert report["by_benchmark"] == {"tatoeba": {"en": 4, "pairs": 4}}
    assert report["files"] == {"en": line - 1}


def test_lines_of_documents_are_repaired_and_counted(tmp_path):
    content = text_of([["schÃ¶n und gut", "Q&amp;A", "fine"], ["right", "• also right"]])
    documents, report = cleaned(tmp_path, content, clean={"repairs": "default"})
    texts = [[text for text, _ in document] for document in documents]
    assert texts == [["schön und gut", "Q&A", "fine"], ["right", "• also right"]]
    assert report["changed"] == {"mojibake": 1, "entities": 1}
    assert report["repairs"]["entities"] == [(2, "Q&amp;A", "Q&A")]


def random_lines(draw, count):
    return [f"{' '.join(draw.choices('abcdefghij', k=6))} {draw.random()}" for _ in range(count)]


def test_a_cap_draws_whole_documents(tmp_path):
    content = text_of([random_lines(random.Random(seed), 3) for seed in range(50)])
    every, _ = cleaned(tmp_path, content)
    some, report = cleaned(tmp_path, content, corpus=replace(CORPUS, max_pairs={"en": 20}))
    assert len(some) == 20
    assert all(document in every for document in some)
    assert report["documents"]["removed"]["cap"] == 30
    assert report["removed"]["cap"] == 90
    assert cleaned(tmp_path, content, corpus=replace(CORPUS, max_pairs=20))[0] == some


SHARES = {"train": 0.7, "validation": 0.1, "test": 0.2}


def part(folder, content, name):
    found, report = cleaned(folder, content, corpus=replace(CORPUS, part=name), splits=SHARES)
    return [tuple(text for text, _ in document) for document in found], report


def test_a_document_and_its_copies_are_in_one_part_in_any_order(tmp_path):
    draw = random.Random(5)
    documents = [random_lines(draw, 2) for _ in range(1_000)]
    documents += documents[:100]  # copies
    parts = {name: part(tmp_path, text_of(documents), name) for name in SHARES}
    found = Counter(document for each, _ in parts.values() for document in each)
    assert found == Counter(map(tuple, documents))
    owner = {document: name for name, (each, _) in parts.items() for document in each}
    for name, (each, report) in parts.items():
        assert all(owner[document] == name for document in each)
        assert abs(len(each) / len(documents) - SHARES[name]) < 0.05
        assert report["documents"]["read"] == len(each)
    draw.shuffle(documents)
    for name in SHARES:
        assert Counter(part(tmp_path, text_of(documents), name)[0]) == Counter(parts[name][0])


def text_of(documents):
    return raw([[line.encode() for line in lines] for lines in documents])


def test_a_line_that_is_not_utf8_and_an_empty_result_are_errors(tmp_path):
    for line in (b"Not \xff UTF-8", "Zeile".encode("utf-16-le")):
        message = one_line(cleaned, tmp_path, raw([[b"a", b"b"], [b"c", line]]))
        assert re.search(r"en\.txt: line 5 is not UTF-8 .*undecodable: drop", message)
    message = one_line(cleaned, tmp_path, raw([[b"a"], [b"b"]]))
    assert re.search("cleaning removed all 2 sentences: .*'no_context': 2", message)
    assert not list(tmp_path.rglob("en.tsv"))


# --- segmented documents and their shards

SIZES = [2, 7, 3, 2, 40, 5, 2, 2, 9, 13, 4, 6, 2, 3]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A vocabulary and a segmented file of documents."""
    folder = tmp_path_factory.mktemp("documents")
    vocabulary(folder / "v.model", 200)
    write_random(folder / "en.tsv", SIZES, 1)
    return folder


def stored(folder):
    """The documents of some shards, by plain loops: (tokens, line) of each sentence."""
    found = []
    for shard in shards_in(folder):
        ids = sentences(shard, "en")
        lines = np.fromfile(shard / "lines", "<i8").tolist()
        bounds = np.fromfile(shard / "documents", "<i8").tolist()
        assert bounds[0] == 0
        assert bounds[-1] == len(ids) == len(lines)
        rows = list(zip(ids, lines, strict=True))
        found.append([rows[a:b] for a, b in pairwise(bounds)])
    return found


@pytest.mark.parametrize(("piece", "batch"), [(1, 100), (10, 100), (1_000, 100), (1_000, 1)])
def test_shards_of_any_size_hold_whole_documents(made, tmp_path, monkeypatch, piece, batch):
    monkeypatch.setattr("ems.shards.writer.MANY", batch)
    manifest = write_shards(made / "en.tsv", made / "v.model", tmp_path / "en", pairs=piece)
    processor = load_vocabulary(made / "v.model")
    documents = read_clean(made / "en.tsv")
    expected = [[(processor.encode(text), line) for text, line in each] for each in documents]
    shards = stored(tmp_path / "en")
    assert [document for shard in shards for document in shard] == expected
    assert (len(shards) > 1) == (piece < sum(SIZES))
    counts = [manifest[key] for key in ("languages", "documents", "pairs", "dropped")]
    assert counts == [["en"], len(SIZES), sum(SIZES), 0]


def test_empty_sentences_and_short_documents_are_dropped(made, tmp_path):
    text = "cat\t1\nsees\t2\n\n\t4\nbirds\t5\n\nthe\t7\n\t8\ncat\t9\n\n \t11\n\t12\n\n"
    (tmp_path / "en.tsv").write_text(text)
    manifest = write_shards(tmp_path / "en.tsv", made / "v.model", tmp_path / "en")
    assert [[line for _, line in each] for each in stored(tmp_path / "en")[0]] == [[1, 2], [7, 9]]
    assert (manifest["documents"], manifest["pairs"], manifest["dropped"]) == (2, 4, 5)
    (tmp_path / "de.tsv").write_text("cat\t1\n\n")
    message = one_line(write_shards, tmp_path / "de.tsv", made / "v.model", tmp_path / "de")
    assert "de.tsv: no document" in message
    assert not (tmp_path / "de").exists()


def test_a_row_is_shown_with_its_document(made, tmp_path):
    write_shards(made / "en.tsv", made / "v.model", tmp_path / "en", pairs=10)
    text, line = read_clean(made / "en.tsv")[2][1]
    shown = inspect_shards(shards_in(tmp_path / "en"), "en", 10, made / "v.model").splitlines()
    assert shown[0].endswith("language en, shard 00001, row 1 of 45")
    assert shown[1] == "document 0 of 3, its sentence 1 of 3 (rows 0 to 2)"
    assert shown[2].startswith(f"line {line} of the corpus")
    assert shown[4] == f"en: {text}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([0, 9, 5], "documents: row 1 begins at 9: expected its end above that"),
        ([0, 2, 8], "expected 9, the number of ids, as its last offset"),
        ([0, 9], "expected 24 bytes by its manifest, found 16"),
        (None, "it has one language but no `documents`"),
    ],
)
def test_wrong_bounds_of_documents_are_found_before_training(tmp_path, content, message):
    documents = [2, 7] if content else None
    shard = write_shard(tmp_path / "en", range(9), [1] * 9, ["en"], documents=documents)
    write_numbers(shard / "documents", content or [])
    with pytest.raises(Damaged, match=message):
        DocumentStore([shard], ["en"], 9, 1).check(9)


@pytest.mark.parametrize(("lines", "workers"), [(1_000, 1), (1, 1), (7, 2)])
def test_segmentation_keeps_the_boundaries_of_documents(tmp_path, lines, workers):
    source, out = write_random(tmp_path / "en.tsv", SIZES, 2), tmp_path / "out.tsv"
    text = source.read_text()
    source.write_text(text.replace("cat", "Cat,"))
    segment_alone(source, out, ("en",), ("sacremoses",), workers, lines)
    assert out.read_text() == text.replace("cat", "cat ,")


def test_the_sample_of_a_vocabulary_has_pairs_and_documents(tmp_path):
    write_random(tmp_path / "en.tsv", SIZES, 3)
    (tmp_path / "de-en.tsv").write_text("katze\tcat\t1\n" * 50)
    experiment = of_languages("en", "de", vocabulary={"sample_lines": 1_000, "temperature": 1})
    out = tmp_path / "sample.txt"
    sources = [tmp_path / "en.tsv", tmp_path / "de-en.tsv"]
    assert write_sample(experiment, sources, out) == {"en": sum(SIZES) + 50, "de": 50}
    documents = [text for each in read_clean(tmp_path / "en.tsv") for text, _ in each]
    assert out.read_text().splitlines() == documents + ["katze", "cat"] * 50
    assert languages_of(out).read_text().split() == ["en"] * len(documents) + ["de", "en"] * 50


def test_lost_lines_of_documents_are_found_by_the_report(made, tmp_path):
    source = write_random(tmp_path / "text/clean/Own/v1/en.tsv", [2, 3], 1)
    report, documents = ({"read": n, "removed": {}, "kept": n} for n in (5, 2))
    source.with_suffix(".json").write_text(json.dumps(report | {"documents": documents}))
    write_shards(source, made / "v.model", tmp_path / "en")
    source.write_text(source.read_text().removesuffix("\n"))
    message = one_line(write_shards, source, made / "v.model", tmp_path / "en")
    assert "expected 7 lines, found 6" in message
