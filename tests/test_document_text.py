"""Laws of documents of one language: what is read, what stays, and that every loss is counted."""

import gzip
import random
import zipfile
from collections import Counter
from dataclasses import replace

import pytest
from made.text import law
from made.train import CORPUS, cleaned, raw

from ems.base.errors import EmsError
from ems.corpora import archive, monolingual
from ems.corpora.monolingual import count_documents, read_documents
from ems.corpora.moses import decode_lines

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


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("suffix", ["txt", "txt.gz"])
def test_documents_are_those_of_a_plain_loop_packed_or_not(tmp_path, seed, suffix):
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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n \n\n", "contains no document"),
        (b"a" * 30 + b"\nb", r"line 1 is longer than 20 bytes"),
        (b"a b\n\n" + b"word\n" * 9, r"document that begins at line 3 is longer than 40 bytes"),
        (b"\x1f\x8b not gzip", "damaged or cut short"),
    ],
)
def test_what_is_no_file_of_documents_is_one_clear_error(tmp_path, monkeypatch, content, message):
    monkeypatch.setattr(archive, "LONGEST_LINE", 20)
    monkeypatch.setattr(monolingual, "LARGEST", 40)
    (tmp_path / "en.txt").write_bytes(content)
    with pytest.raises(EmsError, match=message) as caught:
        count_documents(tmp_path / "en.txt")
    assert str(caught.value).startswith(str(tmp_path / "en.txt"))


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


def test_each_file_of_opus_raw_zip_is_a_document_and_each_s_a_sentence(tmp_path):
    one = '<text><p><s id="1">A &amp; b\n c.</s>\n<s id="2"><time/>D <i>e</i>.</s></p>loose</text>'
    path = raw_zip(tmp_path / "en.zip", a=one, b="<text><s>F.</s></text>", c="<text/>")
    *whole, empty = read_documents(path)
    texts = [(each.first, decode_lines(each.lines, "error", path, each.first)) for each in whole]
    assert texts == [(1, ["A & b c.", "D e."]), (3, ["F."])]
    assert (empty.first, empty.lines) == (4, ())
    assert count_documents(path) == {"documents": 2, "sentences": 3}


def test_a_raw_zip_without_xml_or_with_too_long_a_file_is_one_clear_error(tmp_path, monkeypatch):
    path = raw_zip(tmp_path / "en.zip", a="<text><s>F.</s>")
    with pytest.raises(EmsError, match=r"en.zip: .*a.xml: expected XML with a sentence in each"):
        list(read_documents(path))
    with pytest.raises(EmsError, match="contains no document"):
        count_documents(raw_zip(tmp_path / "de.zip"))
    monkeypatch.setattr(monolingual, "LARGEST", 10)
    with pytest.raises(EmsError, match=r"a\.xml has 15 bytes, more than 10"):
        list(read_documents(path))


def test_what_stays_is_what_plain_words_say_and_all_else_is_counted(tmp_path):
    documents, report = cleaned(
        tmp_path, raw([lines for lines, _ in DOCUMENTS]), EVALUATION, clean=CLEAN
    )
    expected, line = [], 1
    for lines, stay in DOCUMENTS:
        if isinstance(stay, list):
            kept = [(" ".join(lines[at].decode().split()), line + at) for at in stay]
            expected.append(kept)
        line += max(len(lines) + 1, 1 + (not lines))  # `raw` writes two for an empty one
    assert documents == expected
    assert report["documents"] == {
        "read": len(DOCUMENTS) + 1,
        "kept": 4,
        "removed": {"cap": 0, "empty": 3, "no_context": 2, "duplicates": 1},
    }
    removed = {"cap": 0, "empty": 1, "evaluation": 4, "no_context": 2, "duplicates": 3}
    assert report["removed"] == removed | {"undecodable": 1, "max_characters": 1}
    assert report["read"] == sum(len(lines) for lines, _ in DOCUMENTS)
    assert report["kept"] == sum(map(len, documents))
    assert report["by_benchmark"] == {"tatoeba": {"en": 4, "pairs": 4}}
    assert report["files"] == {"en": line - 1}


