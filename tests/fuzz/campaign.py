"""The campaign: cases of every kind are run and the law is held against each.

make fuzz                      an hour
make fuzz MINUTES=5 SEED=7     as long and with the seed that is asked
PYTHONPATH=tests python -m fuzz.campaign --case FILE    one case, as a failure prints it
"""

import argparse
import json
import os
import random
import shlex
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fuzz import cases
from fuzz.edits import Case
from fuzz.forks import Forks
from fuzz.law import Failure, broken_laws
from fuzz.world import World
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from made.experiments import SHIPPED

BATCHES = {"commands": 40, "files": 40, "wrong": 80, "configs": 40, "models": 40}
BATCHES |= {"trainings": 8, "plans": 4, "workflows": 1}
PLAIN = settings(deadline=None, database=None, phases=[Phase.generate])
PLAIN = settings(PLAIN, suppress_health_check=list(HealthCheck))
SECONDS = {"ems": 60, "snakemake": 300}


def rebuilt(case: Case) -> str:
    command = shlex.join(case["words"])
    again = "PYTHONPATH=tests python -m fuzz.campaign --case"
    return f"{command}\nagain: {again} <<'EOF'\n{json.dumps(case)}\nEOF"


class Campaign:
    """The sandbox, what has been run in it and what has broken."""

    def __init__(self, wide: bool = False) -> None:
        self.forks = Forks()
        root = Path(tempfile.mkdtemp(dir=self.forks.scratch))
        self.world = World(root, self.forks, wide)
        project = "outer/project/"
        files = [path for path, entry in self.world.master.items() if entry.kind == "file"]
        listing = [path.removeprefix(project) for path in files]
        mine = [path for path in listing if not path.startswith(("odd/", "rules/", "envs/"))]
        check = ["ems", "check", "--experiment"]  # a machine may lack the segmenters of some
        ends = {name: self.forks.run([*check, name], self.world.project) for name in SHIPPED}
        experiments = ["toy", *(name for name, done in ends.items() if done.status == 0)]
        self.kinds: dict[str, st.SearchStrategy] = {
            "commands": cases.command_cases(self.world.commands),
            "files": cases.file_cases(self.world.commands, mine),
            "wrong": st.sampled_from(cases.wrong_cases(self.world.commands)),
            "configs": cases.config_cases(experiments),
            "models": cases.model_cases(),
            "trainings": cases.training_cases(),
            "plans": cases.planned_cases(),
            "workflows": cases.workflow_cases(),
        }
        self.forget()

    def forget(self) -> None:
        self.cases: Counter = Counter()
        self.passed: Counter = Counter()  # that ended with status 0
        self.repeats: Counter = Counter()  # by the cause of a failure
        self.failures: dict[str, str] = {}  # cause -> details, and how to run the case again

    def run(self, case: Case, plant: str = "") -> list[Failure]:
        world = self.world
        world.reset()
        world.edit(case["edits"])
        before = world.listing()
        seconds = case.get("seconds", SECONDS[case["words"][0]])
        done = self.forks.run(case["words"], world.project, seconds, plant)
        self.cases[case["kind"]] += 1
        self.passed[case["kind"]] += done.status == 0
        return broken_laws(case, done, before, world.listing(), world)

    def check(self, case: Case) -> None:
        for failure in self.run(case):
            self.repeats[failure.cause] += 1
            if failure.cause not in self.failures:
                print(f"new: {failure.cause}", flush=True)
                self.failures[failure.cause] = f"{failure.details}\n{rebuilt(case)}"

    def batch(self, kind: str, number: int, count: int) -> None:
        """Run `count` cases of a kind, drawn with a seed."""

        @seed(number)
        @settings(PLAIN, max_examples=count)
        @given(self.kinds[kind])
        def run(case: Case) -> None:
            self.check(case)

        run()

    def table(self) -> str:
        rows = [f"{'kind':<12}{'cases':>8}{'status 0':>10}"]
        rows += [f"{k:<12}{n:>8,}{self.passed[k]:>10,}" for k, n in self.cases.items()]
        rows += [f"{'all':<12}{self.cases.total():>8,}{self.passed.total():>10,}", ""]
        rows += [f"{self.repeats[c]:>5} x {c}\n{text}\n" for c, text in self.failures.items()]
        return "\n".join([*rows, f"{len(self.failures)} failures"])


def fuzz(minutes: float, number: int, kinds: list[str]) -> int:
    """Run cases for so many minutes; 1 when any failed."""
    print(f"seed {number}; again: make fuzz SEED={number} MINUTES={minutes:g}", flush=True)
    campaign = Campaign(wide=True)
    end, draw = time.monotonic() + 60 * minutes, random.Random(number)
    try:
        while time.monotonic() < end:
            for kind in kinds or campaign.kinds:
                campaign.batch(kind, draw.getrandbits(32), BATCHES[kind])
            count, left = campaign.cases.total(), max(0, end - time.monotonic()) / 60
            failures = len(campaign.failures)
            print(f"{count:,} cases, {failures} failures, {left:.0f} minutes left", flush=True)
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        campaign.forks.close()
    print(campaign.table())
    return int(bool(campaign.failures))


def main() -> int:
    sys.stdout.reconfigure(errors="backslashreplace")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parser.add_argument("--kinds", nargs="*", default=[])
    parser.add_argument("--case", nargs="?", const="-", help="a file with a case, or - for stdin")
    options = parser.parse_args()
    if not options.case:
        return fuzz(options.minutes, options.seed, options.kinds)
    text = sys.stdin.read() if options.case == "-" else Path(options.case).read_text()
    case = json.loads(text)
    campaign = Campaign(wide="wide" in text)
    failures = campaign.run(case)
    campaign.forks.close()
    print("\n".join(f"{f.cause}\n{f.details}" for f in failures) or "no law is broken")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
