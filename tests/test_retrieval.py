"""Retrieval: P@1 equals plain loops, a score file names its data, pairs are drawn by a hash."""

import hashlib
import json
import math
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest
from made.bench import Angles, HashEncoder, error_of, naive_best, scored, unit
from made.corpora import DOCUMENTS, write_opus, write_tatoeba, zipped
from made.experiments import MINIMAL, TRAINING_FREE, Settings, changed_jobs, edited
from made.scores import check_golden, counts, hits, values

from ems import __version__
from ems.base.errors import EmsError
from ems.bench import task
from ems.bench.retrieval import normalised
from ems.benchmarks.families.retrieval import draw
from ems.config.languages import load_tatoeba_codes
from ems.corpora.split import part_of_line


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_an_error_names_the_sentence_of_a_zero_or_infinite_vector(value):
    vectors = np.ones((5, 3), np.float32)
    vectors[3] = value
    with pytest.raises(EmsError, match=r"tatoeba de: the embedding of sentence 4 is zero or not"):
        normalised(vectors, "tatoeba de")


# --- Tatoeba


SENTENCES = {  # sentence -> angle of its vector, degrees
    "deu": ({"Eins.": 0, "Zwei.": 50, "Drei.": 200}, {"One.": 10, "Two.": 100, "Three.": 210}),
    "fra": ({"Un.": 0, "Deux.": 90}, {"Hello.": 80, "World.": 95}),
}
# By hand: Zwei (50) is nearer to One (40 away) than to Two (50 away), all else of deu hits;
# Hello (80) is nearer to Deux (10 away) than to Un, all else of fra hits.


@pytest.fixture
def encoder():
    sides = [side for both in SENTENCES.values() for side in both]
    return Angles({text: angle for side in sides for text, angle in side.items()})


@pytest.fixture
def folder(tmp_path):
    """The benchmark as LASER ships it: two files per language."""
    for code, sides in SENTENCES.items():
        write_tatoeba(tmp_path, code, list(zip(*sides, strict=True)))
    return tmp_path / "tatoeba"


def test_tatoeba_scores_are_those_counted_by_hand(folder, tmp_path, encoder):
    check_golden("tatoeba.txt", scored(tmp_path, "tatoeba", folder, encoder).path)
    assert encoder.asked == [  # each side as its own language
        (spoken, list(side))
        for code, language in (("deu", "de"), ("fra", "fr"))
        for spoken, side in zip((language, "en"), SENTENCES[code], strict=True)
    ]
    chosen = {"tatoeba": {"version": "toy", "languages": ["fr"]}}
    assert list(values(scored(tmp_path, "tatoeba", folder, encoder, evalsets=chosen))) == ["fra"]


def test_a_score_file_has_hashes_of_its_data_and_its_system(folder, tmp_path, encoder):
    def hashes(**changes):
        path = scored(tmp_path, "tatoeba", folder, encoder, **changes).path
        scores = json.loads(path.read_text())
        return path.read_bytes(), scores["data_sha256"], scores["system_hash"]

    whole, data, system = hashes()
    assert hashes() == (whole, data, system)  # the same inputs give the same bytes
    assert hashes(train={"steps": 2})[1] == data
    assert hashes(train={"steps": 2})[2] != system
    assert hashes(system="ngram")[2] != system
    assert hashes(description="other words", tables={"printed": ["EMS"]})[1:] == (data, system)
    (folder / "tatoeba.fra-eng.eng").write_text("World.\nHello.\n")
    assert hashes()[1] != data
    assert hashes()[2] == system


def test_a_checkout_that_is_not_installed_can_be_scored(folder, tmp_path, encoder, monkeypatch):
    def installed(name):
        if name == "ems":
            raise PackageNotFoundError(name)
        return f"{name}'s"

    monkeypatch.setattr(task, "version", installed)
    scores = json.loads(scored(tmp_path, "tatoeba", folder, encoder).path.read_text())
    assert scores["versions"] == {"ems": __version__, "numpy": "numpy's", "torch": "torch's"}


def test_an_error_names_the_language_of_a_vector_that_is_not_finite(folder, tmp_path, encoder):
    encoder.vectors["World."] = math.nan
    message = error_of(tmp_path, "tatoeba", folder, encoder)
    assert message.startswith("tatoeba fra, English: the embedding of sentence 2")


