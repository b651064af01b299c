"""Laws of the numbers of the command line, and of a stage that runs out of memory: one line."""

import numpy as np
import pytest
import torch

from ems import cli, commands

STAGES = {
    "--workers": ["segment", "--experiment", "x", "--source", "a", "--out", "b"],
    "--piece-lines": ["shards", "--vocabulary", "v", "--source", "a", "--out", "b"],
    "--row": ["inspect"],
    "--heads": ["import-released", "--weights", "a", "--spm", "b", "--out", "c"],
    "--processes": [
        *("train", "--experiment", "x", "--system", "y", "--shards", "a"),
        *("--vocabulary", "b", "--state", "c", "--out", "d"),
    ],
}
BOUNDS = {
    "--workers": (1, 256),
    "--piece-lines": (1, 1_000_000_000),
    "--row": (0, 2**63 - 1),
    "--heads": (0, 1024),
    "--processes": (0, 32),
}
NO_NUMBERS = [
    "-1",
    str(10**30),
    "9" * 5000,
    "nan",
    "inf",
    "1e3",
    "1.5",
    "1_0",
    "0x1",
    "",
    " 1",
    "１",
]


def parsed(flag, text):
    """The value that a flag has, as the stage gets it."""
    options = cli._parser().parse_args([*STAGES[flag], flag, text])
    return getattr(options, flag.removeprefix("--").replace("-", "_"))


@pytest.mark.parametrize("flag", STAGES)
@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_no_whole_number_within_bounds_is_an_error_of_usage(flag, text, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main([*STAGES[flag], flag, text])
    last = capsys.readouterr().err.splitlines()[-1]
    assert end.value.code == 2
    low, high = BOUNDS[flag]
    assert f"argument {flag}: expected a whole number from {low:,} to {high:,}, found" in last
    assert len(last) < 200


@pytest.mark.parametrize(("flag", "bounds"), BOUNDS.items())
def test_a_flag_takes_its_bounds_and_nothing_beyond_them(flag, bounds, capsys):
    low, high = bounds
    assert (parsed(flag, str(low)), parsed(flag, str(high))) == bounds
    for beyond in (low - 1, high + 1):
        with pytest.raises(SystemExit):
            parsed(flag, str(beyond))


def test_every_whole_number_of_the_command_line_has_bounds():
    kinds = {
        flag: options["type"]
        for stage in commands.STAGES
        for flag, options in stage.others.items()
        if options.get("type", commands.path) is not commands.path
        and not isinstance(options["type"], commands.Assignment)
    }
    assert set(kinds) == set(BOUNDS)
    assert int not in kinds.values()
    assert float not in kinds.values()


# --- out of memory


def stage_that(monkeypatch, action):
    """Run `ems index` with `action` in its place; its status."""
    stages = [stage for stage in cli.STAGES if stage.name != "index"]
    own = commands.Stage("index", lambda options: action(), "fail", out=None)
    monkeypatch.setattr(cli, "STAGES", [*stages, own])
    return cli.main(["index"])


def raises(error):
    def action():
        raise error

    return action


OUT_OF_MEMORY = {
    "Python": lambda: bytearray(1 << 62),
    "NumPy": lambda: np.ones((1 << 20, 1 << 20, 100)),
    "PyTorch": lambda: torch.ones(1 << 45),
    "CUDA": raises(torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate 2 GiB")),
    "cuBLAS": raises(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublas")),
    "driver": raises(RuntimeError("CUDA error: out of memory")),
}


@pytest.mark.parametrize("action", OUT_OF_MEMORY.values(), ids=OUT_OF_MEMORY.keys())
def test_a_stage_that_runs_out_of_memory_says_so_in_one_line(monkeypatch, capsys, action):
    assert stage_that(monkeypatch, action) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "error: out of memory" in lines[1]
    assert "train.batch_pairs" in lines[1]
    assert len(lines[1]) < 500


def test_any_other_error_still_says_where_it_happened(monkeypatch, capsys):
    assert stage_that(monkeypatch, raises(RuntimeError("mat1 and mat2"))) == 1
    text = capsys.readouterr().err
    assert "Traceback" in text
    assert "out of memory" not in text
