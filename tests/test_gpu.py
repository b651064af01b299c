"""Laws of perf/gpu.py: it runs on a bare machine, and a part that fails leaves the others."""

import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import torch
from conftest import ROOT, copy_project
from made import gpu_stub
from made.bare import CONNECTED, bare_python, write_wheel
from made.golden import FOLDER, check, replay

pytestmark = pytest.mark.slow

# what a borrowed machine had in November 2026, with what these need
BARE = ["torch", "numpy", "pandas", "scipy", "pytest", "psutil", "PyYAML", "safetensors"]
BARE += ["sentencepiece", "sentence-transformers"]
PARTS = ["laws", "throughput", "training", "profile"]
VERSION = "{}.{}".format(*sys.version_info)
FIGURES = json.loads((FOLDER / "gpu/figures.json").read_text())  # which a stub of each part prints


@pytest.fixture(scope="module")
def perf():
    names = {"parts": "gpu_parts", "scale": "gpu_scale", "steps": "gpu_steps"}
    names |= {"wheels": "gpu_wheels", "throughput": "train_throughput"}
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "perf"))
        yield SimpleNamespace(**{name: import_module(file) for name, file in names.items()})


def parts_of(folder):
    return json.loads((folder / "figures.json").read_text())["parts"]


def start(folder, *flags, **environment):
    """Start the program of a checkout."""
    command, variables = [sys.executable, "perf/gpu.py", *flags], {**os.environ, **environment}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, cwd=folder, env=variables, **streams)


def last_line(output):
    return dict(word.split("=") for word in output.splitlines()[-1].split(" "))


@pytest.fixture(scope="module")
def bare(perf, tmp_path_factory):
    """A checkout, a Python without some packages, and the wheels that pip collected for it."""
    folder = tmp_path_factory.mktemp("bare")
    rare = [need.package for need in perf.wheels.NEEDS if need.rare]
    for name in rare:
        write_wheel(folder / "index", name)
    project = copy_project(folder / "checkout")
    project.edit("perf/gpu_scale.py", "Size(model, 5_000, 16)", "Size(model, 5_000, 4)")
    project.edit("perf/gpu_scale.py", '"batch_pairs": 32', '"batch_pairs": 8')
    project.edit("perf/gpu_steps.py", "PROFILED = 10, 50, 20", "PROFILED = 2, 50, 3")
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder / "index")}
    project.environment |= {**offline, "PIP_CONFIG_FILE": os.devnull}
    flags = ("--collect", "wheels", "--python", VERSION, "--machine", platform.machine())
    collected = project.run(sys.executable, "perf/gpu.py", *flags)
    python = bare_python(folder / "python", BARE, {*rare})
    (folder / "tmp").mkdir()
    project.environment = {"PATH": os.defpath, "TMPDIR": str(folder / "tmp")}
    # threads that spin take the cores of other tests, and of one another
    project.environment |= {"PYTHONNOUSERSITE": "1", "OMP_WAIT_POLICY": "PASSIVE"}

    def run(*flags):
        return project.run(str(python), "-I", "perf/gpu.py", "--device=cpu", *flags, expect=None)

    facts = {"checkout": project.folder, "rare": rare, "said": collected.stdout}
    return SimpleNamespace(folder=folder, run=run, **facts)


def test_the_missing_wheels_are_collected_in_the_versions_of_the_lock(bare, perf):
    wheels = sorted((bare.checkout / "wheels").iterdir())
    parts = [path.name.split("-") for path in wheels]
    versions = {name.replace("_", "-"): version for name, version, *_ in parts}
    assert versions.keys() == {*bare.rare}
    for package, version in versions.items():
        assert perf.wheels.locked(package) == f"{package}=={version}"
    assert sum(path.stat().st_size for path in wheels) < 30 << 20
    line = rf"^wheels: {len(wheels)} wheels for Python {VERSION}, \d+\.\d MiB$"
    assert re.search(line, bare.said, re.MULTILINE)


def test_without_wheels_each_missing_module_is_named(bare, perf):
    done = bare.run()
    assert done.returncode == 1
    *lines, advice = done.stdout.splitlines()
    modules = {need.package: need.module for need in perf.wheels.NEEDS}
    for line, package in zip(lines, bare.rare, strict=True):
        assert line.startswith(f"missing: {modules[package]}, for every part: {package}==")
    assert f"--collect wheels --python {VERSION}" in advice
    assert not (bare.checkout / "results").exists()


