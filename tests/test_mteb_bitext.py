"""The 13 bitext-mining tasks of MTEB (envs/mteb_bitext.py): what ran on which text, and means."""

import json
import os
import re
import subprocess
from importlib import import_module

import numpy as np
import pytest
from conftest import ROOT
from made.mteb import export_of, mteb_python

from ems.base.files import read_table
from ems.corpora.demo.grammar import read_free

SCRIPT = ROOT / "envs/mteb_bitext.py"
TEXT = [text for sentence in read_free() for text in sentence.values()]
CACHED = ("BornholmBitextMining", "NorwegianCourtsBitextMining", "DiaBlaBitextMining")
OURS = ("tatoeba", "ntrex", "flores200", "bucc2018")

# Fills the cache of `datasets` as a download does: sentences with exactly the numbers that MTEB
# publishes of two tasks, and ten of our own for DiaBLa.
FILL = """
import json, os, sys
from pathlib import Path
import mteb
from datasets import load_dataset
from datasets.naming import camelcase_to_snakecase
sys.path.insert(0, sys.argv[1])
from mteb_common import published_numbers

def texts_like(numbers):
    middle = numbers.texts - 2
    length, longer = divmod(numbers.characters - numbers.shortest - numbers.longest, middle)
    lengths = [numbers.shortest, numbers.longest, *[length + 1] * longer]
    lengths += [length] * (numbers.texts - len(lengths))
    words = [f"{n:04d} ".translate(str.maketrans("0123456789", "etaoinshrd")) for n in range(9999)]
    texts = [(words[n] * each)[: each - 1] + "." for n, each in enumerate(lengths)]
    copies = numbers.texts - numbers.different
    return texts[: numbers.texts - copies] + [texts[-copies - 1]] * copies

cache = Path(os.environ["HF_HOME"]) / "datasets"
for name in sys.argv[2:]:
    task = mteb.get_task(name)
    part, source = task.eval_splits[0], cache.parent / "source" / name
    published = published_numbers(task, part)
    readme = ["---", "configs:"]
    for subset in task.hf_subsets:
        sides = {side: texts_like(numbers) for side, numbers in published[subset].items()}
        if name == "DiaBlaBitextMining":
            sides = {side: texts[2:12] for side, texts in sides.items()}
        rows = [dict(zip(sides, pair)) for pair in zip(*sides.values(), strict=True)]
        (source / subset).mkdir(parents=True)
        path = source / subset / "data.jsonl"
        path.write_text("".join(json.dumps(row) + "\\n" for row in rows))
        readme += [f"- config_name: {subset}", "  data_files:"]
        readme += [f"  - split: {part}", f"    path: {subset}/data.jsonl"]
    (source / "README.md").write_text("\\n".join([*readme, "---", ""]))
    for subset in task.hf_subsets:
        load_dataset(str(source), subset)
    made = cache / camelcase_to_snakecase(name)
    for built in made.glob("*/*/*"):
        if built.is_dir():
            built.rename(built.with_name(task.metadata.dataset["revision"]))
    made.rename(cache / f"mteb___{made.name}")
"""

# MTEB's leaderboard of invented scores, and its mean of bitext mining.
LEADERBOARD = """
import json, sys
import numpy as np
import mteb
from mteb.results import BenchmarkResults, ModelResult, TaskResult
sys.path.insert(0, sys.argv[1])
from mteb_bitext import BENCHMARK, bitext_tasks
draw, results = np.random.default_rng(1), []
for task in bitext_tasks():
    subsets = task.hf_subsets[:20]
    task = mteb.get_task(task.metadata.name, hf_subsets=subsets, eval_splits=task.eval_splits)
    scores = {p: {s: {"main_score": draw.random()} for s in subsets} for p in task.eval_splits}
    results.append(TaskResult.from_task_results(task, scores, evaluation_time=1))
model = ModelResult(
    model_name="sentence-transformers/LaBSE", model_revision="1", task_results=results
)
of = BenchmarkResults(model_results=[model], benchmark=mteb.get_benchmark(BENCHMARK))
(row,) = of.get_benchmark_result().to_dict("records")
scores = {each.task_name: each.get_score() for each in results}
print(json.dumps({"mean": row["BitextMining"], "scores": scores}))
"""


