"""Laws of corpora divided by sentence: a sentence, and its near-copies, are in one part, wherever.

`PARTS` of a corpus of pairs with English, in several languages: every English sentence has
translations in all of them, some have two, and some are there again in other clothes.
"""

import hashlib
import random
from dataclasses import replace
from itertools import combinations

import pytest
import yaml
from conftest import SHARED, needs
from made.corpora import moses, moses_of, translations, write_form, write_zip
from made.experiments import MINIMAL, Settings, edited, one_line, shipped
from made.text import law

from ems.base.errors import EmsError
from ems.config.stages import stage_hash
from ems.text.clean import CleanSource, clean_corpus
from ems.text.evalkeys import write_keys

PARTS = {"train": 0.7, "test": 0.1, "validation": 0.2}
CODES = ["de", "fr", "sw"]
DIVIDED = MINIMAL | yaml.safe_load("""
languages: [en, de, fr, sw]
splits: {Toy: {sentences: en, parts: {train: 0.7, test: 0.1, validation: 0.2}}}
corpora:
  - {name: Toy, version: v1, source: nowhere, part: train}
  - {name: Toy, version: v1, source: nowhere, part: test}
validation: {name: Toy, version: v1, source: nowhere, part: validation}
decontaminate: {against: []}
""")


def dressed(text, at):
    """A near-copy of a sentence: its case, punctuation, spaces, width."""
    forms = [str.upper, str.title, "«{}!»".format, "  {} .".format, lambda t: t.replace(" ", " - ")]
    return (forms[at % len(forms)])(text)


def sentences(count, code):
    """Pairs (sentence, English) of a language: each English sentence once or several times."""
    draw = random.Random(code)
    items = list(translations(count, ["en", code], seed=3, least=4))  # English: the same for all
    pairs = [(item[code], item["en"]) for item in items]
    pairs += [(f"{text} {at}", english) for at, (text, english) in enumerate(pairs[::3])]
    pairs += [(f"{code} {at}", dressed(english, at)) for at, (_, english) in enumerate(pairs[::2])]
    return draw.sample(pairs, len(pairs))


class Divided:
    """A corpus on disk, and the parts that the cleaning stage makes of it."""

    def __init__(self, root, value=DIVIDED, **changes):
        self.root, self.experiment = root, Settings(root / "settings", value | changes).load()
        self.keys = root / "keys.tsv"
        write_keys({}, self.keys)

    def archive(self, pairs, code):
        """A zip of (sentence, English)."""
        pair = "-".join(sorted(("en", code)))
        texts = [{code: text, "en": english} for text, english in pairs]
        return write_zip(self.root, "Toy", "v1", pair, texts)

    def clean(self, part, archives, pair, version="v1", name="Toy"):
        """((first, second, line) of a part, the report)."""
        out = self.root / part / f"{pair}.tsv"
        source = CleanSource(f"{name}+{part}", version, pair, tuple(archives))
        entry = clean_corpus(self.experiment, source, self.keys, out)
        rows = [line.split("\t") for line in out.read_text().split("\n")[:-1]]
        return [(first, second, int(line)) for first, second, line in rows], entry

    def of_language(self, code, pairs):
        """part -> its pairs as (sentence, English, line)."""
        pair, archive = "-".join(sorted(("en", code))), self.archive(pairs, code)
        parts = {part: self.clean(part, [archive], pair)[0] for part in PARTS}
        if pair.startswith("en"):
            return {part: [(b, a, line) for a, b, line in rows] for part, rows in parts.items()}
        return parts


def expected_part(english, parts):
    """By a plain loop: where the SHA-256 of the folded sentence falls among the parts by name."""
    digest = hashlib.sha256(law(english).encode()).hexdigest()
    place, end = int(digest[:14], 16) / 16**14, 0
    for name in sorted(parts):
        end += parts[name]
        if place < end:
            return name
    raise AssertionError(place)


@pytest.fixture(scope="module")
def divided(tmp_path_factory):
    """language -> part -> pairs, of three languages."""
    corpus = Divided(tmp_path_factory.mktemp("divided"))
    return {code: corpus.of_language(code, sentences(300, code)) for code in CODES}