def test_every_part_has_figures_on_a_bare_machine_without_network(bare):
    flags = ("--cases=1", "--sizes=ems", "--seconds=1", "--out=measured")
    done = bare.run("--wheels=wheels", *flags)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr
    assert not (bare.folder / "python" / CONNECTED).exists()
    assert list((bare.folder / "tmp").iterdir()) == []
    report = bare.checkout / "measured"
    logs = {path.stem for path in (report / "logs").iterdir()}
    assert logs == {"data", *PARTS}
    figures = json.loads((report / "figures.json").read_text())
    assert figures["missing"] == []
    assert (figures["data"]["text"], figures["data"]["pairs"]) == ("the embedded demo", 7000)
    parts = figures["parts"]
    assert {name: part["status"] for name, part in parts.items()} == dict.fromkeys(PARTS, "passed")
    laws = {case["law"] for case in parts["laws"]["cases"]}
    assert {"packed = padded", "fused XTR = dense", "compiled = eager"} < laws
    assert len(laws) == len(parts["laws"]["cases"]) == 10
    rates = {run["trainer"]: run["pairs_per_s"] for run in parts["throughput"]["runs"]}
    assert list(rates) == ["ems", "st-loop", "ems-compiled"]
    training = parts["training"]
    assert training["loss_last"] < training["loss_first"]
    assert {place.partition(":")[0] for place in training["places"]} == {"ems/model/table.py"}
    assert [len(profile["kernels"]) for profile in parts["profile"]["profiles"]] == [15, 15]
    assert last_line(done.stdout)["waits_a_step"] == "2.00"
    shown = bare.run("--show=measured").stdout
    assert shown.startswith((report / "report.md").read_text())
    assert shown.splitlines()[-1] == done.stdout.splitlines()[-1]


def test_the_exact_version_of_torch_is_in_the_lock_alone():
    wanted = (ROOT / "pyproject.toml").read_text().partition("[tool.uv]")[0]
    assert re.findall(r'"torch(?:\[.*\])?([^"]*)"', wanted) == [">=2.6"] * wanted.count('"torch')
    assert re.search(r"^torch==", (ROOT / "envs/requirements.lock").read_text(), re.MULTILINE)


def test_a_wheel_fits_by_its_tags(perf):
    here = {"own": VERSION.replace(".", ""), "machine": platform.machine()}

    def fits(tags):
        return str(perf.wheels.fits(f"some_name-1.0-{tags.format(**here)}.whl"))

    replay("gpu/wheels.txt", fits)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], rf"no wheels for Python {VERSION} here. Where there is a network"),
        (["a-1-cp38-cp38-any.whl"], "a-1-cp38-cp38-any.whl and others are for another one"),
        (["a-1-py3-none-any.whl", "a-2-py3-none-any.whl"], "two wheels each of a; keep one"),
        (["a-1-py3-none-any.whl"], "a-1-py3-none-any.whl: not a whole wheel"),
    ],
)
def test_a_folder_of_wheels_that_cannot_be_used_is_refused(perf, tmp_path, names, message):
    for name in names:
        (tmp_path / name).write_bytes(b"PK")
    with pytest.raises(SystemExit, match=message):
        perf.wheels.unpack(tmp_path, tmp_path / "site")


@pytest.fixture
def stub(tmp_path):
    (tmp_path / "perf").mkdir()
    for name in ("gpu.py", "gpu_report.py", "gpu_wheels.py"):
        (tmp_path / "perf" / name).write_text((ROOT / "perf" / name).read_text())
    (tmp_path / "perf/gpu_parts.py").write_text(Path(gpu_stub.__file__).read_text())
    for name in ("ems", "envs"):
        (tmp_path / name).symlink_to(ROOT / name)

    def stub_start(*flags, broken="- -"):
        return start(tmp_path, "--out=report", *flags, BROKEN=broken, FIGURES=json.dumps(FIGURES))

    def run(*flags, broken="- -"):
        process = stub_start(*flags, broken=broken)
        return process.communicate()[0], process.returncode

    return SimpleNamespace(start=stub_start, run=run, report=tmp_path / "report")


def test_the_report_of_a_gpu(stub):
    output, status = stub.run("--sizes=ems")
    assert status == 0, output
    text = (stub.report / "report.md").read_text()
    assert text in output
    varying = r"after \d+ of \d+ s|\d{4}-\d\d-\d\d [\d:]+|\d+ minutes"  # times and the date
    check("gpu/report.md", re.sub(varying, "...", f"{text}\n{output.splitlines()[-1]}\n"))


