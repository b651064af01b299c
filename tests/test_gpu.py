"""Laws of perf/gpu.py: it runs on a bare machine without network, each part keeps its figures and
its limit, one that fails leaves the others; and a training step waits for no GPU.
"""

import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import torch
from conftest import ROOT, copy_project
from made.bare import CONNECTED, bare_python, write_wheel

# what a borrowed machine had in November 2026, with what these need
BARE = ["torch", "numpy", "pandas", "scipy", "pytest", "psutil", "PyYAML", "safetensors"]
BARE += ["sentencepiece", "sentence-transformers"]
PARTS = ["laws", "throughput", "training", "profile"]
VERSION = "{}.{}".format(*sys.version_info)


@pytest.fixture(scope="module")
def perf():
    """The modules of perf/."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "perf"))
        import gpu_parts
        import gpu_scale
        import gpu_steps
        import gpu_wheels
        import train_throughput

        modules = {"parts": gpu_parts, "scale": gpu_scale, "steps": gpu_steps}
        yield SimpleNamespace(**modules, wheels=gpu_wheels, throughput=train_throughput)


def figures_of(folder):
    return json.loads((folder / "figures.json").read_text())


def last_line(output):
    """The values of the last line by their names."""
    return dict(word.split("=") for word in output.splitlines()[-1].split(" "))


# --- a bare machine


@pytest.fixture(scope="module")
def bare(perf, tmp_path_factory):
    """A checkout, a Python that lacks what such a machine lacks, and the wheels that were collected
    for it by pip.
    """
    folder = tmp_path_factory.mktemp("bare")
    rare = [need.package for need in perf.wheels.NEEDS if need.rare]
    for name in rare:
        write_wheel(folder / "index", name)
    project = copy_project(folder / "checkout")
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder / "index")}
    machine = ("--python", VERSION, "--machine", platform.machine())
    collected = subprocess.run(
        [sys.executable, "perf/gpu.py", "--collect", "wheels", *machine],
        cwd=project.folder,
        env={**os.environ, **offline, "PIP_CONFIG_FILE": os.devnull},
        capture_output=True,
        text=True,
    )
    assert collected.returncode == 0, collected.stderr
    python = bare_python(folder / "python", BARE, {*rare})
    (folder / "tmp").mkdir()

    def run(*flags):
        return subprocess.run(
            [python, "-I", "perf/gpu.py", "--device=cpu", *flags],
            cwd=project.folder,
            env={"PATH": os.defpath, "TMPDIR": str(folder / "tmp"), "PYTHONNOUSERSITE": "1"},
            capture_output=True,
            text=True,
        )

    facts = {"checkout": project.folder, "rare": rare, "said": collected.stdout}
    return SimpleNamespace(folder=folder, run=run, **facts)


def test_collected_are_the_wheels_that_such_a_machine_lacks_in_the_versions_of_the_lock(bare, perf):
    wheels = sorted((bare.checkout / "wheels").iterdir())
    parts = [path.name.split("-") for path in wheels]
    versions = {name.replace("_", "-"): version for name, version, *_ in parts}
    assert versions.keys() == {*bare.rare}
    assert "torch" not in versions
    for package, version in versions.items():
        assert perf.wheels.locked(package) == f"{package}=={version}"
    assert sum(path.stat().st_size for path in wheels) < 30 << 20
    line = rf"^wheels: {len(wheels)} wheels for Python {VERSION}, \d+\.\d MiB$"
    assert re.search(line, bare.said, re.MULTILINE)
    listing = subprocess.run(
        ["git", "check-ignore", "wheels/x.whl"], cwd=ROOT, capture_output=True, text=True
    )
    assert listing.stdout == "wheels/x.whl\n"


def test_without_wheels_a_line_for_each_missing_module_says_what_it_needs(bare, perf):
    done = bare.run()
    assert done.returncode == 1
    *lines, advice = done.stdout.splitlines()
    assert len(lines) == len(bare.rare)
    modules = {need.package: need.module for need in perf.wheels.NEEDS}
    for line, package in zip(lines, bare.rare, strict=True):
        module = modules[package]
        assert re.fullmatch(rf"missing: {module}, for every part: {package}==[\d.]+", line)
    assert f"--collect wheels --python {VERSION}" in advice
    assert not (bare.checkout / "results").exists()


def test_every_part_has_figures_on_a_bare_machine_without_network(bare):
    flags = ("--cases=1", "--sizes=ems", "--seconds=1", "--out=measured")
    done = bare.run("--wheels=wheels", *flags)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr
    assert not (bare.folder / "python" / CONNECTED).exists()
    assert list((bare.folder / "tmp").iterdir()) == []
    report = bare.checkout / "measured"
    names = {str(path.relative_to(report)) for path in report.rglob("*") if path.is_file()}
    logs = {f"logs/{part}.log" for part in ("data", *PARTS)}
    assert names == {"report.md", "figures.json", *logs}

    figures = figures_of(report)
    assert figures["missing"] == []
    assert (figures["data"]["text"], figures["data"]["pairs"]) == ("the embedded demo", 7000)
    assert 40 < figures["data"]["tokens_per_pair"] < 60
    parts = figures["parts"]
    assert {name: part["status"] for name, part in parts.items()} == dict.fromkeys(PARTS, "passed")
    laws = {case["law"] for case in parts["laws"]["cases"]}
    assert {"packed = padded", "fused XTR = dense", "compiled = eager"} < laws
    assert len(laws) == len(parts["laws"]["cases"]) == 10
    trainers = [run["trainer"] for run in parts["throughput"]["runs"]]
    assert trainers == ["ems", "st-loop", "ems-compiled"]
    assert all(run["pairs_per_s"] > 0 for run in parts["throughput"]["runs"])
    training = parts["training"]
    assert training["loss_last"] < training["loss_first"]
    assert training["system"] == "gpu-ten-minutes"
    assert {place.partition(":")[0] for place in training["places"]} == {"ems/model/table.py"}
    assert training["waits_of_log"] > 0
    assert [len(profile["kernels"]) for profile in parts["profile"]["profiles"]] == [15, 15]

    text = (report / "report.md").read_text()
    assert text in done.stdout
    values = last_line(done.stdout)
    assert [values[part] for part in PARTS] == ["passed"] * 4
    assert values["waits_a_step"] == "2.00"
    shown = bare.run("--show=measured").stdout
    assert shown.startswith(text)
    assert shown.splitlines()[-1] == done.stdout.splitlines()[-1]


def test_the_exact_version_of_torch_is_in_the_lock_alone():
    wanted = (ROOT / "pyproject.toml").read_text().partition("[tool.uv]")[0]
    assert re.findall(r'"torch(?:\[.*\])?([^"]*)"', wanted) == [">=2.6"] * wanted.count('"torch')
    assert re.search(r"^torch==", (ROOT / "envs/requirements.lock").read_text(), re.MULTILINE)


# --- wheels


@pytest.mark.parametrize(
    ("tags", "fit"),
    [
        ("py3-none-any", True),
        ("py2.py3-none-any", True),
        ("cp{own}-cp{own}-manylinux_2_17_{machine}.manylinux2014_{machine}", True),
        ("cp38-abi3-manylinux_2_28_{machine}", True),
        ("cp38-cp38-manylinux_2_28_{machine}", False),
        ("cp3999-abi3-manylinux_2_28_{machine}", False),
        ("cp{own}-cp{own}-manylinux_2_17_sparc", False),
        ("cp{own}-cp{own}-win_amd64", False),
    ],
)
def test_a_wheel_fits_by_its_tags(perf, tags, fit):
    own = VERSION.replace(".", "")
    tags = tags.format(own=own, machine=platform.machine())
    assert perf.wheels.fits(f"some_name-1.0-{tags}.whl") == fit


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], rf"no wheels for Python {VERSION} here. Where there is a network"),
        (["a-1-cp38-cp38-any.whl"], "a-1-cp38-cp38-any.whl and others are for another one"),
        (["a-1-py3-none-any.whl", "a-2-py3-none-any.whl"], "two wheels each of a; keep one"),
        (["a-1-py3-none-any.whl"], "a-1-py3-none-any.whl: not a whole wheel"),
    ],
)
def test_a_folder_of_wheels_that_cannot_be_used_is_one_line(perf, tmp_path, names, message):
    for name in names:
        (tmp_path / name).write_bytes(b"PK")
    with pytest.raises(SystemExit, match=message):
        perf.wheels.unpack(tmp_path, tmp_path / "site")


# --- parts that fail, hang and are stopped: the true program, and parts that only print


MACHINE = {"device": "NVIDIA H200", "cores": 16, "python": "3.12.3", "torch": "2.11.0+cu130"}
MACHINE |= {"packages": "numpy 2.5.2", "system": "Linux", "ems": "0.1.0", "cuda": "13.0"}
MACHINE |= {
    "driver": "580.1",
    "memory_gib": 139.8,
    "matmul": "8192",
    "matmul_tflops": 790.0,
    "copy_gb_per_s": 4300.0,
}
EMS = {"size": "ems", "batch": 608, "model": {"layers": 6, "width": 1024}, "pieces": 60_000}
RATES = {"tokens_per_s": 700_000, "ms_per_step": 43.4, "memory_mb": 20_500}
CASE = {"law": "packed = padded", "case": "test_packed[cuda]", "outcome": "passed", "share": 0.25}
FIGURES = {
    "data": {
        **{"machine": MACHINE, "text": "the embedded demo", "pairs": 7000},
        **{"tokens_per_pair": 50.7, "data_seconds": 3.1},
    },
    "laws": {"cases": [CASE, {**CASE, "share": 0.5, "same_bits": False}]},
    "throughput": {
        "runs": [
            {**EMS, **RATES, "trainer": "ems", "pairs_per_s": 12_000, "tflops": 284, "mfu": 0.287},
            {**EMS, **RATES, "trainer": "st-loop", "pairs_per_s": 4_000, "tflops": 91},
            {**EMS, **RATES, "trainer": "ems-compiled", "pairs_per_s": 14_000, "tflops": 332},
        ]
    },
    "training": {
        **{"system": "gpu-ten-minutes", "parameters": 301_000_000, "batch": 4096, "steps": 3000},
        **{"seconds": 60.0, "pairs_per_s": 204_800.0, "steps_in_ten_minutes": 30_000},
        **{"loss_first": 20.1, "loss_last": 3.2, "counted": 50, "waits": 150, "waits_of_log": 4},
        "places": {"ems/model/table.py:48 rows": 150},
    },
    "profile": {
        "profiles": [
            {
                **{"what": "size ems", "steps": 20, "ms_per_step": 43.0, "idle": 0.031},
                **{"waits": 20, "kernels": [{"name": "gemm", "calls": 9, "ms": 8, "share": 0.6}]},
            }
        ]
    },
}
STUB = f"""
import json, os, signal, sys, time