def test_a_pair_is_in_the_part_that_the_hash_of_its_sentence_falls_into(divided):
    for code in CODES:
        pairs = sentences(300, code)
        for part, rows in divided[code].items():
            lines = [at for at, row in enumerate(pairs, 1) if expected_part(row[1], PARTS) == part]
            assert [row[2] for row in rows] == lines


def test_the_parts_of_each_language_pair_share_no_line_and_together_they_are_the_corpus(divided):
    for code in CODES:
        lines = [row[2] for rows in divided[code].values() for row in rows]
        assert sorted(lines) == list(range(1, len(sentences(300, code)) + 1))


def test_no_sentence_is_in_two_parts_of_any_two_language_pairs(divided):
    of_part = {
        part: {law(english) for code in CODES for _, english, _ in divided[code][part]}
        for part in PARTS
    }
    assert all(len(keys) > 15 for keys in of_part.values())
    assert all(one.isdisjoint(other) for one, other in combinations(of_part.values(), 2))
    for part in PARTS:  # and it is in that part of every language pair
        own = [{law(english) for _, english, _ in divided[code][part]} for code in CODES]
        assert own[0] == own[1] == own[2]
        texts = [english for code in CODES for _, english, _ in divided[code][part]]
        assert len(set(texts)) > len(set(map(law, texts)))  # copies in other clothes were there


def test_shares_are_close_to_those_asked_for(tmp_path):
    pairs = [(f"satz {at}", f"sentence {at}") for at in range(10_000)]
    parts = Divided(tmp_path).of_language("de", pairs)
    for part, share in PARTS.items():
        assert abs(len(parts[part]) / 10_000 - share) < 0.015


def test_parts_are_the_same_in_other_experiments_and_seeds_and_in_any_order(tmp_path, divided):
    """Other languages, another order of lines, keys and names of parts; not other shares."""
    turned = {"Toy": {"parts": dict(reversed(PARTS.items())), "sentences": "en"}}
    changes = {"seed": 9, "languages": ["fr", "en"], "splits": turned, "clean": {"max_words": 40}}
    pairs = sentences(300, "fr")
    other = Divided(tmp_path / "a", **changes).of_language("fr", pairs[::-1])
    for part in PARTS:
        assert {row[:2] for row in other[part]} == {row[:2] for row in divided["fr"][part]}
    shares = {"Toy": {"sentences": "en", "parts": PARTS | {"train": 0.2, "validation": 0.7}}}
    third = Divided(tmp_path / "b", splits=shares).of_language("fr", pairs)
    assert len(third["validation"]) > 2 * len(other["validation"])


def test_the_sentence_may_be_on_either_side_of_a_pair_and_of_any_of_its_files(tmp_path):
    """en-zh has English first, de-en second; in a file that is turned round it is the other one."""
    pairs = sentences(100, "fr")
    corpus = Divided(tmp_path)
    straight, turned = corpus.archive(pairs, "fr"), tmp_path / "fra-en.zip"
    moses_of(turned, pairs, corpus="Toy", pair="fra-en")
    files = {"variants": {"en-fr": ("en-fr", "fra-en")}, "turned": frozenset({"fra-en"})}
    own = replace(corpus.experiment.corpora[0], **files)
    corpus.experiment = replace(corpus.experiment, corpora=(own,))
    rows, entry = corpus.clean("train", [straight, turned], "en-fr")
    lines = [at for at, row in enumerate(pairs, 1) if expected_part(row[1], PARTS) == "train"]
    assert [row[2] for row in rows] == [*lines, *(at + len(pairs) for at in lines)]
    assert entry["files"] == {"en-fr": len(pairs), "fra-en": len(pairs)}
    assert {law(row[0]) for row in rows} <= {law(english) for _, english in pairs}


