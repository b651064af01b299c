"""The report of gpu.py: figures -> Markdown, and a last line of key=value.

Imports only Python's standard library, so that `--show` works anywhere.
"""

from typing import Any

PASSED, FAILED, STOPPED, NOTHING = "passed", "failed", "stopped", "-"
PARTS = ("laws", "throughput", "training", "profile")
MARK = "figures: "  # prefix of lines with figures in a part's output
GOAL = 0.4  # share of the speed of a bare matrix product
NAMES = {"ems": "EMS", "ems-compiled": "EMS, compiled", "st-loop": "sentence-transformers"}
Figures = dict[str, Any]


def markdown(figures: Figures) -> str:
    """Return the report; parts that did not run are listed as such."""
    machine, parts = figures["machine"], figures["parts"]
    blocks = [f"# EMS on {machine['device']}", *_machine(figures)]
    writers = (_laws, _throughput, _training, _profile)
    for name, write in zip(PARTS, writers, strict=True):
        part = parts.get(name, {})
        after = f" after {part['took']:.0f} of {part['limit']:.0f} s" if "took" in part else ""
        date = f" ({part['date']})" if part else ""
        blocks.append(f"## {name}: {part.get('status', 'not run')}{after}{date}")
        blocks += write(part, machine)
        if left := part.get("left_out"):
            blocks.append(f"Left out, no time: {', '.join(left)}.")
        blocks += _errors(part)
    return "\n\n".join(blocks) + "\n"


def last_line(figures: Figures) -> str:
    """Return the main figures as key=value in one line; `-` marks a missing figure."""
    machine, parts = figures["machine"], figures["parts"]
    measured = parts.get("throughput", {}).get("runs", [])
    runs = {(run["size"], run["trainer"]): run for run in measured}
    ours = [runs[key] for key in (("ems", "ems"), ("ems", "ems-compiled")) if key in runs]
    best = max(ours, key=lambda run: run["pairs_per_s"], default={})
    peer = runs.get(("ems", "st-loop"), {}).get("pairs_per_s")
    training, profiles = parts.get("training", {}), parts.get("profile", {}).get("profiles", [])
    values = {
        "device": machine["device"].replace(" ", "_"),
        **{name: parts.get(name, {}).get("status", NOTHING) for name in PARTS},
        "pairs_per_s_ems": _number(best.get("pairs_per_s"), 0),
        "mfu_ems": _number(best.get("mfu"), 3),
        "of_matmul_ems": _number(_of_matmul(best, machine), 3),
        "ratio_st": _number(best["pairs_per_s"] / peer if peer and best else None, 2),
        "pairs_per_s_training": _number(training.get("pairs_per_s"), 0),
        "waits_a_step": _number(_waits(training), 2),
        "idle_ems": _number(profiles[0]["idle"] if profiles else None, 3),
    }
    return " ".join(f"{key}={value}" for key, value in values.items())


def _machine(figures: Figures) -> list[str]:
    machine, data = figures["machine"], figures["data"]
    rows = [["PyTorch", machine["torch"]], ["Python", machine["python"]]]
    rows.append(["packages", machine["packages"]])
    if "cuda" in machine:
        rows += [["CUDA", machine["cuda"]], ["driver", machine["driver"] or NOTHING]]
        rows.append(["memory", f"{machine['memory_gib']} GiB"])
    rows += [["system", f"{machine['system']}, {machine['cores']} cores"]]
    rows.append(["EMS", machine["ems"]])
    rows.append(["a matrix product", f"{machine['matmul_tflops']:,} TFLOP/s ({machine['matmul']})"])
    rows.append(["a copy", f"{machine['copy_gb_per_s']:,} GB/s"])
    pairs = f"{data['pairs']:,} pairs of {data['text']}, {data['tokens_per_pair']} tokens a pair"
    rows.append(["text", f"{pairs}, made in {data['data_seconds']} s"])
    rows.append(["date", data["date"]])
    rows.append(["time for all parts", f"{figures['minutes']:g} minutes"])
    lines = [_code(figures["missing"])] if figures["missing"] else []
    return [_table(["machine", ""], rows), *lines, *_errors(data)]


def _errors(part: Figures) -> list[str]:
    return [block for error in part.get("errors", []) for block in _error(error)]


def _laws(part: Figures, machine: Figures) -> list[str]:
    cases = part.get("cases", [])
    if not cases:
        return []
    rows = []
    for law in dict.fromkeys(case["law"] for case in cases):
        own = [case for case in cases if case["law"] == law]
        counts = [sum(case["outcome"] == kind for case in own) for kind in ("passed", "failed")]
        shares = [case["share"] for case in own if "share" in case]
        bits = [case["same_bits"] for case in own if "same_bits" in case]
        note = f"same bits in {sum(bits)} of {len(bits)}" if bits else ""
        worst = f"{100 * max(shares):.0f} %" if shares else NOTHING
        rows.append([law, *map(str, counts), str(len(own) - sum(counts)), worst, note])
    heads = ["law", "passed", "failed", "no time", "largest difference / tolerance", ""]
    blocks = [_table(heads, rows)]
    failed = {case["law"]: case for case in reversed(cases) if "traceback" in case}
    for case in failed.values():  # the first of each law; figures.json has all
        blocks += [f"Failed: `{case['case']}`", _code(case["traceback"].splitlines()[-25:])]
    return blocks