def test_an_unseen_language_is_und_in_the_file_and_for_the_encoder(tmp_path):
    codes = load_tatoeba_codes()
    for code in codes:
        write_tatoeba(tmp_path, code, [(f"{code} {at}", f"of {code} {at}") for at in range(3)])
    encoder, every = HashEncoder(), {"tatoeba": {"languages": "all"}}
    scores = scored(tmp_path, "tatoeba", tmp_path / "tatoeba", encoder, evalsets=every)
    assert len(values(scores)) == len(scores.languages) == 112
    seen = {"deu": "de", "fra": "fr"}
    assert scores.languages == {code: seen.get(code, "und") for code in codes}
    unseen = [[f"{code} {at}" for at in range(3)] for code in codes if code not in seen]
    asked = {}
    for language, lines in encoder.asked:
        asked.setdefault(language, []).append(lines)
    assert sorted(asked["und"]) == sorted(unseen)
    assert asked["de"] == [["deu 0", "deu 1", "deu 2"]]
    assert len(asked["en"]) == 112


# --- NTREX

DIVISION = {"NTREX": {"documents": DOCUMENTS, "parts": {"train": 0.5, "test": 0.5}}}
NEWS = [{"de": f"Satz {at}", "fr": f"phrase {at}", "en": f"line {at}"} for at in range(40)]
PAPERS = [f"paper.{at // 4}" for at in range(40)]


def of_ntrex(tmp_path, folder, encoder, entry, **changes):
    changes |= {"evalsets": {"ntrex": entry}, "benchmarks": ["ntrex"]}
    return scored(tmp_path, "ntrex", folder, encoder, **changes)


def test_of_a_divided_ntrex_only_the_documents_of_the_part_are_scored(tmp_path):
    folder = write_opus(tmp_path, "NTREX", "v1", NEWS, PAPERS)
    part = part_of_line(PAPERS, DIVISION["NTREX"]["parts"])
    tested = [item for item, name in zip(NEWS, part, strict=True) if name == "test"]
    assert 15 < len(tested) < 25
    encoder, entry = HashEncoder(), {"version": "v1", "part": "test"}
    scores = of_ntrex(tmp_path, folder, encoder, entry, splits=DIVISION)
    written = json.loads(scores.path.read_text())
    assert scores.version == "v1+test"
    assert counts(scores) == {"de": len(tested), "fr": len(tested)}
    expected = [(code, [item[code] for item in tested]) for code in ("de", "en", "fr", "en")]
    assert encoder.asked == expected
    whole = of_ntrex(tmp_path, folder, encoder, {"version": "v1"})  # of one part
    assert (whole.version, counts(whole)) == ("v1", {"de": 40, "fr": 40})
    (folder / DOCUMENTS).write_text("".join(f"{name}\n" for name in ["other", *PAPERS[1:]]))
    of_ntrex(tmp_path, folder, encoder, entry, splits=DIVISION)
    again = json.loads(scores.path.read_text())
    assert again["data_sha256"] != written["data_sha256"]
    assert again["system_hash"] == written["system_hash"]


# --- ParaCrawl and Europarl: pairs are drawn

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
    entry = {"version": CORPUS[benchmark][1], "protocol": {**SMALL, **protocol}}
    return {"evalsets": {benchmark: entry}, "benchmarks": [benchmark]}


def run(tmp_path, benchmark="paracrawl", items=ITEMS, encoder=None, **protocol):
    folder = write_opus(tmp_path, *CORPUS[benchmark], items)
    encoder, changes = encoder or HashEncoder(), changes_of(benchmark, **protocol)
    return scored(tmp_path, benchmark, folder, encoder, **changes)


