"""Measure what a busy neighbour costs a training, under settings of OpenMP's threads.

    python perf/company.py [--demo] [--repeats 3] [--out FILE]

The threads of a matrix product wait for one another. By default they spin, and if another program
takes the core they spin for a thread that does not run. Each setting trains alone, next to a
program that only computes, and next to a second training; each run is a separate process. The last
line describes the setting of `ems`: its rate alone relative to the default's, and its slowdown next
to each neighbour.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measured import say
from pairs_made import ROOT, SHARED, prepare

from ems.base.files import write_json
from ems.commands.cli import FEW_SPINS, SPINS

DEFAULT, OURS = "default", "ems"
SETTINGS: dict[str, dict[str, str]] = {
    DEFAULT: {},
    OURS: {SPINS: FEW_SPINS},
    "passive": {"OMP_WAIT_POLICY": "PASSIVE"},
    "spins 1,000": {SPINS: "1000"},
    "spins 10,000": {SPINS: "10000"},
    "spins 30,000": {SPINS: "30000"},
}
LOOP = "import os; own = os.getppid()\nwhile os.getppid() == own: pass"  # ends with its parent
COMPANY = ("alone", "loop", "training")
FOREVER = 10**6  # steps of the neighbour, which is stopped


def training(folder: Path, pieces: int, options: argparse.Namespace, steps: int) -> list[str]:
    """Return the command of a training in a separate process."""
    script = Path(__file__).with_name("train_throughput.py")
    command = [sys.executable, str(script), "--inside", "contrastive", "--folder", str(folder)]
    sizes = [f"--pieces={pieces}", f"--batch={options.batch}", f"--threads={options.threads}"]
    return [*command, *sizes, f"--warm={options.warm}", f"--steps={steps}"]


@contextmanager
def neighbour(command: list[str] | None, environment: dict[str, str]) -> Iterator[None]:
    """Run a program next to the measured one."""
    if command is None:
        yield
        return
    run = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        run.kill()
        run.wait()


def rate(command: list[str], company: list[str] | None, setting: dict[str, str]) -> float:
    """Measure the pairs per second of one training."""
    known = {key for environment in SETTINGS.values() for key in environment}
    environment = {key: value for key, value in os.environ.items() if key not in known} | setting
    with neighbour(company, environment):
        run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    if run.returncode:
        sys.exit("the training failed")
    return json.loads(run.stdout.splitlines()[-1])["pairs_per_s"]


def options_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shared", type=Path, default=SHARED)
    parser.add_argument("--demo", action="store_true", help="300 pairs each of the demo corpus")
    parser.add_argument("--out", type=Path, default=ROOT / "results/perf/company.json")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=152, help="pairs of a step")
    parser.add_argument("--warm", type=int, default=5, help="steps off the clock")
    parser.add_argument("--steps", type=int, default=60, help="steps on the clock")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS), metavar="NAME"
    )
    options = parser.parse_args()
    if options.demo:
        options.batch, options.warm, options.steps = 16, 1, 3
    return options


def main() -> None:
    options = options_of()
    if not options.demo and not options.shared.is_dir():
        sys.exit(f"{options.shared} is not there; give --shared FOLDER, or --demo")
    chosen = {name: SETTINGS[name] for name in [DEFAULT, OURS, *options.settings]}
    rates: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shared = None if options.demo else options.shared
        (pieces,) = prepare(folder, shared, "small", (1_200 if options.demo else 8_000,)).values()
        command = training(folder, pieces, options, options.steps)
        second = training(folder, pieces, options, FOREVER)
        commands = {"alone": None, "loop": [sys.executable, "-c", LOOP], "training": second}
        for at in range(options.repeats):
            for setting, environment in chosen.items():
                for company in COMPANY:
                    found = rate(command, commands[company], environment)
                    rates.setdefault(setting, {}).setdefault(company, []).append(found)
                    say(f"round {at + 1}, {setting}, {company}: {found:,.0f} pairs/s")
    medians = {
        setting: {company: statistics.median(found) for company, found in each.items()}
        for setting, each in rates.items()
    }
    write_json(options.out, {"settings": chosen, "rates": rates, "medians": medians})
    say(f"{'setting':14}" + "".join(f"{company:>12}" for company in COMPANY) + "   slower")
    for setting, each in medians.items():
        slower = [each["alone"] / each[company] for company in COMPANY[1:]]
        row = "".join(f"{each[company]:12,.0f}" for company in COMPANY)
        say(f"{setting:14}{row}   {slower[0]:.1f} {slower[1]:.1f}")
    own = medians[OURS]
    say(
        f"alone={own['alone'] / medians[DEFAULT]['alone']:.2f} "
        f"loop={own['alone'] / own['loop']:.2f} training={own['alone'] / own['training']:.2f}"
    )


if __name__ == "__main__":
    main()
