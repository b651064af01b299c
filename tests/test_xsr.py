"""Laws of the retrieval benchmarks: which sentences are drawn, and P@1 as plain loops count it."""

import hashlib
import json

import numpy as np
import pytest
from made.bench import HashEncoder, Listed, error_of, naive_best, scored, unit
from made.corpora import write_opus, zipped
from made.experiments import Settings
from made.scores import counts, hits

from ems.base.schema import plain
from ems.benchmarks.families.retrieval import draw

CORPUS = {"paracrawl": ("ParaCrawl", "v5"), "europarlxsr": ("Europarl", "v7")}
SIDES = ("ParaCrawl.de-en.de", "ParaCrawl.de-en.en")  # the members of an archive
SMALL = {"queries": 20, "candidates": 60}
# HashEncoder: sentences with the same last word are near; some words are there twice, so that
# not everything is found
ITEMS = [
    {"de": f"Satz {at} w{at % 70}", "fr": f"phrase {at} w{at % 70}", "en": f"line {at} w{at % 65}"}
    for at in range(90)
]


def changes_of(benchmark="paracrawl", **protocol):
    """A retrieval benchmark as the one of an experiment."""
    entry = {"version": CORPUS[benchmark][1], "protocol": {**SMALL, **protocol}}
    return {"evalsets": {benchmark: entry}, "benchmarks": [benchmark]}


def run(tmp_path, benchmark="paracrawl", encoder=None, items=ITEMS, **protocol):
    """Score on a benchmark made of `items`."""
    folder = write_opus(tmp_path, *CORPUS[benchmark], items)
    encoder, changes = encoder or HashEncoder(), changes_of(benchmark, **protocol)
    return scored(tmp_path, benchmark, folder, encoder, **changes)


# --- which sentences are drawn


def naive_draw(pairs, count, seed):
    """All pairs in the order of their hash, those with a sentence of a pair before left out."""

    def place(pair):
        text = f"{pair[0]}\t{pair[1]}".encode()
        return hashlib.blake2b(text, digest_size=8, key=str(seed).encode()).digest()

    drawn, seen = [], (set(), set())
    for one, other in sorted((p for p in pairs if p[0].strip() and p[1].strip()), key=place):
        if one.lower() not in seen[0] and other.lower() not in seen[1] and len(drawn) < count:
            drawn.append((one, other))
            seen[0].add(one.lower())
            seen[1].add(other.lower())
    return drawn