@pytest.fixture(scope="module")
def script():
    """The script as a module; MTEB need not be installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPT.parent)
        yield import_module("mteb_bitext")


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return mteb_python(tmp_path_factory)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return export_of(folder, ["en", "de", "fr", "es", "ru", "zh", "ja", "ar"], TEXT, 2500)


def finish(command, home):
    """The standard output of a command whose cache is in the folder `home`."""
    place = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    place |= {"HF_HOME": str(home), "HF_HUB_OFFLINE": "1"}
    command = [str(word) for word in command]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=place)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def home(python, tmp_path_factory):
    """A home of Hugging Face whose cache has three tasks."""
    home = tmp_path_factory.mktemp("home")
    finish([python, "-c", FILL, SCRIPT.parent, *CACHED], home)
    return home


@pytest.fixture(scope="module")
def report(python, models, home, demo_mirror, tmp_path_factory):
    """(the script's JSON, its printed tables, folder of MTEB's results) of our model folder."""
    folder = tmp_path_factory.mktemp("report")
    sets = [f"{name}={demo_mirror / name}" for name in OURS]
    words = ["--model", models[0], "--experiment", "demo", "--evalset", *sets]
    words += ["--out", folder / "bitext.json", "--results", folder / "results"]
    printed = finish([python, SCRIPT, *words], home)
    return json.loads((folder / "bitext.json").read_text()), printed, folder / "results"


@pytest.mark.slow
def test_each_of_the_13_tasks_says_on_which_data_it_ran_or_why_not(report):
    tasks = {each["task"]: each for each in report[0]["tasks"]}
    assert len(tasks) == 13
    assert {name for name, each in tasks.items() if each["data"] == "cache"} == {*CACHED}
    whole = {name for name, each in tasks.items() if each["whole"]}
    assert whole == {"BornholmBitextMining", "NorwegianCourtsBitextMining"}
    other = tasks["DiaBlaBitextMining"]
    assert (other["ran"], other["published"], other["subsets"]) == (2, 0, 2)
    assert tasks["NollySentiBitextMining"]["reason"] == "no data in the cache"
    assert re.fullmatch(
        r"no data in the cache; our bucc2018 has [\d,]+ sentences of \w\w-en, MTEB [\d,]+",
        tasks["BUCC.v2"]["reason"],
    )
    for each in tasks.values():
        assert bool(each["data"]) == (each["f1"] is not None) == (not each["reason"])
        row = f"| {each['task']} | {each['data'] or 'not run: ' + each['reason']} | "
        assert f"{row}{each['ran']:,} of {each['subsets']:,} | " in report[1]


@pytest.mark.slow
def test_the_mean_is_of_whole_tasks_beside_the_peers_mean_of_the_same(report):
    scores = [each["f1"] for each in report[0]["tasks"] if each["whole"]]
    assert report[0]["mean"] is None
    assert report[0]["mean_of_whole"] == pytest.approx(np.mean(scores))
    assert 0 < min(scores) < max(scores) < 100
    assert "| system | mean of all 13 | mean of these 2 | BornholmBitextMining | " in report[1]
    assert f"| ems | - | {np.mean(scores):.2f} | {scores[0]:.2f} | {scores[1]:.2f} |" in report[1]
    static = "static-similarity-mrl-multilingual-v1 (108M)"
    assert f"| {static} | 50.62 | {(47.98 + 93.6) / 2:.2f} | 47.98 | 93.60 |" in report[1]
    assert "| LaBSE (471M) | 76.35 | - | 45.63 | - |" in report[1]


@pytest.mark.slow
def test_mteb_reads_the_results_of_whole_tasks_alone(report, python, home):
    files = sorted(report[2].rglob("*.json"))
    assert [path.stem for path in files] == [
        "BornholmBitextMining",
        "NorwegianCourtsBitextMining",
    ]
    read = "from mteb import TaskResult; from pathlib import Path; import sys; "
    read += "print(TaskResult.from_disk(Path(sys.argv[1])).get_score())"
    ours = next(each["f1"] for each in report[0]["tasks"] if each["task"] == files[0].stem)
    read_back = 100 * float(finish([python, "-c", read, files[0]], home))
    assert read_back == pytest.approx(ours, abs=0.001)  # MTEB writes six decimals of the fraction


@pytest.mark.slow
def test_an_export_has_the_scores_of_its_model_and_an_empty_cache_none(
    report, python, models, home, tmp_path
):
    words = ["--experiment", "demo", "--tasks", ",".join(CACHED), "--out", tmp_path / "x.json"]
    finish([python, SCRIPT, "--model", models[1], *words], home)
    same = {each["task"]: each for each in report[0]["tasks"]}
    for each in json.loads((tmp_path / "x.json").read_text())["tasks"]:
        if each["task"] in CACHED:
            assert each["f1"] == pytest.approx(same[each["task"]]["f1"], abs=0.5)
        else:
            assert each["reason"] == "not in --tasks"
    printed = finish([python, SCRIPT, "--model", models[0], *words], tmp_path)
    empty = json.loads((tmp_path / "x.json").read_text())
    assert (empty["mean"], empty["mean_of_whole"]) == (None, None)
    assert printed.count("| not run: no data in the cache |") == len(CACHED)


@pytest.mark.slow
def test_the_mean_is_that_of_mtebs_leaderboard(python, script, home):
    of = json.loads(finish([python, "-c", LEADERBOARD, SCRIPT.parent], home))
    assert len(of["scores"]) == 13
    assert script.mean_of(of["scores"], [*of["scores"]]) == pytest.approx(of["mean"])


def outcomes(script, count):
    """All 13 tasks, of which the first `count` ran whole; the others in part."""
    names = [f"Task{at}" for at in range(12)] + ["Tatoeba"]
    return [
        script.Outcome(name, 3, "cache", 3, 3 if at < count else 2, float(at))
        for at, name in enumerate(reversed(names))
    ]


def test_mtebs_mean_needs_all_tasks_whole(script):
    heads, _, ours, *peers = script.compare("own", outcomes(script, 13)).splitlines()
    assert heads.startswith("| system | mean of all 13 | mean of these 13 | Tatoeba |")
    assert ours.startswith("| own | 6.00 | 6.00 | 0.00 | 1.00 |")
    assert "| LaBSE (471M) | 76.35 | - | 81.14 | - |" in "".join(peers)
    heads, _, ours, *_ = script.compare("own", outcomes(script, 12)).splitlines()
    assert "mean of these 12" in heads
    assert ours.startswith("| own | - | 5.50 | 0.00 |")
    last = script.as_table(outcomes(script, 12)).splitlines()[-1]
    assert last == "| Task0 | cache | 3 of 3 | 12.00 | not in the mean: MTEB's text in 2 of 3 |"
    only = script.compare("own", outcomes(script, 1)).splitlines()
    assert "| SONAR (750M) | - | 82.1 |" in only  # as printed, and no mean of one task


def test_a_score_of_text_that_the_model_learnt_from_says_so(script, tmp_path):
    experiment = import_module("ems.commands.common").experiment_of("release62")
    of = {"experiment": "release62"}
    (tmp_path / "ems.json").write_text(json.dumps(of))
    assert script.trained_on("NusaXBitextMining", experiment, tmp_path) == ["NusaX"]
    assert script.trained_on("Tatoeba", experiment, tmp_path) == []
    (tmp_path / "ems.json").write_text(json.dumps({"experiment": "another"}))
    assert script.trained_on("NusaXBitextMining", experiment, tmp_path) == []
    assert "trained on NusaX" in script.Outcome("N", 1, "cache", 1, 1, 1.0, ["NusaX"]).note()


def test_every_printed_score_of_a_peer_has_its_source(script):
    rows = read_table(script.PEERS)
    assert len({(row["model"], row["task"]) for row in rows}) == len(rows) > 40
    for row in rows:
        assert 0 < float(row["f1"]) < 100
        at_commit = "embeddings-benchmark/results|MinishLab/model2vec"
        pattern = rf"https://github.com/({at_commit})/(blob|tree)/[0-9a-f]{{9,40}}/\S+( \(\S+\))?"
        assert re.fullmatch(pattern, row["source"]) or row["source"].endswith("(model card)")
    printed = {row["model"]: row["f1"] for row in rows if row["task"] == script.ALL}
    assert printed["LaBSE"] == "76.35"
    assert printed["static-similarity-mrl-multilingual-v1"] == "50.62"
    assert printed["potion-multilingual-128M"] == "40.72"