ENDS = {"raises": ("exit status 1", "ValueError: broken"), "killed": ("killed by SIGKILL", "")}
FAILURES = [*((part, "raises") for part in PARTS), ("throughput", "killed")]


@pytest.mark.parametrize(("part", "how"), FAILURES)
def test_a_part_that_fails_leaves_its_traceback_and_the_other_parts(stub, part, how):
    ended, kept = ENDS[how]
    output, status = stub.run("--sizes=ems", broken=f"{part} {how}")
    assert status == 1
    parts = parts_of(stub.report)
    assert {name for name, own in parts.items() if own["status"] == "failed"} == {part}
    errors = parts[part]["errors"]
    assert {error["ended"] for error in errors} == {ended}
    assert kept in "\n".join(errors[0]["output"])
    assert f"{ended}. The end of its output:" in (stub.report / "report.md").read_text()
    for name in set(PARTS) - {part}:
        for key, value in FIGURES[name].items():
            assert parts[name][key] == value
    if part == "throughput":  # the first of its three
        assert parts[part]["runs"] == FIGURES[part]["runs"][:1]
        assert [error["what"] for error in errors] == ["ems st-loop", "ems ems-compiled"]
    assert last_line(output)[part] == "failed"


ENDED = "ended at the time limit"


@pytest.mark.parametrize(
    ("broken", "status", "left_out"),
    [
        ("laws hangs", 1, [f"laws ({ENDED})"]),  # it has no figures
        ("laws emits-and-hangs", 0, [f"test_slow[cuda] ({ENDED})"]),
        ("throughput hangs", 0, [f"ems st-loop ({ENDED})", "ems ems-compiled"]),
    ],
)
def test_a_part_that_hangs_ends_at_its_limit_and_names_the_rest(stub, broken, status, left_out):
    part = broken.split()[0]
    output, ended = stub.run("--sizes=ems", "--minutes=0.15", broken=broken)
    assert ended == status
    parts = parts_of(stub.report)
    assert parts[part]["left_out"] == left_out
    assert f"Left out, no time: {', '.join(left_out)}." in output
    statuses = dict.fromkeys(PARTS, "passed") | {part: "failed" if status else "passed"}
    assert {name: own["status"] for name, own in parts.items()} == statuses
    assert last_line(output)[part] == statuses[part]


def test_a_process_that_ends_at_its_limit_does_not_end_the_next(stub, monkeypatch):
    """SIGKILL follows SIGTERM after two seconds, for the same process."""
    monkeypatch.setenv("SLOW", "profile")
    flags = ("--parts=training,profile", "--minutes=0.15")
    _, status = stub.run(*flags, broken="training emits-and-hangs")
    assert (status, parts_of(stub.report)["profile"]["status"]) == (0, "passed")


def wait_for(condition):
    for _ in range(600):
        if value := condition():
            return value
        time.sleep(0.1)
    pytest.fail("it took a minute")


def test_a_signal_stops_it_with_the_report_so_far(stub):
    run = stub.start("--sizes=ems", broken="training hangs")
    wait_for(lambda: "hangs" in (run.stdout.readline()))
    (child,) = psutil.Process(run.pid).children()
    run.send_signal(signal.SIGTERM)
    output, _ = run.communicate()
    assert run.returncode == 75
    assert not child.is_running()
    statuses = {name: part["status"] for name, part in parts_of(stub.report).items()}
    assert statuses == {"laws": "passed", "throughput": "passed", "training": "stopped"}
    assert last_line(output)["profile"] == "-"
    assert "## training: stopped" in (stub.report / "report.md").read_text()


def test_a_later_call_keeps_the_report_and_the_figures_of_other_parts(stub):
    stub.run("--sizes=ems")
    report, parts = (stub.report / "report.md").read_bytes(), parts_of(stub.report)
    output, status = stub.run(broken="data raises")  # a machine that can run nothing
    assert (status, (stub.report / "report.md").read_bytes()) == (1, report)
    assert "ValueError: broken" in output
    _, status = stub.run("--parts=laws,profile", broken="laws raises")
    after = parts_of(stub.report)
    assert status == 1
    assert all(after[name] == parts[name] for name in ("throughput", "training"))
    assert "cases" not in after["laws"]
    (stub.report / "figures.json").write_text('{"machine": ')
    for flag in ("--show=report", "--parts=laws"):
        output, status = stub.run(flag)
        assert status == 1
        assert re.search(r"figures\.json: .*not valid JSON", output)
        assert "Traceback" not in output


