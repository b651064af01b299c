"""Laws of the numbers of the command line, and of a stage that runs out of memory: one line."""

import argparse
from typing import get_args

import numpy as np
import pytest
import torch

from ems.commands import COMMANDS, cli
from ems.commands.flags import Bounds, flags_of

NUMBERS = {  # without the bounds of a flag no text is a number for it
    flag.label: (name, flag)
    for name, command in COMMANDS.items()
    for flag in flags_of(command)
    if int in (flag.type, *get_args(flag.type))
}
BOUNDS = {
    "--workers": (1, 256),
    "--piece-lines": (1, 1_000_000_000),
    "--piece-streams": (0, 1_000_000),
    "--row": (0, 2**63 - 1),
    "--heads": (0, 1024),
    "--processes": (0, 32),
    "--nodes": (1, 1024),
    "--neighbours": (1, 100),
    "--k": (1, 1000),
    "--dimensions": (0, 65536),
    "--faiss-above": (0, 1 << 40),
    "--port": (0, 65535),
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


@pytest.mark.parametrize("flag", BOUNDS)
@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_no_whole_number_within_bounds_is_an_error_of_usage(flag, text, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main([NUMBERS[flag][0], flag, text])
    last = capsys.readouterr().err.splitlines()[-1]
    assert end.value.code == 2
    low, high = BOUNDS[flag]
    assert f"argument {flag}: expected a whole number from {low:,} to {high:,}, found" in last
    assert len(last) < 200


@pytest.mark.parametrize(("name", "bounds"), BOUNDS.items())
def test_a_flag_takes_its_bounds_and_nothing_beyond_them(name, bounds, capsys):
    parser, (low, high) = argparse.ArgumentParser(), bounds
    NUMBERS[name][1].add_to(parser)
    values = [vars(parser.parse_args([name, str(number)])) for number in bounds]
    assert [tuple(value.values()) for value in values] == [(low,), (high,)]
    for beyond in (low - 1, high + 1):
        with pytest.raises(SystemExit):
            parser.parse_args([name, str(beyond)])


def test_every_number_of_the_command_line_has_bounds():
    assert set(NUMBERS) == set(BOUNDS)
    assert all(flag.note(Bounds) for _, flag in NUMBERS.values())


@pytest.mark.parametrize("text", ["nan", "inf", "", "1,06", "1.06x"])
def test_a_threshold_is_a_finite_number(text, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["score", "--threshold", text])
    assert end.value.code == 2
    assert "argument --threshold: expected a number, found" in capsys.readouterr().err


# --- out of memory


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
    monkeypatch.setitem(COMMANDS, "index", lambda: action())
    assert cli.main(["index"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "error: out of memory" in lines[1]
    assert "train.batch_pairs" in lines[1]
    assert len(lines[1]) < 500


def test_any_other_error_still_says_where_it_happened(monkeypatch, capsys):
    monkeypatch.setitem(COMMANDS, "index", raises(RuntimeError("mat1 and mat2")))
    assert cli.main(["index"]) == 1
    text = capsys.readouterr().err
    assert "Traceback" in text
    assert "out of memory" not in text
