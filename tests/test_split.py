"""Divided corpora, by document or sentence: parts share no line and are the same everywhere."""

import hashlib
import itertools
import random
from collections import Counter
from dataclasses import replace

import pytest
import yaml
from made.corpora import (
    DOCUMENTS,
    moses,
    moses_of,
    translations,
    write_form,
    write_lines,
    write_opus,
    write_zip,
)
from made.experiments import BY_SENTENCE, MINIMAL, Settings, edited, one_line
from made.text import clean_alone, law

from ems.benchmarks.ntrex.data import read_language
from ems.config.corpus_entries import Split
from ems.corpora.evalsets.sets import data_files
from ems.corpora.split import lines_of_part, part_of_line, read_document_names
from ems.text.clean import CleanSource
from ems.text.evalkeys import eval_files, write_eval_keys, write_keys

PARTS = {"train": 0.5, "validation": 0.1, "test": 0.4}
CODES = ["de", "fr", "sw"]


def documents_of_sizes(sizes):
    """The document name of each line, for consecutive documents of these sizes."""
    return [f"paper.{at}" for at, size in enumerate(sizes) for _ in range(size)]


@pytest.mark.parametrize("parts", [PARTS, {"a": 0.98, "b": 0.02}, dict.fromkeys("abcdefgh", 0.125)])
@pytest.mark.parametrize("seed", range(3))
def test_parts_are_whole_documents_in_the_order_of_their_hashes(seed, parts):
    draw = random.Random(seed)
    documents = documents_of_sizes(draw.choices(range(1, 31), k=draw.randint(20, 90)))
    names = sorted(parts)
    bounds = list(zip(names, itertools.accumulate(parts[name] for name in names), strict=True))
    expected, passed = {}, 0
    for name in sorted(set(documents), key=lambda name: hashlib.sha256(name.encode()).hexdigest()):
        size = documents.count(name)
        middle = (passed + size / 2) / len(documents)
        expected[name] = next(part for part, end in bounds if middle < end)
        passed += size
    turned = random.Random(2).sample(documents, len(documents))
    for lines in (documents, turned):  # in any order of lines and parts
        assert part_of_line(lines, parts) == [expected[name] for name in lines]
        assert part_of_line(lines, dict(reversed(parts.items()))) == part_of_line(lines, parts)
    counts = Counter(part_of_line(documents, parts))
    for part, share in parts.items():
        assert abs(counts[part] - share * len(documents)) <= max(Counter(documents).values())
    assert set(expected.values()) == set(parts) or len(parts) == 2


DIVIDED = MINIMAL | yaml.safe_load(f"""
languages: [en, de, fr, sw]
splits: {{NTREX: {{documents: {DOCUMENTS}, parts: {{train: 0.5, validation: 0.1, test: 0.4}}}}}}
corpora: [{{name: NTREX, version: v1, part: train}}]
validation: {{name: NTREX, version: v1, part: validation}}
evalsets: {{ntrex: {{version: v1, part: test}}}}
decontaminate: {{against: [ntrex]}}
benchmarks: [ntrex]
""")


@pytest.mark.parametrize("breaker", ["", "\u2028", "\x85", "\x0b", "\x1c"])
def test_document_names_end_at_lf_only_and_are_stripped(tmp_path, breaker):
    path = tmp_path / DOCUMENTS
    path.write_bytes(f"b{breaker}bc.1\r\nbbc.1\nzürich 2 \nlast".encode())
    assert read_document_names(path) == [f"b{breaker}bc.1", "bbc.1", "zürich 2", "last"]


# --- by document
class Parts:
    """A corpus, and the parts of it that the cleaning stage writes."""

    def __init__(self, root, value=BY_SENTENCE, **changes):
        self.root, self.experiment = root, Settings(root / "settings", value | changes).load()
        self.keys = root / "keys.tsv"
        write_keys({}, self.keys)

    def clean(self, part, archives, pair, documents=None):
        """([(first, second, line)], report) of a part."""
        corpus, out = self.experiment.corpora[0], self.root / part / f"{pair}.tsv"
        label = f"{corpus.name}+{part}"
        source = CleanSource(label, corpus.version, pair, tuple(archives), documents)
        entry = clean_alone(self.experiment, source, self.keys, out)
        rows = [line.split("\t") for line in out.read_text().split("\n")[:-1]]
        return [(first, second, int(line)) for first, second, line in rows], entry


