"""WMT24++: all directions of all files, copies, domains, lengths and xsim equal plain loops."""

import json
from itertools import permutations

import numpy as np
import pytest
from made import golden
from made.bench import Angles, HashEncoder, error_of, naive_best, products, scored, unit
from made.experiments import MINIMAL, changed
from made.scores import EN, both_ways, row, write_file

from ems.bench.scores import read_score_file
from ems.benchmarks.wmt24pp.data import REGIONS
from ems.benchmarks.wmt24pp.table import FIGURES, TABLES
from ems.tables.engine import write_systems

NAMES = REGIONS.read_text("utf-8").split()
WORDS = [1, 5, 6, 10, 11, 20, 21, 80, 81, 200, 3, 3]  # of the English segments; two are the same
DOMAINS = ["news", "social"] * 6


def settings(folder, codes=("en", "de", "pt", "ja"), languages="all"):
    entry = {"version": "v1", "path": str(folder), "languages": languages}
    own = {"languages": [*codes], "evalsets": {"wmt24pp": entry}, "benchmarks": ["wmt24pp"]}
    return changed(MINIMAL, own)


def english(number):
    return "w " * (WORDS[number] - 1) + f"s{min(number, 10)}"


def target(name, number):
    return f"{name} s{0 if (name, number) == ('de_DE', 2) else number}"


def write_segments(folder, name, rows):
    """Rows of domain, source and target, and a bad one."""
    keys = ("domain", "source", "target", "is_bad_source")
    rows = [("canary", "BAD", "BAD", True), *((*each, False) for each in rows)]
    lines = [json.dumps(dict(zip(keys, each, strict=True))) + "\n" for each in rows]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"en-{name}.jsonl"
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path):
    for name in NAMES:
        rows = [(DOMAINS[n], english(n), target(name, n)) for n in range(len(WORDS))]
        write_segments(tmp_path / "wmt24pp", name, rows)
    return tmp_path / "wmt24pp"


def texts_of(name):
    own = {"tl": "fil", "nb": "no"}.get(name, name)
    region = next((each for each in NAMES if own in (each, each.partition("_")[0])), EN)
    return [english(n) if name == EN else target(region, n) for n in range(len(WORDS))]


def naive_right(best, query, candidates):
    """The translation, a copy of it, or the translation of a copy of the query."""
    ours, theirs = texts_of(query), texts_of(candidates)
    return [theirs[b] == theirs[n] or ours[b] == ours[n] for n, b in enumerate(best)]


def test_every_direction_domain_length_and_xsim_equals_a_plain_loop(tmp_path, folder):
    encoder = HashEncoder()
    file = scored(tmp_path, "wmt24pp", folder, encoder, base=settings(folder))
    regions = ["ar_EG", "ar_SA", "fr_CA", "fr_FR", "pt_BR", "pt_PT", "sw_KE", "sw_TZ"]
    assert {name for name in file.languages if "_" in name} == {*regions, "zh_CN", "zh_TW"}
    assert {n for n, own in file.languages.items() if own != "und"} == {
        *("en", "de", "ja", "pt_BR", "pt_PT")
    }
    directions = [each for each in file.rows if not each.measure]
    assert len(directions) == len({each.direction for each in directions}) == 3070
    vectors = {name: unit(encoder.encode(texts_of(name), name)) for name in file.languages}
    hits, wrong = {}, {}
    for each in directions:
        place, one, other = each.direction, vectors[each.source], vectors[each.target]
        hits[place] = naive_right(products(one, other).argmax(1), each.source, each.target)
        assert each.bits().tolist() == hits[place], place
        if EN in (each.source, each.target):
            best = naive_best(one, other, 4, "ratio", among_nearest=True)
            wrong[place] = [not own for own in naive_right(best, each.source, each.target)]
    groups = {name: [name == own for own in DOMAINS] for name in ("news", "social")}
    ends = {"1-5": (1, 5), "6-10": (6, 10), "11-20": (11, 20), "21-40": (21, 40), "41-80": (41, 80)}
    for name, (low, high) in {**ends, "81 or more": (81, 999)}.items():
        groups[f"{name} words"] = [low <= words <= high for words in WORDS]
    measures = [each for each in file.rows if each.measure]
    assert {each.measure for each in measures} == {*groups, "xsim"}
    sides = {frozenset((each.source, each.target)) for each in measures}
    assert sides == {frozenset((EN, name)) for name in ("de", "ja", "pt_BR", "pt_PT")}
    assert len(measures) == 8 * (1 + len(groups))
    for each in measures:
        own = wrong if each.measure == "xsim" else hits
        members = groups.get(each.measure, [True] * len(WORDS))
        expected = [
            right for right, member in zip(own[each.direction], members, strict=True) if member
        ]
        assert each.bits().tolist() == expected
    shares = [np.mean(own) for own in hits.values()]
    assert min(shares) < 0.7 < max(shares)
    assert any(map(any, wrong.values()))
    assert (file.protocol, file.parallel) == ({"k": 4, "margin": "ratio"}, True)