def repeating(count, seed):
    """Pairs of which many share a sentence, some only but for its case, and some have none."""
    random = np.random.default_rng(seed)
    numbers = random.integers(count // 2, size=(count, 2)).tolist()
    pairs = [(f"Satz {one}", f"line {other}") for one, other in numbers]
    cased = [(one.upper(), f"{other} ") for one, other in pairs[:20]]
    return [*pairs, *cased, ("", "x"), ("y", " ")]


@pytest.mark.parametrize(("count", "seed"), [(1, 1234), (30, 1234), (30, 7), (60, 1234)])
def test_the_pairs_drawn_are_the_first_by_a_seeded_hash_whatever_the_order_of_the_file(count, seed):
    pairs = repeating(200, 3)
    drawn = draw(lambda: iter(pairs), count, seed)
    assert drawn == naive_draw(pairs, count, seed) == draw(lambda: iter(pairs[::-1]), count, seed)
    assert len(drawn) == count


def test_of_a_file_that_repeats_itself_enough_is_read_to_draw_all_that_there_are():
    pairs = [("der Haftungsausschluss", "the disclaimer")] * 500 + repeating(200, 7)
    assert draw(lambda: iter(pairs), 50, 1) == naive_draw(pairs, 50, 1)
    assert len(draw(lambda: iter([("a", "b"), ("a", "c"), ("d", "e")]), 5, 1)) == 2


# --- P@1


@pytest.mark.parametrize("benchmark", list(CORPUS))
@pytest.mark.parametrize("margin", ["ratio", "absolute", None])
def test_p_at_1_is_what_plain_loops_count_in_both_directions(benchmark, margin, tmp_path):
    protocol = {"margin": margin} if margin else {}
    scores = run(tmp_path, benchmark, **protocol)
    margin = margin or {"paracrawl": "ratio", "europarlxsr": "absolute"}[benchmark]
    assert scores.protocol == {**SMALL, "seed": 1234, "k": 4, "margin": margin}
    assert (scores.metric, scores.higher_is_better, scores.parallel) == ("P@1", True, False)
    assert scores.languages == {"de": "de", "fr": "fr"}
    assert counts(scores) == {"de": 20, "fr": 20}
    asked = np.random.RandomState(1234).choice(60, 20, replace=False).tolist()
    for code in ("de", "fr"):
        drawn = naive_draw([(item[code], item["en"]) for item in ITEMS], 60, 1234)
        foreign, english = (
            unit(HashEncoder().encode(side, code)).tolist() for side in zip(*drawn, strict=True)
        )
        for way, queries, candidates in (
            ("to_english", foreign, english),
            ("from_english", english, foreign),
        ):
            best = naive_best([queries[at] for at in asked], candidates, 4, margin)
            right = [at == own for at, own in zip(best, asked, strict=True)]
            row = scores.labelled()[code][way]
            assert hits(row) == right
            assert row.value == pytest.approx(100 * sum(right) / 20)
            assert 0 < sum(right) < 20  # a guard


def test_every_candidate_is_encoded_once_as_its_own_language(tmp_path):
    draw = np.random.default_rng(1)
    encoder = Listed({text: draw.normal(size=4) for item in ITEMS for text in item.values()})
    run(tmp_path, encoder=encoder)
    asked = [(language, len(lines)) for language, lines in encoder.asked]
    assert asked == [("de", 60), ("en", 60), ("fr", 60), ("en", 60)]


def test_the_same_inputs_give_the_same_bytes_and_another_order_of_them_the_same_rows(tmp_path):
    orders = (ITEMS, ITEMS, ITEMS[::-1])
    first, again, turned = (run(tmp_path, items=i).path.read_bytes() for i in orders)
    assert first == again != turned
    assert json.loads(first)["rows"] == json.loads(turned)["rows"]


# --- bad input


def test_more_candidates_than_there_are_pairs_are_an_error_that_names_the_archive(tmp_path):
    folder = write_opus(tmp_path, *CORPUS["paracrawl"], ITEMS)
    changes = changes_of(candidates=91)
    message = error_of(tmp_path, "paracrawl", folder, HashEncoder(), **changes)
    assert str(folder / "moses" / "de-en.txt.zip") in message
    assert "expected at least 91 pairs without repeated sentences, found 90" in message
    assert "lower evalsets.paracrawl.protocol.candidates" in message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"),
        (zipped(zip(SIDES, (b"a\n" * 90, b"b\n" * 91), strict=True)), "equally many lines"),
    ],
    ids=["missing", "unequal sides"],
)
def test_an_archive_that_cannot_be_drawn_from_is_an_error_that_names_it(tmp_path, content, message):
    folder = write_opus(tmp_path, *CORPUS["paracrawl"], ITEMS)
    path = folder / "moses" / "de-en.txt.zip"
    path.write_bytes(content) if content else path.unlink()
    error = error_of(tmp_path, "paracrawl", folder, HashEncoder(), **changes_of())
    assert str(path) in error
    assert message in error


@pytest.mark.parametrize(
    ("name", "corpus"), [("paracrawl", "ParaCrawl"), ("europarlxsr", "Europarl")]
)
def test_a_corpus_that_is_trained_on_cannot_be_retrieved_from(name, corpus, tmp_path):
    settings = Settings(tmp_path)
    value = settings.base | {"corpora": [{"name": corpus, "version": "v8"}]}
    value["evalsets"] = {**settings.base["evalsets"], name: {"version": "v5"}}
    assert f"evalsets.{name}: {corpus} is one of the corpora too" in settings.error(value)


def test_the_defaults_are_the_papers(tmp_path):
    entries = {name: {"version": version} for name, (_, version) in CORPUS.items()}
    evalsets = Settings(tmp_path).changed(evalsets=entries).evalsets
    common = {"queries": 2000, "candidates": 200_000, "seed": 1234, "k": 4}
    assert plain(evalsets["paracrawl"].protocol) == {**common, "margin": "ratio"}
    assert plain(evalsets["europarlxsr"].protocol) == {**common, "margin": "absolute"}