def test_a_wrong_flag_is_refused_with_what_was_expected(stub):
    def refusal(flag):
        output, status = stub.run(flag)
        return f"{status}: {output.splitlines()[-1]}"

    replay("gpu/flags.txt", refusal)


def test_without_a_gpu_it_says_so_and_fails(tmp_path):
    run = start(ROOT, f"--out={tmp_path}", CUDA_VISIBLE_DEVICES="")
    output, _ = run.communicate()
    assert run.returncode == 1
    line = r"^PyTorch .* finds no GPU here; the same in small: --device cpu$"
    assert re.search(line, output, re.MULTILINE)
    assert not (tmp_path / "report.md").exists()


def test_killed_it_leaves_its_figures_and_no_process(tmp_path):
    run = start(ROOT, f"--out={tmp_path}", "--device=cpu", "--parts=training", "--seconds=500")
    report = tmp_path / "report.md"
    wait_for(lambda: report.exists() and "| gpu-ten-minutes |" in report.read_text())
    (child,) = psutil.Process(run.pid).children()
    run.kill()
    run.communicate()
    wait_for(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
    training = parts_of(tmp_path)["training"]
    assert (training["status"], training["steps"] > 0) == ("stopped", True)


def test_the_laws_are_the_tests_with_devices(perf):
    tests = {path.name: path for path in (ROOT / "tests").glob("test_*.py")}
    laws = {name for name, path in tests.items() if perf.parts.has_laws(path)}
    assert {"test_devices.py", "test_train_finite.py"} <= laws
    named = {name for name, path in tests.items() if re.search(r"\bDEVICES\b", path.read_text())}
    assert named - {Path(__file__).name} == laws


@pytest.fixture(scope="module")
def measured(perf, tmp_path_factory):
    """The flags of a part, with the demo's data."""
    folder = tmp_path_factory.mktemp("data")
    options = SimpleNamespace(device="cpu", folder=folder, shared=None, size="ems", seconds=1)
    perf.parts.data(options)
    return options


def waits_of(perf, options, trainer, planted=False):
    """Where a step of one of our trainers waits for a GPU, by file; with a `planted` wait."""
    job = perf.scale.job_of(options, "lightweight")
    still = {"dropout": 0, "attention_dropout": 0}  # a CPU's own dropout reads a number
    job.settings = job.settings.overridden({"model": still})
    steps = perf.steps.our_steps(job, trainer)
    next(steps)
    waits = perf.steps.Waits(job.device)
    with waits.counted():
        next(steps)
        if planted:
            torch.ones(1).item()
    return {place.partition(":")[0]: count for place, count in waits.places.items()}


def test_only_a_planted_wait_is_noticed(perf, measured):
    """XTR of some sentences waits for the number of their labels."""
    assert waits_of(perf, measured, "contrastive") == {}
    assert waits_of(perf, measured, "ems", planted=True) == {"elsewhere": 1}
    assert "ems/model/objectives/fused.py" in waits_of(perf, measured, "ems-quarter")


@pytest.mark.parametrize(
    ("ranges", "length"), [([], 0), ([(1, 3), (2, 5), (7, 8)], 5), ([(0, 9), (1, 2)], 9)]
)
def test_the_time_of_kernels_that_overlap_counts_once(perf, ranges, length):
    assert perf.steps.union(ranges) == length


def test_a_trainer_that_fails_is_left_out(perf, tmp_path, monkeypatch):
    def measure(name, pieces, folder, options):
        if name == "st":
            raise perf.throughput.FailedRun("out of memory")
        return {"pairs_per_s": 10.0, "rss_anon_mb": 1}

    monkeypatch.setattr(perf.throughput, "prepare", lambda *_: {8_000: 8_000, 32_000: 32_000})
    monkeypatch.setattr(perf.throughput, "measure", measure)
    options = SimpleNamespace(trainers=["ems", "st", "plain"], size="small", demo=False)
    options.shared, options.repeats = tmp_path, 2
    results, failed = perf.throughput.run_all(tmp_path, options)
    assert (failed, results.keys()) == (["st"], {"ems", "plain"})
    assert list(perf.throughput.summary(results)) == ["peak_mb"]