def sentences(draw, count):
    return [f"{' '.join(draw.choices('abcdefghij', k=6))} {draw.random()}" for _ in range(count)]


def made_up(seed, documents=300, most=9):
    """Documents of random lines, some of them evaluation sentences, some of nothing."""
    draw = random.Random(seed)
    found = [sentences(draw, draw.randint(0, most)) for _ in range(documents)]
    for lines in found:
        for at in range(len(lines)):
            fate = draw.random()
            lines[at] = "Again" if fate < 0.1 else "\ufeff\x01" if fate < 0.15 else lines[at]
    return [[line.encode() for line in lines] for lines in found]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("key", ["folded", "plain"])
def test_no_evaluation_sentence_survives_and_the_counts_add_up(tmp_path, seed, key):
    documents, report = cleaned(tmp_path, raw(made_up(seed)), {"again"}, decontaminate={"key": key})
    assert report["removed"]["evaluation"] > 20
    texts = [text for document in documents for text, _ in document]
    assert len(texts) > 100
    assert not [text for text in texts if law(text) == "again"]
    assert min(map(len, documents)) >= 2
    for counts in (report, report["documents"]):
        assert counts["read"] == counts["kept"] + sum(counts["removed"].values())
    assert report["kept"] == len(texts)
    assert report["documents"]["kept"] == len(documents)


def test_a_sentence_keeps_the_line_that_it_comes_from(tmp_path):
    content = raw(made_up(4))
    lines = content.decode().split("\n")
    documents, _ = cleaned(tmp_path, content)
    assert all(lines[line - 1] == text for document in documents for text, line in document)


def test_a_cap_draws_whole_documents(tmp_path):
    content = text_of([sentences(random.Random(seed), 3) for seed in range(50)])
    every, _ = cleaned(tmp_path, content)
    some, report = cleaned(tmp_path, content, corpus=replace(CORPUS, max_pairs={"en": 20}))
    assert len(some) == 20
    assert all(document in every for document in some)
    assert report["documents"]["removed"]["cap"] == 30
    assert report["removed"]["cap"] == 90
    assert cleaned(tmp_path, content, corpus=replace(CORPUS, max_pairs=20))[0] == some


# --- parts

SHARES = {"train": 0.7, "validation": 0.1, "test": 0.2}


def part(folder, content, name):
    found, report = cleaned(folder, content, corpus=replace(CORPUS, part=name), splits=SHARES)
    return [tuple(text for text, _ in document) for document in found], report


def test_each_document_is_in_one_part_wherever_it_stands_and_its_copy_too(tmp_path):
    draw = random.Random(5)
    documents = [sentences(draw, 2) for _ in range(1_000)]
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


# --- odd files


def test_a_line_of_ten_megabytes_stays_whole_or_is_counted(tmp_path):
    long = b"word " * 2_000_000
    content = raw([[b"Before.", long, b"After."]])
    documents, _ = cleaned(tmp_path, content)
    assert [text for text, _ in documents[0]] == ["Before.", long.decode().strip(), "After."]
    documents, report = cleaned(tmp_path, content, clean={"max_bytes": 1_000_000})
    assert [text for text, _ in documents[0]] == ["Before.", "After."]
    assert report["removed"]["max_bytes"] == 1


@pytest.mark.parametrize("line", [b"Not \xff UTF-8", "Zeile".encode("utf-16-le")])
def test_a_line_that_is_not_utf8_is_an_error_with_its_number(tmp_path, line):
    with pytest.raises(EmsError, match=r"en\.txt: line 5 is not UTF-8 .*undecodable: drop"):
        cleaned(tmp_path, raw([[b"a", b"b"], [b"c", line]]))
    assert not list(tmp_path.rglob("en.tsv"))


def test_a_corpus_of_which_nothing_is_left_is_an_error(tmp_path):
    with pytest.raises(EmsError, match=r"cleaning removed all 2 sentences: .*'no_context': 2"):
        cleaned(tmp_path, raw([[b"a"], [b"b"]]))
