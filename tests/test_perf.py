"""The scripts of perf/ run on the embedded demo corpus and end in the line that is compared."""

import json
import re
import subprocess
import sys

import pytest
from conftest import ROOT, needs
from tools_made import runs


def demo(name, out):
    """The lines that a script prints, on the demo corpus, and what it writes to `out`."""
    script = ROOT / "perf" / f"{name}.py"
    command = [sys.executable, str(script), "--demo", "--repeats", "1", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), json.loads(out.read_text())


def test_the_throughput_of_the_text_path_ends_in_its_four_figures(tmp_path):
    needs(runs("moses"), "the segmenter moses cannot run here")
    lines, found = demo("text_throughput", tmp_path / "out.json")
    number = r"(\d+(?:\.\d+)?)"
    form = rf"vs_perl={number} vs_plain={number} lines_per_s_core={number} anon_growth_16x={number}"
    last = re.fullmatch(form, lines[-1])
    assert last
    assert all(float(value) > 0 for value in last.groups())
    assert found["lines"] == 2 * 3 * 300
    path = found["table"]["zip to shard"]["cpu_s"]
    parts = [found["table"][stage]["cpu_s"] for stage in ("clean", "segment", "sample", "encode")]
    assert abs(path - sum(parts)) < 1e-6
    others = {"zip to shard", "bare Perl", "the plain way"}
    assert set(found["table"]) == {"clean", "segment", "sample", "encode"} | others


def test_the_throughput_of_the_trainer_ends_in_its_five_figures(tmp_path):
    lines, found = demo("train_throughput", tmp_path / "out.json")
    *_, told, last = lines
    number = r"(\d+(?:\.\d+)?|nan)"
    names = ("contrastive_vs_st", "ems_vs_st", "ems32k_vs_st", "contrastive_vs_plain", "peak_mb")
    figures = re.fullmatch(" ".join(f"{name}={number}" for name in names), last)
    assert figures
    ours = {"contrastive", "ems", "plain"}
    assert ours <= set(found["trainers"]) <= ours | {"st"}
    assert ("pip install" in told) == ("st" not in found["trainers"])
    assert ("nan" in figures.groups()) == ("st" not in found["trainers"])
    for sizes in found["trainers"].values():
        assert list(sizes) == ["1200", "1500"]
        assert all(row["pairs_per_s"] > 0 and row["rss_anon_mb"] > 50 for row in sizes.values())
    rates = {name: sizes["1200"]["pairs_per_s"] for name, sizes in found["trainers"].items()}
    assert abs(found["contrastive_vs_plain"] - rates["contrastive"] / rates["plain"]) < 1e-6


def test_the_throughput_of_evaluation_ends_in_its_four_figures(tmp_path):
    needs(runs("moses"), "the segmenter moses cannot run here")
    lines, found = demo("eval_throughput", tmp_path / "out.json")
    number = r"(\d+(?:\.\d+)?|nan)"
    names = ("encode_vs_st", "encode1024_vs_st", "mine_peak_mb", "flores_s")
    figures = re.fullmatch(" ".join(f"{name}={number}" for name in names), lines[-1])
    assert figures
    measured = found["measured"]
    peers = {"encode-st32", "encode-st128"}
    for size, name in (("small", "encode_vs_st"), ("ems", "encode1024_vs_st")):
        rows = measured[f"encode {size}"]
        assert set(rows) - {"encode"} in (peers, set())
        others = [rows[name]["per_s"] for name in peers & set(rows)]
        expected = rows["encode"]["per_s"] / max(others) if others else float("nan")
        assert found[name] == pytest.approx(expected, nan_ok=True)
    assert measured["mine"]["mine"]["right"] == measured["mine all"]["mine"]["right"] == 100
    assert measured["flores"]["flores"]["directions"] == 4 * 3
    assert found["mine_peak_mb"] == measured["mine all"]["mine"]["rss_anon_mb"] > 50