def test_the_report_counts_the_part_alone_and_a_cap_draws_from_it(tmp_path, divided):
    pairs, whole = sentences(300, "de"), divided["de"]["train"]
    value = edited(DIVIDED, "corpora.0.max_pairs", 40)
    corpus = Divided(tmp_path, value)
    rows, entry = corpus.clean("train", [corpus.archive(pairs, "de")], "de-en")
    assert len(rows) == 40
    assert set(rows) < set(whole)
    assert (entry["read"], entry["removed"]["cap"]) == (len(whole), len(whole) - 40)
    assert entry["files"] == {"de-en": len(pairs)}
    assert (entry["corpus"], entry["role"]) == ("Toy+train", "train")


@pytest.mark.parametrize("empty", ["", " ", "?!", "…"])
def test_sentences_without_a_letter_are_one_sentence(tmp_path, empty):
    pairs = [*sentences(50, "de"), ("leer", empty)]
    parts = Divided(tmp_path).of_language("de", pairs)
    found = [part for part, rows in parts.items() if any(row[2] == len(pairs) for row in rows)]
    assert found == ([] if not empty.strip() else [expected_part("", PARTS)])


def test_a_sentence_that_is_not_utf_8_is_counted_in_one_part(tmp_path):
    corpus = Divided(tmp_path, clean={"undecodable": "drop"})
    pairs = sentences(50, "de")
    sides = ["".join(f"{pair[at]}\n" for pair in pairs).encode() for at in (0, 1)]
    archive = tmp_path / "de-en.txt.zip"
    moses(archive, sides[0] + b"gut\n", sides[1] + b"\xff\xfe\n", corpus="Toy")
    entries = {part: corpus.clean(part, [archive], "de-en")[1] for part in PARTS}
    counts = {part: entry["removed"]["undecodable"] for part, entry in entries.items()}
    assert counts == {**dict.fromkeys(PARTS, 0), expected_part("", PARTS): 1}
    assert sum(entry["read"] for entry in entries.values()) == len(pairs) + 1


# --- text of one's own


@pytest.mark.parametrize("form", ["tsv", "two", "jsonl"])
def test_files_of_ones_own_are_divided_by_the_sentence_of_any_language(tmp_path, form):
    rows = [(french, german) for german, french in sentences(100, "de")]
    place = write_form(tmp_path / "own", form, ("fr", "de"), rows)
    files = {"files": {"fr-de": place}}
    value = DIVIDED | {
        "splits": {"Mine": {"sentences": "fr", "parts": PARTS}},
        "corpora": [{"name": "Mine", "part": part, **files} for part in ("train", "test")],
        "validation": {"name": "Mine", "part": "validation", **files},
    }
    corpus = Divided(tmp_path, value)
    paths = [tmp_path / "own" / path for path in ([place] if form != "two" else place)]
    seen = {}
    for part in PARTS:
        found, entry = corpus.clean(part, paths, "de-fr", "own", "Mine")
        assert [row[2] for row in found] == [
            at for at, row in enumerate(rows, 1) if expected_part(row[0], PARTS) == part
        ]
        assert entry["read"] == entry["kept"] == len(found)
        seen[part] = len(found)
    assert sum(seen.values()) == len(rows)