def test_a_copy_of_the_translation_or_of_the_query_is_right_and_another_text_is_not(tmp_path):
    """By angle: B finds the first copy of X, C and D find each other's translations."""
    english, german = ["A", "B", "C", "C", "E"], ["X", "X", "Y", "Z", "V"]
    rows = zip("nnnnn", english, german, strict=True)
    write_segments(tmp_path / "wmt24pp", "de_DE", rows)
    angles = {"A": 0, "B": 4, "C": 90, "E": 10} | {"X": 0, "Y": 95, "Z": 90, "V": 180}
    base = settings(tmp_path / "wmt24pp", ["en", "de"], "experiment")
    file = scored(tmp_path, "wmt24pp", tmp_path / "wmt24pp", Angles(angles), base=base)
    bits = {each.direction: each.bits().tolist() for each in file.rows if not each.measure}
    assert bits["en-de"] == [True, True, True, True, False]  # E finds X
    assert bits["de-en"] == [True, True, True, True, False]  # V finds C


def test_files_of_other_segments_and_damaged_ones_are_errors(tmp_path, folder):
    base = settings(folder)
    rows = [("news", english(n) + "!", target("pt_PT", n)) for n in range(len(WORDS))]
    path = write_segments(folder, "pt_PT", rows)
    message = error_of(tmp_path, "wmt24pp", folder, HashEncoder(), base=base)
    assert message.startswith(f"{path}: expected the English segments of {folder}/en-")
    path.write_text('{"is_bad_source": false, "source": "a", "target": "b"}\n', encoding="utf-8")
    message = error_of(tmp_path, "wmt24pp", folder, HashEncoder(), base=base)
    assert "line 1: expected a segment with is_bad_source, domain" in message


def test_the_tables_have_each_language_with_english_all_directions_and_kinds_of_text(tmp_path):
    kinds = {"en": "en", "de": "de", "pt_BR": "pt", "pt_PT": "pt", "is": "und"}
    for system, plus in (("one", 0), ("two", 7.5)):
        rows = [
            row(a, b, 40 + plus + 5 * len({a, b} & {"de", "en"}))
            for a, b in permutations(kinds, 2)
            if {a, b} != {"pt_BR", "pt_PT"}
        ]
        for place, measure in enumerate(("news", "1-5 words", "6-10 words", "xsim")):
            own = both_ways({"de": 50 + place + plus, "pt_BR": 60, "pt_PT": (70, 71)})
            rows += [each | {"measure": measure} for each in own]
        protocol = {"k": 4, "margin": "ratio"}
        write_file(
            *(tmp_path, system, "wmt24pp", "P@1", rows, kinds), label="source", protocol=protocol
        )
    files = sorted(tmp_path.glob("*/wmt24pp.json"))
    for name in TABLES:
        write_systems(TABLES[name], files, tmp_path / f"{name}.tex")
        golden.check_table(name, tmp_path / f"{name}.tex")
    mean = read_score_file(files[0]).means()[0]
    assert mean.over == "directions from 4 trained languages"
    FIGURES["wmt24pp"](files, tmp_path / "map")
    FIGURES["wmt24pp_length"](files, tmp_path / "lengths")
    drawn = (tmp_path / "lengths.svg").read_text("utf-8")
    assert ">1-5<" in drawn
    assert ">news<" not in drawn
    assert ">pt_PT<" in (tmp_path / "map.svg").read_text("utf-8")
