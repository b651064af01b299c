"""MTEB's own tasks give our figures for exported vectors (envs/mteb_offline.py)."""

import json
import subprocess
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, SHARED, needs
from made.mteb import call, export_of, mteb_python
from sklearn.metrics import f1_score

from ems.bench.scores import read_score_file
from ems.config.languages import load_languages
from ems.corpora.demo.grammar import read_free

pytestmark = pytest.mark.slow

SCRIPT = ROOT / "envs/mteb_offline.py"
TEXT = [text for sentence in read_free() for text in sentence.values()]
SETS = ("tatoeba", "ntrex", "flores200", "bucc2018", "sib200")
CLOSE = 0.1  # percent, of figures of the same definition


@pytest.fixture(scope="module")
def script():
    """The script as a module; MTEB need not be installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPT.parent)
        yield import_module("mteb_offline")


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return mteb_python(tmp_path_factory)


@pytest.fixture(scope="module")
def folders(demo_mirror):
    """Where the five sets of the demo lie, as words of a command."""
    return ["--experiment", "demo", "--evalset", *(f"{name}={demo_mirror / name}" for name in SETS)]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    languages = ["en", "de", "fr", "es", "ru", "zh", "ja", "ar"]
    return export_of(tmp_path_factory.mktemp("exported"), languages, TEXT, 2500)


def evaluate(model, out, *words):
    """The score files of `ems eval` in a folder."""
    call("eval", "--model", model, "--out", out, "--no-cache", *words)
    return out


@pytest.fixture(scope="module")
def report(python, exported, folders, tmp_path_factory):
    """(the script's JSON, its printed tables, our score files), of all five benchmarks."""
    folder = tmp_path_factory.mktemp("report")
    _, model = exported
    scores = evaluate(model, folder / "scores", "--bench", ",".join(SETS), *folders)
    words = ["--model", model, "--scores", scores, "--out", folder / "mteb.json", *folders]
    words += ["--results", folder / "results"]
    done = subprocess.run([python, SCRIPT, *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    assert not (folder / "results").exists()  # the hub has other sentences than the demo
    return json.loads((folder / "mteb.json").read_text()), done.stdout, scores


def subsets(report):
    return [(name, key, subset) for name in SETS for key, subset in report[0][name].items()]


def test_mteb_has_the_figures_of_its_definitions_for_our_vectors(report):
    for name, key, subset in subsets(report):
        for metric in ("accuracy", "f1"):
            values = subset["mteb"][metric], subset["ours"][metric]
            assert abs(values[0] - values[1]) < CLOSE, (name, key, metric, values)
            assert 0 <= values[0] < 100
    # NTREX: 14 with English; MTEB lacks some other directions, and arb_Arab and zho_Hans of SIB-200
    sizes = {"tatoeba": 8, "ntrex": 46, "flores200": 56, "bucc2018": 4, "sib200": 6}
    assert {name: len(report[0][name]) for name in SETS} == sizes
    assert not any(subset["hub"] for _, _, subset in subsets(report))  # generated sentences
    for name in SETS:
        assert len({subset["mteb"]["f1"] for of, _, subset in subsets(report) if of == name}) > 3


def test_mtebs_accuracy_of_translations_is_our_precision_at_1(report):
    for name, count in (("tatoeba", 8), ("ntrex", 14), ("flores200", 56)):
        rows = read_score_file(report[2] / f"{name}.json").rows
        ours = {(row.source, row.target): row.value for row in rows}
        same = [one for one in report[0][name].values() if one["score_file"] is not None]
        assert len(same) == count
        for one in same:
            assert one["score_file"] == ours[one["source"], one["target"]]
            assert abs(one["mteb"]["accuracy"] - one["score_file"]) < CLOSE
        assert len({one["score_file"] for one in same}) > 3
        assert any(one["mteb"]["f1"] < one["mteb"]["accuracy"] for one in same)


def test_the_tables_have_a_row_for_each_subset_and_the_mean(report):
    tables = report[1].split("\n\n")
    for name, table in zip(SETS, tables, strict=False):
        _, _, mean, *rows = table.strip().split("\n")
        assert len(rows) == len(report[0][name])
        values = [one["mteb"]["f1"] for one in report[0][name].values()]
        assert f"| mean of {len(rows)} | {np.mean(values):.2f} |" in mean


LOADED = """
import sys, json
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import mteb, mteb_offline as m
from ems.commands.common import experiment_of
of = {}
flores = "flores200/flores200_dataset"
for name, folder in (("tatoeba", "tatoeba_v1"), ("sib200", "sib200"), ("flores200", flores)):
    known = mteb.get_task(m.TASKS[name].task).metadata.eval_langs
    read = m.read_subsets(experiment_of("small62"), name, Path(sys.argv[2]) / folder, known)
    m.load_task(name, read)
    of[name] = [subset.hub for subset in read]
print(json.dumps(of))
"""


def test_the_real_sentences_are_those_of_the_hub_to_the_character(python):
    needs(SHARED.is_dir(), "the real benchmarks do not lie beside the project")
    command = [python, "-c", LOADED, SCRIPT.parent, SHARED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    of = json.loads(done.stdout)
    assert of == {"tatoeba": [True] * 112, "sib200": [True] * 60, "flores200": [True] * 3782}


def test_f1_of_mined_pairs_is_that_of_scikit_learn(script):
    draw = np.random.default_rng(1)
    queries = draw.normal(size=(50, 4)).astype(np.float32)
    candidates = (queries + draw.normal(size=(50, 4))).astype(np.float32)
    answers = [int(np.argmax([q @ c for c in candidates])) for q in queries]
    expected = f1_score(range(50), answers, average="weighted", zero_division=0)
    figures = script.mined_figures(queries, candidates)
    assert figures["f1"] == pytest.approx(100 * expected)
    assert 0 < figures["f1"] < figures["accuracy"] < 100
    one_for_all = np.array([[1, 0], [0, 1], [0, 1]], np.float32)
    of_one = script.mined_figures(np.array([[1, 0]] * 3, np.float32), one_for_all)
    assert of_one == pytest.approx({"accuracy": 100 / 3, "f1": 100 * (2 / 4) / 3})


@pytest.mark.parametrize("real", [False, True])
def test_sentence_transformers_finds_the_same_sentences(real, exported, folders, tmp_path):
    """`ems eval` loads the exported folder with sentence-transformers."""
    both, words, languages = exported, folders, 8
    if real:
        needs(SHARED.is_dir(), "the real Tatoeba in ../shared/data")
        text, languages = [], 112
        (tmp_path / "tatoeba").mkdir()
        for path in sorted((SHARED / "tatoeba_v1").glob("tatoeba.*-eng.*")):
            text += (lines := path.read_text(encoding="utf-8").split("\n")[:80])
            (tmp_path / "tatoeba" / path.name).write_text("".join(f"{line}\n" for line in lines))
        both = export_of(tmp_path, list(load_languages()), text, 4000)
        words = ["--experiment", "small62", "--evalset", f"tatoeba={tmp_path / 'tatoeba'}"]
    rows = []
    for at, model in enumerate(both):
        evaluate(model, tmp_path / str(at), "--bench", "tatoeba", *words)
        rows.append(read_score_file(tmp_path / str(at) / "tatoeba.json").rows)
    assert len(rows[0]) == 2 * languages
    for ours, theirs in zip(*rows, strict=True):
        assert ours.direction == theirs.direction
        assert abs(ours.value - theirs.value) <= CLOSE
    assert np.ptp([row.value for row in rows[0]]) > 1


def test_wrong_words_are_one_line(script, exported, folders, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("mteb_common.find_spec", lambda name: None)

    def refused(*words):
        out = str(tmp_path / "x.json")
        assert script.main([*map(str, words), "--out", out, *folders]) == 1
        assert not Path(out).exists()
        return capsys.readouterr().err

    model = ("--model", exported[1])
    assert refused(*model) == (
        "error: mteb is not installed; in this project's folder: pip install '.[mteb]'\n"
    )
    assert "found 'xsim'; allowed: tatoeba, ntrex, flores200, bucc2018, sib200\n" in refused(
        *model, "--bench", "tatoeba,xsim"
    )
    monkeypatch.setattr("mteb_common.find_spec", lambda name: True)
    assert "expected a model folder with model.json" in refused("--model", tmp_path)