class Divided(Parts):
    """A small NTREX with 3 languages."""

    def __init__(self, root, items, documents, **changes):
        super().__init__(root, DIVIDED, **changes)
        self.folder = write_opus(root, "NTREX", "v1", items, documents)
        write_eval_keys("primary", eval_files(self.experiment, {"ntrex": self.folder}), self.keys)

    def clean_language(self, part, code):
        """([(sentence, English)], report) of one language of a part."""
        pair = "-".join(sorted(("en", code)))
        archive = self.folder / "moses" / f"{pair}.txt.zip"
        rows, entry = self.clean(part, [archive], pair, self.folder / DOCUMENTS)
        return [row[:2] if pair.startswith(code) else row[1::-1] for row in rows], entry

    def test_part(self, code):
        split = self.experiment.splits["NTREX"]
        return list(zip(*read_language(self.folder, code, split, "test"), strict=True))


TEXTS = enumerate(translations(200, ["en", *CODES], seed=1))
ITEMS = [{code: f"{text} {at}" for code, text in item.items()} for at, item in TEXTS]  # all differ
PAPERS = documents_of_sizes([7] * 20 + [12] * 5)


def test_parts_share_no_line_and_are_the_same_in_every_language_and_experiment(tmp_path):
    corpora = [
        Divided(tmp_path / "one", ITEMS, PAPERS),
        Divided(tmp_path / "other", ITEMS, PAPERS, seed=9, languages=["en", "fr", "sw"]),
    ]
    document = {item["en"]: name for item, name in zip(ITEMS, PAPERS, strict=True)}
    english = []
    for corpus in corpora:
        for code in CODES if corpus is corpora[0] else ("fr", "sw"):
            parts = [corpus.clean_language(part, code)[0] for part in ("train", "validation")]
            parts.append(corpus.test_part(code))
            own = [{document[english] for _, english in part} for part in parts]
            assert sum(map(len, own)) == len(set(PAPERS))  # whole documents
            together = [pair for part in parts for pair in part]
            assert all(len(part) >= 10 for part in parts)
            assert len(together) == len(set(together)) == 200
            assert set(together) == {(item[code], item["en"]) for item in ITEMS}
            english.append([[pair[1] for pair in part] for part in parts])
    assert all(parts == english[0] for parts in english)


def test_no_english_sentence_of_the_test_part_is_left_in_another_part(tmp_path):
    """Every second other line is a test sentence in English: documents quote each other."""
    part = part_of_line(PAPERS, PARTS)
    tested = [item["en"] for item, name in zip(ITEMS, part, strict=True) if name == "test"]
    others = [at for at, name in enumerate(part) if name != "test"]
    quoting = dict(zip(others[::2], tested, strict=False))
    assert len(quoting) > 50
    items = list(ITEMS)
    for at, text in quoting.items():
        items[at] = {**ITEMS[at], "en": f"«{text.upper()}!»"}
    corpus = Divided(tmp_path, items, PAPERS)
    assert [english for _, english in corpus.test_part("de")] == tested
    for name, code in itertools.product(("train", "validation"), CODES):
        pairs, entry = corpus.clean_language(name, code)
        mine = [at for at in range(200) if part[at] == name]
        assert pairs == [(items[at][code], items[at]["en"]) for at in mine if at not in quoting]
        lost = sum(at in quoting for at in mine)
        assert entry["removed"]["evaluation"] == lost
        assert entry["by_benchmark"] == {"ntrex": {"en": lost, "pairs": lost}}


def test_documents_of_another_length_or_none_at_all_are_one_line(tmp_path):
    corpus = Divided(tmp_path, ITEMS, PAPERS)
    documents = write_lines(corpus.folder / DOCUMENTS, PAPERS[:-1])
    archive = corpus.folder / "moses" / "de-en.txt.zip"
    split = Split(documents=DOCUMENTS, parts=PARTS)
    for message in (
        one_line(lines_of_part, documents, split, "test", 200, archive),
        one_line(corpus.test_part, "de"),
        one_line(corpus.clean_language, "train", "de"),
    ):
        assert all(part in message for part in (str(documents), str(archive), "199 lines", "200"))
    assert not list((tmp_path / "train").iterdir())