def naive_draw(pairs, count, seed):
    """Sort by hash, then skip pairs that repeat a sentence of an earlier pair."""

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
    """Pairs with many repeated sentences, some in another case, and two with an empty side."""
    random = np.random.default_rng(seed)
    numbers = random.integers(count // 2, size=(count, 2)).tolist()
    pairs = [(f"Satz {one}", f"line {other}") for one, other in numbers]
    cased = [(one.upper(), f"{other} ") for one, other in pairs[:20]]
    return [*pairs, *cased, ("", "x"), ("y", " ")]


@pytest.mark.parametrize(("count", "seed"), [(1, 1234), (30, 1234), (30, 7), (60, 1234)])
def test_drawn_pairs_are_the_first_by_a_seeded_hash_in_any_file_order(count, seed):
    pairs = repeating(200, 3)
    drawn = draw(lambda: iter(pairs), count, seed)
    assert drawn == naive_draw(pairs, count, seed) == draw(lambda: iter(pairs[::-1]), count, seed)
    assert len(drawn) == count


def test_more_of_a_repetitive_file_is_read_until_enough_pairs_are_drawn():
    pairs = [("der Haftungsausschluss", "the disclaimer")] * 500 + repeating(200, 7)
    assert draw(lambda: iter(pairs), 50, 1) == naive_draw(pairs, 50, 1)
    assert len(draw(lambda: iter([("a", "b"), ("a", "c"), ("d", "e")]), 5, 1)) == 2


@pytest.mark.parametrize("benchmark", list(CORPUS))
@pytest.mark.parametrize("margin", ["ratio", "absolute", None])
def test_p_at_1_is_what_plain_loops_count_in_both_directions(benchmark, margin, tmp_path):
    protocol, encoder = {"margin": margin} if margin else {}, HashEncoder()
    scores = run(tmp_path, benchmark, encoder=encoder, **protocol)
    asked = [(language, len(lines)) for language, lines in encoder.asked]
    assert asked == [("de", 60), ("en", 60), ("fr", 60), ("en", 60)]  # each as its own language
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


def test_the_order_of_the_pairs_does_not_change_the_rows(tmp_path):
    orders = (ITEMS, ITEMS, ITEMS[::-1])
    first, again, turned = (run(tmp_path, items=i).path.read_bytes() for i in orders)
    assert first == again != turned
    assert json.loads(first)["rows"] == json.loads(turned)["rows"]


UNEQUAL = zipped(zip(SIDES, (b"a\n" * 90, b"b\n" * 91), strict=True))


@pytest.mark.parametrize(
    ("spoil", "candidates", "message"),
    [
        (Path.exists, 91, "expected at least 91 pairs without repeated sentences, found 90; lower"),
        (Path.unlink, 60, "no such file"),
        (lambda path: path.write_bytes(UNEQUAL), 60, "equally many lines"),
    ],
    ids=["too few pairs", "missing", "unequal sides"],
)
def test_an_error_names_the_archive_that_cannot_be_drawn_from(tmp_path, spoil, candidates, message):
    folder = write_opus(tmp_path, *CORPUS["paracrawl"], ITEMS)
    spoil(path := folder / "moses" / "de-en.txt.zip")
    changes = changes_of(candidates=candidates)
    error = error_of(tmp_path, "paracrawl", folder, HashEncoder(), **changes)
    assert str(path) in error
    assert message in error


# --- what runs a benchmark again

SETS = {"flores200": "v1", "xsimpp": "v1", "bucc2018": "v2018", "paracrawl": "v5", "sib200": "v1"}
SETS |= {"europarlxsr": "v7"}
DRAWN = {"queries": 2000, "candidates": 200_000, "seed": 1234, "k": 4}
HASHED = MINIMAL | {
    "evalsets": {name: {"version": version} for name, version in SETS.items()},
    "benchmarks": [*SETS, "xsim", "wordorder"],
    "decontaminate": {"against": []},
    "systems": {"ems": {}, "ngram": TRAINING_FREE},
}
OF_FLORES = {"flores200", "xsim", "xsimpp"}
RERUN = [  # key, new value, the benchmarks that run again
    ("evalsets.flores200.version", "v3", OF_FLORES),
    ("evalsets.flores200.protocol", {"k": 4, "margin": "ratio"}, set()),  # the papers' defaults
    ("evalsets.flores200.protocol.k", 5, OF_FLORES),
    ("evalsets.xsimpp.version", "v3", {"xsimpp"}),
    ("evalsets.bucc2018.protocol", {"k": 4, "threshold": "oracle", "missed": 10}, set()),
    ("evalsets.bucc2018.protocol.threshold", "sample", {"bucc2018"}),
    ("evalsets.paracrawl.protocol", DRAWN | {"margin": "ratio"}, set()),
    ("evalsets.europarlxsr.protocol", DRAWN | {"margin": "absolute"}, set()),
    ("evalsets.paracrawl.protocol.candidates", 3000, {"paracrawl"}),
    ("probes.sib200.epochs", 3, {"sib200"}),
    ("documents.split", 0, {"sib200"}),
    ("seed", 5, {"sib200"}),
]


@pytest.mark.parametrize(("path", "new", "expected"), RERUN)
def test_a_benchmark_runs_again_only_if_its_data_or_settings_change(path, new, expected, tmp_path):
    jobs = changed_jobs(Settings(tmp_path, HASHED), HASHED, edited(HASHED, path, new))
    assert {job.split()[2] for job in jobs if job.startswith("bench ngram ")} == expected
    assert ("train ems" in jobs) == (path == "seed")
