"""The scripts of perf/ run on the embedded demo corpus and end in the line that is compared."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import torch
from conftest import ROOT, needs
from made.models import write_model
from made.segmenters import runs

from ems.base.errors import EmsError
from ems.model.devices import check_precision

NUMBER = r"(\d+(?:\.\d+)?)"
PEERS = {
    "train_throughput": ("bench", "datasets"),
    "eval_throughput": ("peers", "transformers"),
    "mine_throughput": ("faiss", "faiss"),
    "use_throughput": ("export", "onnxruntime"),
}
FLAGS = {"use_throughput": ("--model=none", "--pairs=none")}  # that must be there


def start(name, out, *flags, **environment):
    """A script run on the demo corpus."""
    command = [sys.executable, str(ROOT / "perf" / f"{name}.py"), "--demo", "--repeats", "1"]
    return subprocess.run(
        [*command, "--out", str(out), *flags],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def demo(name, out, *flags):
    """The lines that a script prints, on the demo corpus, and what it writes to `out`."""
    done = start(name, out, *flags)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), json.loads(out.read_text())


def figures(line, names):
    """The numbers of a last line that has exactly these names."""
    match = re.fullmatch(" ".join(f"{name}={NUMBER}" for name in names), line)
    assert match, line
    return dict(zip(names, map(float, match.groups()), strict=True))


def installed(*modules):
    return all(map(find_spec, modules))


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_that_cannot_be_imported_is_one_line_before_anything_is_measured(tmp_path, name):
    needs(runs("moses"), "the segmenter moses cannot run here")
    extra, module = PEERS[name]
    (tmp_path / f"{module}.py").write_text("raise RuntimeError('broken\\nhere')\n")
    done = start(name, tmp_path / "out.json", *FLAGS.get(name, ()), PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert "broken here" in line
    assert f"pip install '.[{extra}]'" in line
    assert "--no-peer" in line
    assert not (tmp_path / "out.json").exists()


def test_float16_without_a_gpu_is_refused_as_the_trainer_refuses_it(tmp_path):
    done = start("train_throughput", tmp_path / "out.json", "--no-peer", "--precision", "float16")
    assert (done.returncode, done.stdout) == (1, "")
    with pytest.raises(EmsError) as error:
        check_precision("float16", torch.device("cpu"))
    assert done.stderr == f"{error.value}\n"


@pytest.mark.parametrize("name", ["text_throughput", "segmenters", "eval_throughput"])
def test_perl_that_is_missing_is_one_line_before_anything_is_measured(tmp_path, name):
    done = start(name, tmp_path / "out.json", PATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert "install Debian's package `perl`" in line


def test_the_throughput_of_the_text_path_ends_in_its_four_figures(tmp_path):
    needs(runs("moses"), "the segmenter moses cannot run here")
    lines, measures = demo("text_throughput", tmp_path / "out.json")
    last = figures(lines[-1], ["vs_perl", "vs_plain", "lines_per_s_core", "anon_growth_16x"])
    assert all(value > 0 for value in last.values())
    assert measures["lines"] == 2 * 3 * 300
    path = measures["table"]["zip to shard"]["cpu_s"]
    parts = [
        measures["table"][stage]["cpu_s"] for stage in ("clean", "segment", "sample", "encode")
    ]
    assert abs(path - sum(parts)) < 1e-6
    others = {"zip to shard", "bare Perl", "the plain way"}
    assert set(measures["table"]) == {"clean", "segment", "sample", "encode"} | others


def test_two_segmenters_are_compared_language_by_language(tmp_path):
    needs(runs("moses"), "the segmenter moses cannot run here")
    lines, measures = demo("segmenters", tmp_path / "out.json", "--names", "moses", "none")
    names = ["languages", "lines", "differ", "worst_per_1000", "ratio", "least_ratio"]
    last = figures(lines[-1], names)
    assert (last["languages"], last["lines"]) == (2, 600)
    rows = measures["languages"]
    differ = {code: row["differ"] for code, row in rows.items()}
    assert differ.keys() == {"de", "en"}
    assert all(250 < count <= 300 for count in differ.values())  # nearly all have punctuation
    assert last["differ"] == sum(differ.values())
    assert last["worst_per_1000"] == pytest.approx(max(differ.values()) / 0.3, abs=0.01)
    cpu = [sum(row["cpu_s"][name] for row in rows.values()) for name in ("moses", "none")]
    assert measures["ratio"] == pytest.approx(cpu[0] / cpu[1])


def test_the_throughput_of_the_trainer_ends_in_its_six_figures(tmp_path):
    peer = installed("sentence_transformers", "datasets", "accelerate")
    lines, measures = demo(
        "train_throughput", tmp_path / "out.json", *([] if peer else ["--no-peer"])
    )
    of_peer = ["contrastive_vs_st", "ems_vs_st", "ems32k_vs_st"] if peer else []
    of_ours = ["quarter32k_vs_contrastive", "contrastive_vs_plain"]
    last = figures(lines[-1], [*of_peer, *of_ours, "peak_mb"])
    assert set(last) <= set(measures)
    assert set(measures["trainers"]) == {"contrastive", "ems", "ems-quarter", "plain"} | (
        {"st"} if peer else set()
    )
    for sizes in measures["trainers"].values():
        assert list(sizes) == ["1200"]
        assert all(row["pairs_per_s"] > 0 and row["rss_anon_mb"] > 50 for row in sizes.values())
    rates = {name: sizes["1200"]["pairs_per_s"] for name, sizes in measures["trainers"].items()}
    assert abs(measures["contrastive_vs_plain"] - rates["contrastive"] / rates["plain"]) < 1e-6


def test_a_ratio_of_trainers_is_that_of_the_smallest_vocabulary_or_of_the_largest(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "perf"))
    from train_throughput import summary

    rates = {"contrastive": (60, 50), "ems": (40, 30), "ems-quarter": (55, 40)}
    rates |= {"plain": (20, 10), "st": (16, 12)}
    results = {
        name: {
            size: {"pairs_per_s": rate, "rss_anon_mb": rate}
            for size, rate in zip(("8000", "32000"), of, strict=True)
        }
        for name, of in rates.items()
    }
    assert summary(results) == {
        "contrastive_vs_st": 60 / 16,
        "ems_vs_st": 40 / 16,
        "ems32k_vs_st": 30 / 12,
        "quarter32k_vs_contrastive": 40 / 50,
        "contrastive_vs_plain": 60 / 20,
        "peak_mb": 30,
    }


def test_the_throughput_of_evaluation_ends_in_its_four_figures(tmp_path):
    needs(runs("moses"), "the segmenter moses cannot run here")
    peer = installed("sentence_transformers")
    flags = [] if peer else ["--no-peer"]
    lines, measures = demo("eval_throughput", tmp_path / "out.json", *flags)
    of_peer = ["encode_vs_st", "encode1024_vs_st"] if peer else []
    figures(lines[-1], [*of_peer, "mine_peak_mb", "flores_s"])
    measured = measures["measured"]
    for size, name in (("small", "encode_vs_st"), ("ems", "encode1024_vs_st")):
        first, *others = (row["per_s"] for row in measured[f"encode {size}"].values())
        assert len(others) == (1 if peer else 0)
        assert measures.get(name) == (pytest.approx(first / max(others)) if peer else None)
    assert measured["mine"]["mine"]["right"] == measured["mine all"]["mine"]["right"] == 100
    assert measured["flores"]["flores"]["directions"] == 4 * 3
    assert measures["mine_peak_mb"] == measured["mine all"]["mine"]["rss_anon_mb"] > 50


def test_the_throughput_of_mining_ends_in_its_three_figures(tmp_path):
    peer = installed("faiss")
    lines, measures = demo(
        "mine_throughput", tmp_path / "out.json", *([] if peer else ["--no-peer"])
    )
    last = figures(lines[-1], [*(["mine_vs_faiss"] if peer else []), "mine_s", "mine_peak_mb"])
    assert last.keys() <= measures.keys()
    measured = measures["measured"]
    assert measured.keys() == {"ours", *(["faiss"] if peer else [])}
    for row in measured.values():
        assert (row["rounds"], row["right"]) == (3, 100)
        assert row["rss_anon_mb"] > 50
    if peer:
        seconds = {name: row["seconds"] for name, row in measured.items()}
        assert measures["mine_vs_faiss"] == pytest.approx(seconds["faiss"] / seconds["ours"])


def test_the_cost_of_company_ends_in_its_three_figures(tmp_path):
    lines, measures = demo("company", tmp_path / "out.json", "--settings", "default")
    last = figures(lines[-1], ["alone", "loop", "training"])
    rates = measures["medians"]
    assert rates.keys() == {"default", "ems"}
    ours = rates["ems"]
    assert last["alone"] == pytest.approx(ours["alone"] / rates["default"]["alone"], abs=0.005)
    for company in ("loop", "training"):
        assert last[company] == pytest.approx(ours["alone"] / ours[company], abs=0.005)


def test_the_throughput_of_use_ends_in_its_figures(tmp_path):
    pairs = [(f"kalo mi {at}", f"ne ru so {at}") for at in range(300)]
    model = write_model(tmp_path / "model", ["de", "en"], [line for pair in pairs for line in pair])
    (tmp_path / "pairs.tsv").write_text("".join("\t".join(pair) + "\n" for pair in pairs))
    peer = installed("sentence_transformers", "onnxruntime", "onnx")
    flags = [f"--model={model}", f"--pairs={tmp_path / 'pairs.tsv'}"]
    lines, measures = demo(
        "use_throughput", tmp_path / "out.json", *flags, *([] if peer else ["--no-peer"])
    )
    names = ["load_s", "encode_per_s", "bfloat16_vs_float", "int8_vs_float"]
    if peer:
        names += ["folder_mb", "load_st_s", "encode_vs_st", "encode_vs_onnxruntime"]
        names += ["int8_vs_onnxruntime", "static_per_s", "static_vs_st"]
    of_mining = ["mine_s", "mine_lines", "mine_compared_pct", "mine_peak_mb"]
    last = figures(lines[-1], [*names, "score_rows_per_s", *of_mining])
    assert all(value > 0 for value in last.values())
    measured = measures["measured"]
    assert measured["mine"]["right"] == last["mine_compared_pct"] == 100
    assert last["mine_lines"] == measured["mine"]["lines"] == measured["mine"]["pairs"] == 500
    rates = {name: row["per_s"] for name, row in measured.items() if name != "mine"}
    assert len(rates) == (9 if peer else 4)
    of = measures["int8_vs_float"], rates["ours-int8"] / rates["ours-float32"]
    assert of[0] == pytest.approx(of[1])
    if peer:
        assert measures["encode_vs_st"] == pytest.approx(rates["ours-float32"] / rates["st"])


def test_lines_that_a_search_has_no_time_for_get_neighbours_of_others(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "perf"))
    from use_steps import mined, write_planted

    monkeypatch.setattr("ems.use.mining.LEAST_ROWS", 8192)
    write_planted(tmp_path, 20_000)
    hurried = mined(SimpleNamespace(folder=tmp_path, mine_seconds=0))
    assert hurried["compared"] == pytest.approx(100 * 8192 / 20_000)
    assert (hurried["lines"], hurried["right"]) == (20_000, 100)