def test_the_file_of_documents_is_part_of_the_data_of_a_score(tmp_path):
    experiment = Settings(tmp_path, DIVIDED).load()
    names = [path.name for path in data_files(experiment, "ntrex", tmp_path)]
    assert names == ["de-en.txt.zip", "en-fr.txt.zip", "en-sw.txt.zip", DOCUMENTS]


# --- by sentence: near-copies are in one part in every language pair
SHARES = {"train": 0.7, "test": 0.1, "validation": 0.2}


def near_copy(text, number):
    forms = [str.upper, str.title, "«{}!»".format, "  {} .".format, lambda t: t.replace(" ", " - ")]
    return (forms[number % len(forms)])(text)


def sentences(count, code):
    """(sentence, English) pairs of a language; some English is repeated, some as a near-copy."""
    draw = random.Random(code)
    items = list(translations(count, ["en", code], seed=3, least=4))  # English: the same for all
    pairs = [(item[code], item["en"]) for item in items]
    pairs += [(f"{text} {at}", english) for at, (text, english) in enumerate(pairs[::3])]
    pairs += [(f"{code} {n}", near_copy(english, n)) for n, (_, english) in enumerate(pairs[::2])]
    return draw.sample(pairs, len(pairs))


class Sentences(Parts):
    """Divided by the sentence in English."""

    def archive(self, pairs, code):
        pair = "-".join(sorted(("en", code)))
        texts = [{code: text, "en": english} for text, english in pairs]
        return write_zip(self.root, "Toy", "v1", pair, texts)

    def of_language(self, code, pairs):
        """{part: [(sentence, English, line)]}."""
        pair, archive = "-".join(sorted(("en", code))), self.archive(pairs, code)
        parts = {part: self.clean(part, [archive], pair)[0] for part in SHARES}
        if pair.startswith("en"):
            return {part: [(b, a, line) for a, b, line in rows] for part, rows in parts.items()}
        return parts


def expected_part(english):
    """Return the part of a sentence by a plain loop over the parts in order of their names."""
    digest = hashlib.sha256(law(english).encode()).hexdigest()
    place, end = int(digest[:14], 16) / 16**14, 0
    for name in sorted(SHARES):
        end += SHARES[name]
        if place < end:
            return name
    raise AssertionError(place)


def lines_in(part, english):
    """The line numbers of the sentences that belong to a part."""
    return [at for at, text in enumerate(english, 1) if expected_part(text) == part]


@pytest.fixture(scope="module")
def divided(tmp_path_factory):
    """{language: {part: rows}} of three languages."""
    corpus = Sentences(tmp_path_factory.mktemp("divided"))
    return {code: corpus.of_language(code, sentences(300, code)) for code in CODES}


def test_the_hash_of_a_sentence_decides_its_part_in_all_languages(divided):
    for code in CODES:
        english = [english for _, english in sentences(300, code)]
        assert len(set(english)) > len(set(map(law, english)))  # near-copies
        for part, rows in divided[code].items():
            assert len(rows) > 15
            assert [row[2] for row in rows] == lines_in(part, english)


def test_parts_depend_on_the_shares_only(tmp_path, divided):
    turned = {"Toy": {"parts": dict(reversed(SHARES.items())), "sentences": "en"}}
    changes = {"seed": 9, "languages": ["fr", "en"], "splits": turned, "clean": {"max_words": 40}}
    pairs = sentences(300, "fr")
    other = Sentences(tmp_path / "a", **changes).of_language("fr", pairs[::-1])
    for part in SHARES:
        assert {row[:2] for row in other[part]} == {row[:2] for row in divided["fr"][part]}
    shares = {"Toy": {"sentences": "en", "parts": SHARES | {"train": 0.2, "validation": 0.7}}}
    third = Sentences(tmp_path / "b", splits=shares).of_language("fr", pairs)
    assert len(third["validation"]) > 2 * len(other["validation"])