def test_a_row_that_is_no_pair_is_counted_in_one_part(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text("alone\n" + "".join(f"{a}\t{b}\n" for a, b in sentences(60, "de")))
    value = edited(DIVIDED, "splits", {"Mine": {"sentences": "en", "parts": PARTS}})
    entries = [{"name": "Mine", "part": part, "files": {"de-en": str(path)}} for part in PARTS]
    corpus = Divided(tmp_path, value | {"corpora": entries[:2], "validation": entries[2]})
    bad = [corpus.clean(part, [path], "de-en", "own", "Mine")[1]["removed"] for part in PARTS]
    assert sum(each["malformed"] for each in bad) == 1


# --- settings


def test_only_how_a_corpus_is_divided_changes_the_hash_of_its_cleaning(tmp_path):
    settings = Settings(tmp_path, DIVIDED)

    def hash_of(value):
        names = {"label": "Toy+train", "version": "v1", "pair": "de-en"}
        return stage_hash(settings.load(value), "clean", **names)

    other = edited(DIVIDED, "splits.Toy.parts", PARTS | {"train": 0.6, "test": 0.2})
    more = edited(DIVIDED, "splits.Other", {"sentences": "fr", "parts": PARTS})
    assert hash_of(DIVIDED) == hash_of(more) != hash_of(other)


SENTENCES = {"sentences": "en", "parts": PARTS}
BY = "divide by document (documents, parts), by sentence (sentences, parts) or by position"
PAIRLESS = "splits.Toy divides by the sentence in en, but there is none in de-fr; leave out pairs"
MISTAKES = [
    ("splits.Toy", {"sentences": "en"}, "splits.Toy.parts: this key is missing"),
    ("splits.Toy", SENTENCES | {"documents": "d.tsv"}, f"splits.Toy: {BY}"),
    ("splits.Toy", SENTENCES | {"first": {"a": 1}, "rest": "b"}, f"splits.Toy: {BY}"),
    ("splits.Toy.sentences", "e n", "splits.Toy.sentences: found 'e n', expected letters"),
    ("splits.Toy.parts.train", 0.8, "splits.Toy.parts: the shares add up to 1.1"),
    ("corpora.0.part", "dev", "found 'dev'; allowed values: train, test, validation (splits.Toy.p"),
    ("corpora.0.pairs", ["de-fr", "de-en"], f"corpora.0.part: {PAIRLESS}"),
    ("validation.pairs", ["de-fr"], f"validation.part: {PAIRLESS}"),
    ("splits.Toy.sentences", "de", "none in en-fr, en-sw; leave out pairs without de"),
]


@pytest.mark.parametrize(("path", "new", "message"), MISTAKES)
def test_a_mistake_is_one_line_that_names_the_key(tmp_path, path, new, message):
    assert message in Settings(tmp_path, DIVIDED).error(edited(DIVIDED, path, new))


def test_documents_of_one_language_and_benchmarks_are_not_divided_by_sentence(tmp_path):
    documents = [{"name": "Toy", "version": "v1", "kind": "documents", "source": "x"}]
    value = DIVIDED | {"corpora": documents, "validation": None}
    message = one_line(Settings(tmp_path).load, value)
    assert "splits.Toy.sentences: a corpus of `kind: documents` is divided by parts" in message
    value = edited(DIVIDED, "splits.NTREX", SENTENCES)
    value = edited(value, "evalsets.ntrex", {"version": "v1", "part": "test"})
    message = one_line(Settings(tmp_path).load, value)
    assert "evalsets.ntrex.part: a benchmark can only be divided by document" in message


# --- the shipped experiment


def test_the_real_tatoeba_is_divided_by_its_english_in_all_language_pairs(tmp_path):
    needs(SHARED.is_dir(), "the real corpora do not lie beside the project")
    experiment, keys = shipped("small62"), tmp_path / "keys.tsv"
    write_keys({}, keys)
    english = {"Tatoeba+train": set(), "Tatoeba+validation": set()}
    for label, pair in ((label, pair) for label in english for pair in ("en-mr", "en-ko")):
        archive = SHARED / "opus/Tatoeba/v2021-08-07/moses" / f"{pair}.txt.zip"
        out = tmp_path / f"{label}.{pair}.tsv"
        source = CleanSource(label, "v2021-08-07", pair, (archive,), held_out=keys)
        entry = clean_corpus(experiment, source, keys, out)
        english[label] |= {law(line.split("\t")[0]) for line in out.read_text().splitlines()}
        if pair == "en-mr":
            assert entry["read"] == {"Tatoeba+train": 10129, "Tatoeba+validation": 267}[label]
    assert english["Tatoeba+train"].isdisjoint(english["Tatoeba+validation"])
    assert len(english["Tatoeba+validation"]) > 250


def test_a_part_that_is_not_read_whole_is_an_error_and_writes_nothing(tmp_path):
    corpus = Divided(tmp_path)
    archive = corpus.archive(sentences(50, "de"), "de")
    archive.write_bytes(archive.read_bytes()[:-30])
    with pytest.raises(EmsError):
        corpus.clean("train", [archive], "de-en")
    assert not (tmp_path / "train/de-en.tsv").exists()