def _throughput(part: Figures, machine: Figures) -> list[str]:
    runs = part.get("runs", [])
    peers = {run["size"]: run["pairs_per_s"] for run in runs if run["trainer"] == "st-loop"}
    rows = []
    for size in dict.fromkeys(run["size"] for run in runs):
        rows += [_run(run, peers.get(size), machine) for run in runs if run["size"] == size]
    heads = ["size", "trainer", "pairs/s", "tokens/s", "ms a step", "TFLOP/s", "MFU %"]
    heads += ["% of the matrix product", f"pairs/s at {100 * GOAL:.0f} % of it", "MB"]
    return [_table([*heads, "times sentence-transformers"], rows)] if rows else []


def _run(run: Figures, peer: float | None, machine: Figures) -> list[str]:
    """Return the row of a trainer; `peer` is the pairs/s of sentence-transformers at its size."""
    shape = f"{run['size']}: {run['model']['layers']} x {run['model']['width']}"
    goal = GOAL * machine["matmul_tflops"] * run["pairs_per_s"] / run["tflops"]
    return [
        f"{shape}, {run['pieces']:,} pieces, {run['batch']:,} pairs a step",
        NAMES[run["trainer"]],
        f"{run['pairs_per_s']:,.0f}",
        f"{run['tokens_per_s']:,.0f}",
        f"{run['ms_per_step']:,.1f}",
        f"{run['tflops']:.3g}",
        _number(run.get("mfu"), 1, 100),
        _number(_of_matmul(run, machine), 1, 100),
        f"{goal:,.0f}",
        f"{run['memory_mb']:,}",
        _number(peer and run["pairs_per_s"] / peer, 2),
    ]


def _training(part: Figures, machine: Figures) -> list[str]:
    if "steps" not in part:
        return []
    cells = {
        "system": part["system"],
        "parameters": f"{part['parameters']:,}",
        "pairs a step": f"{part['batch']:,}",
        "steps": f"{part['steps']:,}",
        "seconds": f"{part['seconds']:.1f}",
        "pairs/s": f"{part['pairs_per_s']:,.0f}",
        "loss at step 10, at the end": f"{part['loss_first']}, {part['loss_last']}",
        "steps in ten minutes": f"{part['steps_in_ten_minutes']:,}",
        "host syncs a step": _number(_waits(part), 2),
        "of the log": _number(part["waits_of_log"] / part["counted"], 2),
    }
    places = part["places"].items()
    rows = [[place, _number(count / part["counted"], 2)] for place, count in places]
    heads = ["where the host waits for the GPU", "times a step"]
    return [_table([*cells], [[*cells.values()]]), *([_table(heads, rows)] if rows else [])]


def _profile(part: Figures, machine: Figures) -> list[str]:
    profiles, blocks = part.get("profiles", []), []
    rows = []
    for profile in profiles:
        waits = None if profile["waits"] is None else profile["waits"] / profile["steps"]
        cells = [profile["what"], str(profile["steps"]), f"{profile['ms_per_step']:.1f}"]
        rows.append([*cells, f"{100 * profile['idle']:.1f} %", _number(waits, 2)])
    if rows:
        heads = ["steps of", "steps", "ms a step", "no kernel running", "host syncs a step"]
        blocks.append(_table(heads, rows))
    for profile in profiles:
        blocks.append(f"{profile['what']}:")
        lines = [f"{'share':>7} {'ms':>10} {'calls':>7}  kernel"]
        for kernel in profile["kernels"]:
            times = f"{100 * kernel['share']:6.1f}% {kernel['ms']:10.2f} {kernel['calls']:7}"
            lines.append(f"{times}  {kernel['name'][:100]}")
        blocks.append(_code(lines))
    return blocks


def _error(error: Figures) -> list[str]:
    what = f"{error['what']}: " if error["what"] else ""
    return [f"Failed: {what}{error['ended']}. The end of its output:", _code(error["output"])]


def _of_matmul(run: Figures, machine: Figures) -> float | None:
    """Return the speed of a run relative to a bare matrix product."""
    return run["tflops"] / machine["matmul_tflops"] if run else None


def _waits(training: Figures) -> float | None:
    return training["waits"] / training["counted"] if "waits" in training else None


def _number(number: float | None, decimals: int, times: float = 1) -> str:
    return NOTHING if number is None else f"{times * number:.{decimals}f}"


def _code(lines: list[str]) -> str:
    return "\n".join(["```", *lines, "```"])


def _table(heads: list[str], rows: list[list[str]]) -> str:
    cells = [[str(cell).replace("|", "/") for cell in row] for row in rows]
    lines = [heads, ["---"] * len(heads), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace("| --- ", "|---")
