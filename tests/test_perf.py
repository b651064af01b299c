"""The scripts of perf/ run on the demo corpus and end in the line that is compared."""

import json
import multiprocessing
import re
import sys
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import torch
import yaml
from conftest import ROOT, needs
from made import forked
from made.golden import FOLDER
from made.models import export, write_model
from made.text import runs

from ems.base.errors import EmsError
from ems.model.devices import check_precision

PEERS = {  # script: the extra that its peers need, their modules
    "train_throughput": ("bench", ["datasets", "sentence_transformers", "accelerate"]),
    "eval_throughput": ("peers", ["transformers", "sentence_transformers"]),
    "mine_throughput": ("faiss", ["faiss"]),
    "align_throughput": ("bench", ["sentalign"]),
    "use_throughput": ("export", ["onnxruntime", "sentence_transformers", "onnx"]),
}
FIGURES = yaml.safe_load((FOLDER / "perf_figures.yaml").read_text())  # of the last line
PLUS_PEERS = ("st", "st_both", "st_loop")
PERL = ("text_throughput", "segmenters", "eval_throughput")
FLAGS = {"segmenters": ["--names", "moses", "none"], "company": ["--settings=default"]}
MISSING = {"use_throughput": ["--model=none", "--pairs=none"]}  # required


@pytest.fixture(autouse=True)
def run(monkeypatch, tmp_path):
    """Run a script in this process; its measurements are forks that have imported the peers."""
    monkeypatch.syspath_prepend(str(ROOT / "perf"))
    libraries = ["torch", "sentence_transformers", "datasets", "accelerate"]
    multiprocessing.set_forkserver_preload(libraries)
    watch = import_module("measured").watch

    def figures(command, what):
        out, peak = tmp_path / "stdout", [0]
        out.unlink(missing_ok=True)
        process = forked.script(command[1:], out)
        watch(process.pid, peak)
        process.join()
        assert process.exitcode == 0, what
        return json.loads(out.read_text().splitlines()[-1]), peak[0] / 1e6

    def run_script(name, *flags):
        script = import_module(name)
        if name != "mine_throughput":  # its processes are started as for a user
            monkeypatch.setattr(script, "figures", figures, raising=False)
        words = [name, "--demo", "--repeats=1", f"--out={tmp_path / 'out.json'}", *flags]
        monkeypatch.setattr(sys, "argv", words)
        script.main()

    return run_script


@pytest.fixture
def refusal(run, tmp_path, capsys):
    """The one line with which a script ends before it measures anything."""

    def message(*words):
        with pytest.raises(SystemExit) as end:
            run(*words)
        assert capsys.readouterr().out == ""
        assert not (tmp_path / "out.json").exists()
        assert "\n" not in end.value.code
        return end.value.code

    return message


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_that_cannot_be_imported_is_refused(refusal, monkeypatch, name):
    needs(runs("moses"), "the segmenter moses cannot run here")

    def broken(module):
        raise RuntimeError("broken\nhere")

    monkeypatch.setattr("measured.import_module", broken)
    line = refusal(name, *MISSING.get(name, ()))
    extra = f"pip install '.[{PEERS[name][0]}]'"
    assert all(part in line for part in ("broken here", extra, "--no-peer"))


def test_float16_without_a_gpu_is_refused_as_by_the_trainer(refusal):
    line = refusal("train_throughput", "--no-peer", "--precision=float16")
    with pytest.raises(EmsError, match=re.escape(line)):
        check_precision("float16", torch.device("cpu"))


@pytest.mark.parametrize("name", PERL)
def test_missing_perl_is_refused(refusal, tmp_path, monkeypatch, name):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "install Debian's package `perl`" in refusal(name)


def user_files(folder):
    pairs = [(f"kalo mi {at}", f"ne ru so {at}") for at in range(300)]
    model = write_model(folder / "model", ["de", "en"], [line for pair in pairs for line in pair])
    (folder / "pairs.tsv").write_text("".join("\t".join(pair) + "\n" for pair in pairs))
    return [f"--model={model}", f"--pairs={folder / 'pairs.tsv'}"]


