"""Laws of the retrieval benchmarks: which sentences are drawn, and P@1 as plain loops count it."""

import hashlib
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from experiments_made import Settings
from mining_made import HashEncoder, Listed, naive_best, unit
from mirror_made import write_opus, write_zip
from results_made import counts, hits

from ems.bench.registry import evaluate
from ems.benchmarks.families.retrieval import draw
from ems.config import stage_hash
from ems.errors import EmsError
from ems.scores import read_score_file

CORPUS = {"paracrawl": ("ParaCrawl", "v5"), "europarlxsr": ("Europarl", "v7")}
SMALL = {"queries": 20, "candidates": 60}
# HashEncoder: sentences with the same last word are near; some words are there twice, so that
# not everything is found
ITEMS = [
    {"de": f"Satz {at} w{at % 70}", "fr": f"phrase {at} w{at % 70}", "en": f"line {at} w{at % 65}"}
    for at in range(90)
]


def experiment_of(tmp_path, benchmark, **protocol):
    """The minimal experiment with a retrieval benchmark."""
    entry = {"version": CORPUS[benchmark][1], "protocol": {**SMALL, **protocol}}
    changes = {"evalsets": {benchmark: entry}, "benchmarks": [benchmark]}
    return Settings(tmp_path / "settings").changed(**changes)


def run(tmp_path, benchmark="paracrawl", encoder=None, items=ITEMS, **protocol):
    """Score on a benchmark made of `items`, or in that folder; the written file."""
    folder = items if isinstance(items, Path) else write_opus(tmp_path, *CORPUS[benchmark], items)
    out = tmp_path / "scores" / f"{benchmark}.json"
    experiment = experiment_of(tmp_path, benchmark, **protocol)
    names = {"system": "ems", "benchmark": benchmark}
    evaluate(encoder or HashEncoder(), experiment, names, folder, out)
    return out


def scores_of(*arguments, **protocol):
    return read_score_file(run(*arguments, **protocol))


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
    return [
        *pairs,
        *[(one.upper(), f"{other} ") for one, other in pairs[:20]],
        ("", "x"),
        ("y", " "),
    ]


@pytest.mark.parametrize(("count", "seed"), [(1, 1234), (30, 1234), (30, 7), (60, 1234)])
def test_the_pairs_drawn_are_the_first_in_the_order_of_a_seeded_hash(count, seed):
    pairs = repeating(200, 3)
    drawn = draw(lambda: iter(pairs), count, seed)
    assert drawn == naive_draw(pairs, count, seed)
    assert len(drawn) == count


def test_no_sentence_is_drawn_twice_on_either_side_whatever_its_case():
    drawn = draw(lambda: iter(repeating(300, 4)), 70, 1234)
    for side in zip(*drawn, strict=True):
        assert len({text.lower() for text in side}) == 70


def test_what_is_drawn_does_not_depend_on_the_order_of_the_file():
    pairs = repeating(200, 5)
    assert draw(lambda: iter(pairs[::-1]), 40, 1) == draw(lambda: iter(pairs), 40, 1)


def test_another_seed_draws_others_and_the_same_seed_the_same():
    pairs = repeating(200, 6)
    first = draw(lambda: iter(pairs), 40, 1)
    assert draw(lambda: iter(pairs), 40, 1) == first
    assert set(draw(lambda: iter(pairs), 40, 2)) != set(first)


def test_of_a_file_that_repeats_itself_enough_is_read_to_draw_all():
    pairs = [("der Haftungsausschluss", "the disclaimer")] * 500 + repeating(200, 7)
    assert draw(lambda: iter(pairs), 50, 1) == naive_draw(pairs, 50, 1)


def test_fewer_are_drawn_where_there_are_no_more():
    pairs = [("a", "b"), ("a", "c"), ("d", "e")]
    assert len(draw(lambda: iter(pairs), 5, 1)) == 2


# --- P@1


@pytest.mark.parametrize("benchmark", list(CORPUS))
@pytest.mark.parametrize("margin", ["ratio", "absolute", None])
def test_p_at_1_is_what_plain_loops_count_in_both_directions(benchmark, margin, tmp_path):
    protocol = {"margin": margin} if margin else {}
    scores = scores_of(tmp_path, benchmark, **protocol)
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
    vectors = {
        text: np.random.default_rng(len(text)).normal(size=4)
        for item in ITEMS
        for text in item.values()
    }
    encoder = Listed(vectors)
    run(tmp_path, encoder=encoder)
    assert [(language, len(lines)) for language, lines in encoder.asked] == [
        ("de", 60),
        ("en", 60),
        ("fr", 60),
        ("en", 60),
    ]


