"""Laws of `make gpu`, on a CPU in small: all parts, their table and their last line; a part that
fails or is stopped is said, and the others run.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

import pytest
from conftest import ROOT
from test_perf import installed

KEYS = ["device", "mfu_ems", "pairs_per_s_ems", "ratio_st", "mfu_13x384", "tatoeba58", "flores"]
KEYS += ["laws"]
LAW = """
    import pytest
    from devices_made import DEVICES

    @pytest.mark.parametrize("device", DEVICES)
    @pytest.mark.parametrize("number", [1, 2])
    def test_law(device, number):
        assert number < BELOW
"""


def command(*flags):
    return (sys.executable, "perf/gpu.py", "--device=cpu", *flags)


def last_line(output):
    """The values of the last line by their names."""
    line = output.splitlines()[-1]
    values = dict(word.split("=") for word in line.split(" "))
    assert list(values) == KEYS, line
    return values


def write_law(project, below):
    """Two laws: with `below` 3 they hold, with 2 only the first one does."""
    text = dedent(LAW).replace("BELOW", str(below))
    (project.folder / "tests/test_law.py").write_text(text)


@pytest.fixture
def project(finished):
    """A finished run of `tiny`, whose tests of devices are two small laws."""
    for path in (finished.folder / "tests").glob("test_*.py"):
        path.unlink()
    write_law(finished, below=3)
    return finished


def test_without_a_gpu_it_says_so_in_one_line_and_fails(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "perf/gpu.py"), "--out", str(tmp_path / "gpu.md")],
        capture_output=True,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert "no GPU" in line
    assert "make gpu DEVICE=cpu" in line
    assert not (tmp_path / "gpu.md").exists()


@pytest.mark.parametrize("flag", ["--parts=laws,speed", "--sizes=ems,7x7"])
def test_an_unknown_part_or_size_is_refused_with_those_there_are(flag):
    done = subprocess.run([*command(flag)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert re.search(r"(speed|7x7); allowed: (laws, throughput|ems, 13x384)", done.stderr)


def test_every_part_runs_on_a_cpu_and_ends_in_the_table_and_the_line(project):
    done = project.run(*command("--seconds=2", "--sizes=ems")).stdout
    values = last_line(done)
    peer = installed("sentence_transformers", "datasets", "accelerate")
    assert (values["device"], values["laws"], values["flores"]) == ("cpu", "passed", "-")
    assert (values["mfu_ems"], values["mfu_13x384"]) == ("-", "-")  # no peak of a CPU is known
    assert float(values["pairs_per_s_ems"]) > 0
    assert (float(values["ratio_st"]) > 0) if peer else values["ratio_st"] == "-"

    folder = project.folder / "results/gpu/cpu"
    rate = [json.loads(line) for line in (folder / "rate/times.jsonl").read_text().splitlines()]
    model = json.loads((folder / "trained/model/model.json").read_text())
    assert rate[-1]["step"] == 200
    trained = model["training"]["system"]
    assert (trained["model"]["layers"], trained["model"]["ngrams"]) == (0, 1000)  # the recipe
    assert trained["objectives"]["contrastive"]["margin"] == 0.4
    assert f"{trained['train']['steps']:,} steps take about 0:02" in done
    score = json.loads((folder / "trained/scores/tatoeba.json").read_text())
    mean = sum(row["value"] for row in score["rows"]) / len(score["rows"])
    assert values["tatoeba58"] == f"{mean:.1f}"

    table = (project.folder / "results/gpu-cpu.md").read_text()
    assert table in done
    assert "2 tests, 0 failed, 0 skipped" in table
    assert "| ems: 1 x 32, 1,200 pieces, 16 pairs a step | ours, full EMS loss |" in table
    assert f"| gpu-ten-minutes | {trained['train']['steps']:,} |" in table
    assert model["identity"] in table

    # another call of one part, which fails: the figures of the others stay
    write_law(project, below=2)
    again = last_line(project.run(*command("--parts=laws"), expect=1).stdout)
    assert again == {**values, "laws": "failed"}


def test_a_part_that_fails_is_said_and_the_others_run(project):
    for name in ("perf/train_throughput.py", "ems/train/job.py"):
        with open(project.folder / name, "a") as file:
            file.write("\nif __name__ != 'train_throughput':\n    raise ValueError('broken')\n")
    done = project.run(*command("--seconds=1", "--sizes=ems"), expect=1).stdout
    values = last_line(done)
    failed = {"pairs_per_s_ems", "mfu_ems", "mfu_13x384", "ratio_st", "tatoeba58", "flores"}
    assert {key for key, value in values.items() if value == "failed"} == failed
    assert values["laws"] == "passed"
    table = (project.folder / "results/gpu-cpu.md").read_text()
    assert re.search(r"Training: failed after .* The logs are in results/gpu", table)


def test_a_training_that_is_stopped_goes_on_with_the_next_call(project):
    words = command("--seconds=6", "--parts=training")
    log = project.folder / "results/gpu/cpu/logs/trained.log"
    run = project.start(*words)
    while run.poll() is None and not (log.exists() and "checkpoint at step" in log.read_text()):
        time.sleep(0.1)
    run.send_signal(signal.SIGTERM)
    assert run.wait() == 75
    output = (project.folder / "started.log").read_text()
    values = last_line(output)
    assert (values["tatoeba58"], values["laws"]) == ("stopped", "-")
    (steps,) = re.findall(r"([\d,]+) steps take about", output)

    values = last_line(project.run(*words).stdout)
    assert "resumed at step" in log.read_text()
    assert f"{steps}/{steps} steps" in log.read_text()
    assert 0 <= float(values["tatoeba58"]) <= 100


# --- what a CPU does not have


@pytest.fixture
def perf(monkeypatch):
    """The modules of perf/."""
    monkeypatch.syspath_prepend(str(ROOT / "perf"))
    import gpu
    import gpu_report
    import train_throughput

    return SimpleNamespace(gpu=gpu, report=gpu_report, throughput=train_throughput)


def row(pairs, **more):
    """The figures of a trainer."""
    own = {"pairs_per_s": pairs, "ms_per_step": 1000 * 608 / pairs, "tflops": 1, "rss_anon_mb": 1}
    return {"60000": own | more}


def test_the_line_of_a_gpu_has_the_faster_run_and_the_ratio_of_the_plain_one(perf):
    trainers = {
        "ems": row(12_000, mfu=0.3, gpu_mb=20_000),
        "ems-compiled": row(15_000, mfu=0.375, gpu_mb=20_500),
        "st": row(3_000, mfu=0.075, gpu_mb=60_000),
    }
    model = {"layers": 6, "width": 1024}
    sizes = {"ems": {"batch": 608, "model": model, "trainers": trainers}}
    scores = {"tatoeba": {"mean": 61.23, "of": 58}, "flores200": {"mean": 40.06, "of": 3782}}
    training = {"system": "gpu-ten-minutes", "identity": "0123", "steps": 9000, "pairs": 36_864_000}
    training |= {"seconds": 612.0, "mfu": 0.25, "scores": scores}
    done = {"status": "passed", "minutes": 3.21}
    parts = {
        "laws": {**done, "tests": 33, "failures": 0, "errors": 0, "skipped": 0},
        "throughput": {**done, "sizes": sizes},
        "training": {**done, **training},
    }
    assert perf.report.last_line("NVIDIA H200", parts) == (
        "device=NVIDIA_H200 mfu_ems=0.375 pairs_per_s_ems=15000 ratio_st=4.00 mfu_13x384=- "
        "tatoeba58=61.2 flores=40.1 laws=passed"
    )
    table = perf.report.markdown("NVIDIA H200", "2026-11-23", parts)
    assert "| ems: 6 x 1024, 60,000 pieces, 608 pairs a step | ours, full EMS loss |" in table
    assert "| 12,000 | 50.7 | 1.00 | 30.0 | 20,000 | 4.00 |" in table
    assert "| 36,864,000 | 10.2 | 60,235 | 25.0 | 61.2 | 40.1 | 0123 |" in table
    assert "| flores200, mean of 3,782 |" in table


def test_of_what_was_never_run_the_line_has_a_dash(perf):
    line = perf.report.last_line("NVIDIA H200", {"laws": {}, "throughput": {}, "training": {}})
    values = last_line(line)
    assert set(values.values()) == {"NVIDIA_H200", "-"}


def test_the_laws_are_the_tests_that_have_devices(perf):
    """No other test runs on a device if there is one."""
    tests = {path.name: path for path in (ROOT / "tests").glob("test_*.py")}
    laws = {name for name, path in tests.items() if perf.gpu.has_devices(path)}
    assert {"test_devices.py", "test_train_float16.py"} <= laws
    named = {name for name, path in tests.items() if re.search(r"\bDEVICES\b", path.read_text())}
    assert named - {Path(__file__).name} == laws


def test_a_trainer_that_fails_is_left_out_and_the_others_are_measured(perf, tmp_path, monkeypatch):
    def measure(name, pieces, folder, options):
        if name == "st":
            raise perf.throughput.FailedRun("out of memory")
        measured.append(name)
        return {"pairs_per_s": 10.0 * len(measured), "rss_anon_mb": 1}

    measured = []
    monkeypatch.setattr(perf.throughput, "prepare", lambda *_: {8_000: 8_000, 32_000: 32_000})
    monkeypatch.setattr(perf.throughput, "measure", measure)
    options = SimpleNamespace(
        trainers=["ems", "st", "plain"], size="small", demo=False, shared=tmp_path, repeats=2
    )
    results, failed = perf.throughput.run_all(tmp_path, options)
    assert failed == ["st"]
    assert results.keys() == {"ems", "plain"}
    assert measured == ["ems", "plain"] * 4
    assert list(perf.throughput.summary(results)) == ["peak_mb"]