@pytest.mark.parametrize("name", FIGURES)
def test_a_script_ends_in_the_line_of_its_figures(name, run, tmp_path, capsys, monkeypatch):
    needs(name not in PERL or runs("moses"), "the segmenter moses cannot run here")
    flags = user_files(tmp_path) if name == "use_throughput" else FLAGS.get(name, [])
    peers = name in PEERS and all(map(find_spec, PEERS[name][1]))
    flags = flags if peers or name not in PEERS else [*flags, "--no-peer"]
    if name == "use_throughput":
        monkeypatch.setattr(import_module(name), "export", export)
    if name == "text_throughput":
        for module in ("text_steps", name):
            monkeypatch.setattr(f"{module}.SCALES", (1, 4))
    run(name, *flags)
    line = capsys.readouterr().out.splitlines()[-1]
    last = {key: float(value) for key, value in (word.split("=") for word in line.split())}
    figures = {"with_peers": ""} | FIGURES[name]
    assert last.keys() == {*figures["own"].split(), *figures["with_peers"].split() * peers}
    assert all(value > 0 or key == "flores_s" for key, value in last.items())  # 0.0 s is possible
    check = globals().get(f"check_{name}")
    check(last, json.loads((tmp_path / "out.json").read_text()))


def check_text_throughput(last, measures):
    stages, table = ("prepare", "sample", "encode"), measures["table"]
    assert set(table) == {*stages, "zip to shard", "bare Perl", "the plain way"}
    whole = table["zip to shard"]["cpu_s"]
    assert whole == pytest.approx(sum(table[stage]["cpu_s"] for stage in stages))


def check_align_throughput(last, measures):
    for size in ("long", "many"):
        rows = measures["measured"][size]
        assert last[f"{size}_s"] == pytest.approx(rows["ours"]["seconds"], abs=0.01)
        assert rows["ours"]["strict"] > rows["lengths"]["strict"]


def check_text_keys(last, measures):
    assert measures == {"lines": 900, **last}


def check_language_identifiers(last, measures):
    own = measures["py3langid"]
    assert own["whole"]["mean"] >= own["cut"]["mean"] > 50
    assert len(own["whole"]["accuracy"]) == 4
    assert last["whole"] == pytest.approx(own["whole"]["mean"], abs=0.01)


def check_segmenters(last, measures):
    assert (last["languages"], last["lines"]) == (2, 600)
    rows = measures["languages"].values()
    differ = [row["differ"] for row in rows]
    assert last["differ"] == sum(differ) > 500  # nearly all lines have punctuation
    assert last["worst_per_1000"] == pytest.approx(max(differ) / 0.3, abs=0.01)
    cpu = [sum(row["cpu_s"][name] for row in rows) for name in ("moses", "none")]
    assert measures["ratio"] == pytest.approx(cpu[0] / cpu[1])


def check_train_throughput(last, measures):
    rows = {name: sizes["1200"] for name, sizes in measures["trainers"].items()}
    assert rows.keys() - {"st"} == {"contrastive", "ems", "ems-quarter", "plain"}
    assert all(row["pairs_per_s"] > 0 and row["rss_anon_mb"] > 50 for row in rows.values())


def test_the_static_recipe_is_measured_next_to_static_embeddings(run, tmp_path, capsys):
    peers = all(map(find_spec, PEERS["train_throughput"][1]))
    run("train_throughput", "--size=plus", *([] if peers else ["--no-peer"]))
    rows = json.loads((tmp_path / "out.json").read_text())["trainers"]
    assert rows.keys() == {"plus", "plus-pieces", *(("st", "st-both", "st-loop") * peers)}
    pairs = [f"{ours}_vs_{peer}" for ours in ("plus", "plus_pieces") for peer in PLUS_PEERS * peers]
    words = capsys.readouterr().out.splitlines()[-1].split()
    assert [word.partition("=")[0] for word in words] == [*pairs, "peak_mb"]