def emit(figures):
    print("figures: " + json.dumps(figures), flush=True)

part, figures = sys.argv[1], json.loads({json.dumps(json.dumps(FIGURES))!s})
own, trainer = figures[part], sys.argv[-3]
if part == "throughput":
    own = {{"runs": [run for run in own["runs"] if run["trainer"] == trainer]}}
broken, how = os.environ.get("BROKEN", "- -").split()
if part == os.environ.get("SLOW"):
    time.sleep(4)
if part != broken or (part == "throughput" and trainer == "ems"):
    emit(own)
elif how == "emits-and-hangs":
    emit({{**own, "running": "test_slow[cuda]"}})
    time.sleep(600)
elif how == "raises":
    raise ValueError("broken")
elif how == "killed":
    sys.stdout.write('figures: {{"half": ')
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)
else:
    print("hangs", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def stub(tmp_path):
    """A function that starts the program with parts that only print their figures."""
    (tmp_path / "perf").mkdir()
    for name in ("gpu.py", "gpu_report.py", "gpu_wheels.py"):
        (tmp_path / "perf" / name).write_text((ROOT / "perf" / name).read_text())
    (tmp_path / "perf/gpu_parts.py").write_text(STUB)
    for name in ("ems", "envs"):
        (tmp_path / name).symlink_to(ROOT / name)

    def start(*flags, broken="- -"):
        return subprocess.Popen(
            [sys.executable, "perf/gpu.py", "--out=report", *flags],
            cwd=tmp_path,
            env={**os.environ, "BROKEN": broken},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(*flags, broken="- -"):
        process = start(*flags, broken=broken)
        return process.communicate()[0], process.returncode

    return SimpleNamespace(start=start, run=run, report=tmp_path / "report")


def test_the_report_of_a_gpu(stub):
    output, status = stub.run("--sizes=ems")
    assert status == 0, output
    text = (stub.report / "report.md").read_text()
    assert text in output
    assert text.startswith("# EMS on NVIDIA H200\n")
    assert "| a matrix product | 790.0 TFLOP/s (8192) |" in text
    assert "7,000 pairs of the embedded demo, 50.7 tokens a pair" in text
    assert "| packed = padded | 2 | 0 | 0 | 50 % | same bits in 0 of 1 |" in text
    line = "| ems: 6 x 1024, 60,000 pieces, 608 pairs a step | EMS | 12,000 | 700,000 | 43.4 | 284"
    # 284 of 790 TFLOP/s; 0.4 x 790 / 284 x 12,000 pairs/s; three times sentence-transformers
    assert f"{line} | 28.7 | 35.9 | 13,352 | 20,500 | 3.00 |" in text
    assert "| 204,800 | 20.1, 3.2 | 30,000 | 3.00 | 0.08 |" in text
    assert "| ems/model/table.py:48 rows | 3.00 |" in text
    assert "| size ems | 20 | 43.0 | 3.1 % | 1.00 |" in text
    assert " 60.0%       8.00       9  gemm" in text
    assert output.splitlines()[-1] == (
        "device=NVIDIA_H200 laws=passed throughput=passed training=passed profile=passed "
        "pairs_per_s_ems=14000 mfu_ems=- of_matmul_ems=0.420 ratio_st=3.50 "
        "pairs_per_s_training=204800 waits_a_step=3.00 idle_ems=0.031"
    )


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    ("how", "ended", "kept"),
    [("raises", "exit status 1", "ValueError: broken"), ("killed", "killed by SIGKILL", "")],
)
def test_a_part_that_fails_is_said_with_its_traceback_and_leaves_the_others(
    stub, part, how, ended, kept
):
    output, status = stub.run("--sizes=ems", broken=f"{part} {how}")
    assert status == 1
    parts = figures_of(stub.report)["parts"]
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


@pytest.mark.parametrize(
    ("part", "status", "left_out"),
    [
        ("laws", 1, ["laws (ended at the time limit)"]),  # it has no figures
        ("throughput", 0, ["ems st-loop (ended at the time limit)", "ems ems-compiled"]),
    ],
)
def test_a_part_that_hangs_ends_at_its_limit_and_what_had_no_time_is_named(
    stub, part, status, left_out
):
    output, ended = stub.run("--sizes=ems", "--minutes=0.3", broken=f"{part} hangs")
    assert ended == status
    parts = figures_of(stub.report)["parts"]
    assert parts[part]["left_out"] == left_out
    assert f"Left out, no time: {', '.join(left_out)}." in output
    statuses = dict.fromkeys(PARTS, "passed") | {part: "failed" if status else "passed"}
    assert {name: own["status"] for name, own in parts.items()} == statuses
    assert last_line(output)[part] == statuses[part]


def test_a_process_that_ends_at_its_limit_does_not_take_the_next_one_along(stub, monkeypatch):
    """SIGKILL follows SIGTERM after two seconds, for the same process."""
    monkeypatch.setenv("SLOW", "profile")
    flags = ("--parts=training,profile", "--minutes=0.25")
    _, status = stub.run(*flags, broken="training emits-and-hangs")
    parts = figures_of(stub.report)["parts"]
    assert (status, parts["profile"]["status"]) == (0, "passed")


def test_a_law_that_has_no_time_to_end_is_named(stub):
    _, status = stub.run("--parts=laws", "--minutes=0.1", broken="laws emits-and-hangs")
    (left_out,) = figures_of(stub.report)["parts"]["laws"]["left_out"]
    assert (status, left_out) == (0, "test_slow[cuda] (ended at the time limit)")


def wait_for(condition):
    """Return what a function returns once this is true."""
    for _ in range(600):
        if value := condition():
            return value
        time.sleep(0.1)
    pytest.fail("it took a minute")


def test_a_signal_stops_it_with_the_report_of_what_was_measured(stub):
    run = stub.start("--sizes=ems", broken="training hangs")
    wait_for(lambda: "hangs" in (run.stdout.readline()))
    (child,) = psutil.Process(run.pid).children()
    run.send_signal(signal.SIGTERM)
    output, _ = run.communicate()
    assert run.returncode == 75
    assert not child.is_running()
    figures = figures_of(stub.report)["parts"]
    statuses = {name: part["status"] for name, part in figures.items()}
    assert statuses == {"laws": "passed", "throughput": "passed", "training": "stopped"}
    assert last_line(output)["profile"] == "-"
    assert "## training: stopped" in (stub.report / "report.md").read_text()


def test_some_parts_again_keep_the_figures_of_the_others(stub):
    stub.run("--sizes=ems")
    before = figures_of(stub.report)["parts"]
    _, status = stub.run("--parts=laws,profile", broken="laws raises")
    after = figures_of(stub.report)["parts"]
    assert status == 1
    assert [after[name] for name in ("throughput", "training")] == [
        before[name] for name in ("throughput", "training")
    ]
    assert "cases" not in after["laws"]


def test_figures_that_are_spoilt_are_one_line(stub):
    stub.run("--sizes=ems")
    (stub.report / "figures.json").write_text('{"machine": ')
    for flags in (("--show=report",), ("--parts=laws",)):
        output, status = stub.run(*flags)
        assert status == 1
        assert re.search(r"figures\.json: .*not valid JSON", output)
        assert "Traceback" not in output


def test_a_machine_that_can_run_nothing_leaves_the_report_that_is_there(stub):
    stub.run("--sizes=ems")
    before = (stub.report / "report.md").read_bytes()
    output, status = stub.run(broken="data raises")
    assert (status, (stub.report / "report.md").read_bytes()) == (1, before)
    assert "ValueError: broken" in output
    assert "# EMS on" not in output


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--parts=laws,speed", "speed; allowed: laws, throughput, training, profile"),
        ("--sizes=ems,7x7", "7x7; allowed: ems, lightweight, 12x512"),
        ("--minutes=0", "expected a positive number, found 0"),
        ("--collect=wheels", "expected --python too"),
        ("--show=nowhere", "nowhere/figures.json: expected the figures of an earlier call"),
    ],
)
def test_a_wrong_flag_is_refused_with_what_was_expected(stub, flag, message):
    output, status = stub.run(flag)
    assert status in (1, 2)
    assert message in output