def test_the_same_inputs_give_the_same_bytes(tmp_path):
    first = run(tmp_path).read_bytes()
    folder = tmp_path / "opus" / "ParaCrawl" / "v5"
    assert run(tmp_path, items=folder).read_bytes() == first
    turned = run(tmp_path, items=ITEMS[::-1]).read_bytes()
    assert turned != first  # other data ...
    drawn = [json.loads(scores)["rows"] for scores in (first, turned)]
    assert drawn[0] == drawn[1]  # ... of which the same are drawn


# --- bad input


def error_of(*arguments, **protocol):
    with pytest.raises(EmsError) as caught:
        run(*arguments, **protocol)
    return str(caught.value)


def test_too_few_pairs_are_an_error_that_names_the_file_and_the_setting(tmp_path):
    message = error_of(tmp_path, candidates=91)
    assert (
        f"{tmp_path}/opus/ParaCrawl/v5/moses/de-en.txt.zip: expected at least 91 pairs" in message
    )
    assert "found 90; lower evalsets.paracrawl.protocol.candidates" in message


def test_a_missing_archive_is_an_error_that_names_it(tmp_path):
    folder = write_opus(tmp_path, *CORPUS["paracrawl"], ITEMS)
    (folder / "moses" / "en-fr.txt.zip").unlink()
    names = {"system": "ems", "benchmark": "paracrawl"}
    with pytest.raises((EmsError, FileNotFoundError), match=r"en-fr.txt.zip"):
        evaluate(HashEncoder(), experiment_of(tmp_path, "paracrawl"), names, folder, tmp_path / "x")


def test_sides_of_unequal_length_are_an_error_that_names_the_archive(tmp_path):
    folder = write_opus(tmp_path, *CORPUS["paracrawl"], ITEMS)
    path = write_zip(tmp_path, "ParaCrawl", "v5", "de-en", ITEMS)
    with zipfile.ZipFile(path, "a") as archive:
        lines = [archive.read(f"ParaCrawl.de-en.{side}") for side in ("de", "en")]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ParaCrawl.de-en.de", lines[0])
        archive.writestr("ParaCrawl.de-en.en", lines[1] + b"one more\n")
    names = {"system": "ems", "benchmark": "paracrawl"}
    with pytest.raises(EmsError, match=r"de-en.txt.zip: the two sides must have equal line counts"):
        evaluate(HashEncoder(), experiment_of(tmp_path, "paracrawl"), names, folder, tmp_path / "x")


@pytest.mark.parametrize(
    ("name", "corpus"), [("paracrawl", "ParaCrawl"), ("europarlxsr", "Europarl")]
)
def test_a_corpus_that_is_trained_on_cannot_be_retrieved_from(name, corpus, tmp_path):
    settings = Settings(tmp_path)
    value = settings.base | {"corpora": [{"name": corpus, "version": "v8"}]}
    value["evalsets"] = {**settings.base["evalsets"], name: {"version": "v5"}}
    assert f"evalsets.{name}: {corpus} is one of the corpora too" in settings.told(value)


def test_what_is_drawn_is_a_setting_that_only_the_benchmark_reads(tmp_path):
    def hashes(**protocol):
        experiment = experiment_of(tmp_path, "paracrawl", **protocol)
        names = {"system": "ems", "benchmark": "paracrawl"}
        return stage_hash(experiment, "bench", **names), stage_hash(
            experiment, "train", system="ems"
        )

    default = hashes()
    assert hashes(seed=1234, k=4, margin="ratio") == default
    for change in (
        {"queries": 5},
        {"candidates": 50},
        {"seed": 1},
        {"margin": "absolute"},
        {"k": 3},
    ):
        bench, train = hashes(**change)
        assert bench != default[0]
        assert train == default[1]


def test_the_defaults_are_the_papers(tmp_path):
    entries = {name: {"version": version} for name, (_, version) in CORPUS.items()}
    evalsets = Settings(tmp_path).changed(evalsets=entries).evalsets
    common = {"queries": 2000, "candidates": 200_000, "seed": 1234, "k": 4}
    assert evalsets["paracrawl"].protocol == {**common, "margin": "ratio"}
    assert evalsets["europarlxsr"].protocol == {**common, "margin": "absolute"}