@pytest.mark.slow
def test_a_static_model_is_measured_next_to_model2vec(run, monkeypatch, tmp_path, capsys):
    texts = [
        line for code in ("de", "fr") for line, _ in import_module("measured").demo_lines(code)
    ]
    sizes = {"layers": 0, "positions": "none", "table": 16, "ngrams": 64}
    model = write_model(tmp_path / "model", ["de", "en"], texts, 300, sizes=sizes)
    peers = all(map(find_spec, ("model2vec", "sentence_transformers")))
    run("use_throughput", "--static", f"--model={model}", *([] if peers else ["--no-peer"]))
    *_, line = capsys.readouterr().out.splitlines()
    ways = ("million_first", "flores_first", "flores_warm", "tatoeba_first", "tatoeba_warm")
    keys = [f"{way}_vs_model2vec" for way in ways] * peers
    assert [word.partition("=")[0] for word in line.split()] == [*keys, "load_s", "peak_mb"]
    rows = json.loads((tmp_path / "out.json").read_text())["measured"]
    assert rows["flores 1 ours"].keys() >= {"first_per_s", "first_per_cpu_s", "warm_per_s"}


def test_a_repeated_text_changes_one_word_to_a_word_of_the_text():
    lines = ["a b b", "b c d e", "b b a"]
    rows = [line.split() for line in import_module("static_texts").changed(lines, 30)]
    assert [" ".join(row) for row in rows[:3]] == lines
    pairs = [(row, lines[at % 3].split()) for at, row in enumerate(rows)]
    changes = [sum(one != other for one, other in zip(*pair, strict=True)) for pair in pairs]
    assert max(changes) == 1
    assert sum(changes) > 10
    assert {word for row in rows for word in row} == {*"abcde"}


def check_eval_throughput(last, measures):
    measured = measures["measured"]
    assert measured["mine"]["mine"]["right"] == measured["mine all"]["mine"]["right"] == 100
    assert measured["flores"]["flores"]["directions"] == 4 * 3
    assert measures["mine_peak_mb"] == measured["mine all"]["mine"]["rss_anon_mb"] > 50


def check_mine_throughput(last, measures):
    assert all((row["rounds"], row["right"]) == (3, 100) for row in measures["measured"].values())


def check_company(last, measures):
    ours, theirs = measures["medians"]["ems"], measures["medians"]["default"]
    expected = {name: ours["alone"] / ours[name] for name in ("loop", "training")}
    assert last == pytest.approx(expected | {"alone": ours["alone"] / theirs["alone"]}, abs=0.005)


def check_serve_load(last, measures):
    assert measures["errors"] == 0
    assert last["p50_ms"] <= last["p99_ms"]


def check_use_throughput(last, measures):
    measured = measures["measured"]
    assert measured["mine"]["right"] == last["mine_compared_pct"] == 100
    assert last["mine_lines"] == measured["mine"]["lines"] == measured["mine"]["pairs"] == 500
    ratio = measured["ours-int8"]["per_s"] / measured["ours-float32"]["per_s"]
    assert measures["int8_vs_float"] == pytest.approx(ratio)


def test_a_ratio_of_trainers_uses_the_smallest_vocabulary_or_the_largest():
    rates = {"contrastive": (60, 50), "ems": (40, 30), "ems-quarter": (55, 40)}
    rates |= {"plain": (20, 10), "st": (16, 12)}
    row = lambda rate: {"pairs_per_s": rate, "rss_anon_mb": rate}  # noqa: E731
    results = {name: {"8000": row(a), "32000": row(b)} for name, (a, b) in rates.items()}
    expected = {"contrastive_vs_st": 60 / 16, "ems_vs_st": 40 / 16, "ems32k_vs_st": 30 / 12}
    expected |= {"quarter32k_vs_contrastive": 40 / 50, "contrastive_vs_plain": 60 / 20}
    summary = import_module("train_throughput").summary
    assert summary(results) == expected | {"peak_mb": 30}


def test_a_search_without_time_compares_some_lines_and_finds_all(tmp_path, monkeypatch):
    steps = import_module("use_steps")
    monkeypatch.setattr("ems.use.mining.LEAST_ROWS", 8192)
    steps.write_planted(tmp_path, 20_000)
    hurried = steps.mined(SimpleNamespace(folder=tmp_path, mine_seconds=0))
    assert hurried["compared"] == pytest.approx(100 * 8192 / 20_000)
    assert (hurried["lines"], hurried["right"]) == (20_000, 100)


def check_repairs(last, measures):
    speed, right = measures["speed"], measures["right"]
    assert last["vs_ftfy"] == pytest.approx(speed["ems"] / speed["ftfy"], abs=0.1)
    assert right["not_reviewed"] <= right["changed"] == len(right["changes"])
    assert min(score["damaged"] for score in measures["noise"].values()) > 0
