"""What gpu.py shows: a table in Markdown, fit for docs/log.md, and a last line of key=value."""

from typing import Any

import torch
from train_throughput import NAMES

PASSED, FAILED, STOPPED, NOTHING = "passed", "failed", "stopped", "-"
LOGS = "the logs are in results/gpu"
SPEED = ("pairs/s", "ms a step", "TFLOP/s", "MFU %", "MB", "beside sentence-transformers")
Figures = dict[str, Any]  # what a part left; empty if it was never run (JSON)


def markdown(device: str, day: str, parts: dict[str, Figures]) -> str:
    """Return the table: `parts` by name, those that never ran being empty."""
    versions = f"PyTorch {torch.__version__}"
    blocks = [f"## {day} · `make gpu` on {device}", f"{versions}."]
    for name, write in (("laws", _laws), ("throughput", _speed), ("training", _training)):
        figures = parts[name]
        status = figures.get("status", "not run")
        after = f" after {figures['minutes']:.1f} minutes" if figures.get("minutes") else ""
        blocks.append(f"{name.capitalize()}: {status}{after}.")
        if status in (FAILED, STOPPED):
            blocks[-1] += f" {LOGS.capitalize()}."
        blocks += write(figures)
    return "\n\n".join(blocks) + "\n"


def _laws(figures: Figures) -> list[str]:
    if "tests" not in figures:
        return []
    bad = figures["failures"] + figures["errors"]
    return [f"{figures['tests']} tests, {bad} failed, {figures['skipped']} skipped."]


def _speed(figures: Figures) -> list[str]:
    rows = []
    for size, measured in figures.get("sizes", {}).items():
        shape = "{layers} x {width}".format(**measured["model"])
        of_peer = _row(measured, "st").get("pairs_per_s")
        for trainer in measured["trainers"]:
            row = _row(measured, trainer)
            pairs = f"{row['pieces']:,} pieces, {measured['batch']:,} pairs a step"
            cells = [f"{size}: {shape}, {pairs}"]
            cells += [NAMES[trainer], f"{row['pairs_per_s']:,.0f}", f"{row['ms_per_step']:,.1f}"]
            cells += [f"{row['tflops']:,.2f}", _number(row.get("mfu"), 100)]
            cells.append(f"{row.get('gpu_mb', row['rss_anon_mb']):,.0f}")
            cells.append(_number(of_peer and row["pairs_per_s"] / of_peer, 1, 2))
            rows.append(cells)
    return [_table(["size", "trainer", *SPEED], rows)] if rows else []


def _training(figures: Figures) -> list[str]:
    if "scores" not in figures:
        return []
    seconds, scores = figures["seconds"], figures["scores"]
    heads = ["system", "steps", "pairs seen", "minutes", "pairs/s", "MFU %"]
    heads += [f"{name}, mean of {score['of']:,}" for name, score in scores.items()]
    cells = [figures["system"], f"{figures['steps']:,}", f"{figures['pairs']:,}"]
    cells += [f"{seconds / 60:.1f}", f"{figures['pairs'] / seconds:,.0f}"]
    cells.append(_number(figures["mfu"], 100))
    cells += [f"{score['mean']:.1f}" for score in scores.values()]
    return [_table([*heads, "identity"], [[*cells, figures["identity"]]])]


def last_line(device: str, parts: dict[str, Figures]) -> str:
    """Return the line that is compared. `-` is what was not measured, or cannot be here.

    mfu_ems and pairs_per_s_ems are of the faster of our two runs, with and without compilation;
    ratio_st is of the one without, whose loss is more than that of sentence-transformers.
    """
    laws, speed, training = (parts[name] for name in ("laws", "throughput", "training"))
    ours = [_best(speed, size, "ems", "ems-compiled") for size in ("ems", "13x384")]
    plain, peer = (_best(speed, "ems", name).get("pairs_per_s") for name in ("ems", "st"))
    values = {
        "device": device.replace(" ", "_"),
        "mfu_ems": _value(speed, ours[0].get("mfu"), 3),
        "pairs_per_s_ems": _value(speed, ours[0].get("pairs_per_s"), 0),
        "ratio_st": _value(speed, plain and peer and plain / peer, 2),
        "mfu_13x384": _value(speed, ours[1].get("mfu"), 3),
    }
    scores = training.get("scores", {})
    for key, name in (("tatoeba58", "tatoeba"), ("flores", "flores200")):
        values[key] = _value(training, scores.get(name, {}).get("mean"), 1)
    values["laws"] = laws.get("status", NOTHING)
    return " ".join(f"{key}={value}" for key, value in values.items())


def _row(measured: Figures, trainer: str) -> Figures:
    """Return the figures of a trainer with its `pieces`; nothing if it was not measured."""
    return next(
        (
            {"pieces": int(pieces), **row}
            for pieces, row in measured.get("trainers", {}).get(trainer, {}).items()
        ),
        {},
    )


def _best(speed: Figures, size: str, *trainers: str) -> Figures:
    """Return the figures of the fastest of some trainers of a size."""
    measured = speed.get("sizes", {}).get(size, {})
    rows = [row for row in (_row(measured, name) for name in trainers) if row]
    return max(rows, key=lambda row: row["pairs_per_s"], default={})


def _value(part: Figures, number: float | None, decimals: int) -> str:
    """Return a number; without one how its part ended, or `-` if the part has no such number."""
    if number is None and part.get("status") in (FAILED, STOPPED):
        return part["status"]
    return _number(number, 1, decimals)


def _number(number: float | None, times: int, decimals: int = 1) -> str:
    return NOTHING if number is None else f"{times * number:.{decimals}f}"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace("| --- ", "|---")