# --- the true parts


def start_true(folder, *flags, **environment):
    """The program in this checkout."""
    return subprocess.Popen(
        [sys.executable, "perf/gpu.py", "--out", str(folder), *flags],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_without_a_gpu_it_says_so_and_fails(tmp_path):
    run = start_true(tmp_path, CUDA_VISIBLE_DEVICES="")
    output, _ = run.communicate()
    assert run.returncode == 1
    line = r"^PyTorch .* finds no GPU here; the same in small: --device cpu$"
    assert re.search(line, output, re.MULTILINE)
    assert not (tmp_path / "report.md").exists()


def test_killed_it_leaves_its_figures_and_no_process(tmp_path):
    run = start_true(tmp_path, "--device=cpu", "--parts=training", "--seconds=500")
    figures = tmp_path / "figures.json"
    wait_for(lambda: figures.exists() and '"steps"' in figures.read_text())
    (child,) = psutil.Process(run.pid).children()
    run.kill()
    run.communicate()
    wait_for(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
    training = figures_of(tmp_path)["parts"]["training"]
    assert (training["status"], training["steps"] > 0) == ("stopped", True)
    assert "| gpu-ten-minutes |" in (tmp_path / "report.md").read_text()


def test_the_laws_are_the_tests_that_have_devices(perf):
    """No other test runs on a device if there is one."""
    tests = {path.name: path for path in (ROOT / "tests").glob("test_*.py")}
    laws = {name for name, path in tests.items() if perf.parts.has_laws(path)}
    assert {"test_devices.py", "test_train_float16.py"} <= laws
    named = {name for name, path in tests.items() if re.search(r"\bDEVICES\b", path.read_text())}
    assert named - {Path(__file__).name} == laws


@pytest.fixture(scope="module")
def measured(perf, tmp_path_factory):
    """The flags of a part, with what `data` makes of the demo."""
    folder = tmp_path_factory.mktemp("data")
    options = SimpleNamespace(device="cpu", folder=folder, shared=None, size="ems", seconds=1)
    perf.parts.data(options)
    return options


def waits_of(perf, options, trainer, planted=False):
    """Where a step of one of our trainers waits for a GPU, by file."""
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


@pytest.mark.parametrize("trainer", ["ems", "contrastive"])
def test_a_step_waits_for_no_gpu(perf, measured, trainer):
    assert waits_of(perf, measured, trainer) == {}


def test_a_wait_is_noticed(perf, measured):
    """A guard for the law above. XTR of some sentences waits for the number of their labels."""
    assert waits_of(perf, measured, "ems", planted=True) == {"elsewhere": 1}
    assert "ems/model/objectives/fused.py" in waits_of(perf, measured, "ems-quarter")


@pytest.mark.parametrize(
    ("ranges", "length"), [([], 0), ([(1, 3), (2, 5), (7, 8)], 5), ([(0, 9), (1, 2)], 9)]
)
def test_the_time_of_kernels_that_overlap_counts_once(perf, ranges, length):
    assert perf.steps.union(ranges) == length


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