def test_the_sentence_may_be_on_either_side_of_a_file(tmp_path):
    pairs = sentences(100, "fr")
    corpus = Sentences(tmp_path)
    straight, turned = corpus.archive(pairs, "fr"), tmp_path / "fra-en.zip"
    moses_of(turned, pairs, corpus="Toy", pair="fra-en")
    files = {"variants": {"en-fr": ("en-fr", "fra-en")}, "turned": frozenset({"fra-en"})}
    own = replace(corpus.experiment.corpora[0], **files)
    corpus.experiment = replace(corpus.experiment, corpora=(own,))
    rows, entry = corpus.clean("train", [straight, turned], "en-fr")
    lines = lines_in("train", [english for _, english in pairs])
    assert [row[2] for row in rows] == [*lines, *(at + len(pairs) for at in lines)]
    assert entry["files"] == {"en-fr": len(pairs), "fra-en": len(pairs)}
    assert {law(row[0]) for row in rows} <= {law(english) for _, english in pairs}


def test_the_report_counts_the_part_only_and_a_cap_samples_it(tmp_path, divided):
    pairs, whole = sentences(300, "de"), divided["de"]["train"]
    value = edited(BY_SENTENCE, "corpora.0.max_pairs", 40)
    corpus = Sentences(tmp_path, value)
    rows, entry = corpus.clean("train", [corpus.archive(pairs, "de")], "de-en")
    assert len(rows) == 40
    assert set(rows) < set(whole)
    assert (entry["read"], entry["removed"]["cap"]) == (len(whole), len(whole) - 40)
    assert entry["files"] == {"de-en": len(pairs)}
    assert (entry["corpus"], entry["role"]) == ("Toy+train", "train")


@pytest.mark.parametrize("empty", ["", " ", "?!", "…"])
def test_sentences_without_a_letter_are_one_sentence(tmp_path, empty):
    pairs = [*sentences(50, "de"), ("leer", empty)]
    parts = Sentences(tmp_path).of_language("de", pairs)
    found = [part for part, rows in parts.items() if any(row[2] == len(pairs) for row in rows)]
    assert found == ([] if not empty.strip() else [expected_part("")])


def test_a_sentence_that_is_not_utf_8_is_counted_in_one_part(tmp_path):
    corpus = Sentences(tmp_path, clean={"undecodable": "drop"})
    pairs = sentences(50, "de")
    sides = ["".join(f"{pair[at]}\n" for pair in pairs).encode() for at in (0, 1)]
    archive = tmp_path / "de-en.txt.zip"
    moses(archive, sides[0] + b"gut\n", sides[1] + b"\xff\xfe\n", corpus="Toy")
    entries = {part: corpus.clean(part, [archive], "de-en")[1] for part in SHARES}
    counts = {part: entry["removed"]["undecodable"] for part, entry in entries.items()}
    assert counts == {**dict.fromkeys(SHARES, 0), expected_part(""): 1}
    assert sum(entry["read"] for entry in entries.values()) == len(pairs) + 1


@pytest.mark.parametrize("form", ["tsv", "two", "jsonl"])
def test_own_files_are_divided_by_the_sentence_of_any_language(tmp_path, form):
    rows = [(french, german) for german, french in sentences(100, "de")]
    place = write_form(tmp_path / "own", form, ("fr", "de"), rows)
    files = {"files": {"fr-de": place}}
    value = BY_SENTENCE | {
        "splits": {"Mine": {"sentences": "fr", "parts": SHARES}},
        "corpora": [{"name": "Mine", "part": part, **files} for part in ("train", "test")],
        "validation": {"name": "Mine", "part": "validation", **files},
    }
    corpus = Sentences(tmp_path, value)
    paths = [tmp_path / "own" / path for path in ([place] if form != "two" else place)]
    with paths[0].open("a") as file:  # a bad row is counted in one part
        file.write("alone\n" if form != "two" else "")
    bad = 0
    for part in SHARES:
        found, entry = corpus.clean(part, paths, "de-fr")
        assert [row[2] for row in found] == lines_in(part, [row[0] for row in rows])
        assert entry["kept"] == len(found) == entry["read"] - entry["removed"]["malformed"]
        bad += entry["removed"]["malformed"]
    assert bad == (form != "two")
