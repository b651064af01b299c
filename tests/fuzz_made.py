"""The campaign: cases of every kind are run and the law is held against each.

make fuzz                      an hour
make fuzz MINUTES=5 SEED=7     as long and with the seed that is asked
python tests/fuzz_made.py --case FILE    one case again; FILE as a failure prints it
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

from fuzz_commands_made import command_cases
from fuzz_configs_made import config_cases
from fuzz_files_made import file_cases
from fuzz_forks_made import Forks
from fuzz_law_made import Failure, broken_laws
from fuzz_values_made import Case
from fuzz_world_made import ROOT, World
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

BATCH = 100  # cases between two looks at the clock
SECONDS = {"ems": 60, "snakemake": 300}


class Broken(AssertionError):
    """A case that breaks the law."""

    def __init__(self, case: Case, failures: list[Failure]) -> None:
        self.case, self.failure = case, failures[0]
        super().__init__(f"{self.failure.cause}\n{self.failure.details}\n{rebuilt(case)}")


def rebuilt(case: Case) -> str:
    """How to run a case again."""
    command = shlex.join(case["words"])
    return f"{command}\nagain: python tests/fuzz_made.py --case <<'EOF'\n{json.dumps(case)}\nEOF"


class Campaign:
    """The sandbox, what has been run in it and what has broken."""

    def __init__(self) -> None:
        self.forks = Forks()
        root = Path(tempfile.mkdtemp(dir=self.forks.scratch))
        self.world = World(root, self.forks)
        project = "outer/project/"
        entries = self.world.master.items()
        listing = [p.removeprefix(project) for p, e in entries if e.kind == "file"]
        mine = [path for path in listing if not path.startswith(("odd/", "rules/", "envs/"))]
        experiments = sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))
        self.kinds: dict[str, st.SearchStrategy] = {
            "commands": command_cases(),
            "files": file_cases(mine),
            "configs": config_cases(["toy", *experiments]),
        }
        self.cases: Counter = Counter()
        self.passed: Counter = Counter()  # that ended with status 0
        self.failures: dict[str, Broken] = {}
        self.repeats: Counter = Counter()

    def close(self) -> None:
        """End the server and remove the sandbox."""
        self.forks.close()

    def run(self, case: Case, plant: str = "") -> list[Failure]:
        """Run a case; the laws that it breaks."""
        world = self.world
        world.reset()
        world.edit(case["edits"])
        before = world.listing()
        seconds = case.get("seconds", SECONDS[case["words"][0]])
        done = self.forks.run(case["words"], world.project, seconds, plant)
        self.cases[case["kind"]] += 1
        self.passed[case["kind"]] += done.status == 0
        same = case.get("same", False)
        return broken_laws(case["words"], done, before, world.listing(), world, same)

    def check(self, case: Case) -> None:
        """Run a case; raise `Broken` for a cause that is not known yet."""
        failures = self.run(case)
        for failure in failures:
            self.repeats[failure.cause] += 1
        new = [failure for failure in failures if failure.cause not in self.failures]
        if new:
            raise Broken(case, new)

    def batch(self, kind: str, number: int, count: int = BATCH, shrink: bool = True) -> None:
        """Run `count` cases of a kind, drawn with a seed; keep what breaks, made small."""
        phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]

        @seed(number)
        @settings(
            max_examples=count,
            deadline=None,
            database=None,
            phases=phases,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        )
        @given(self.kinds[kind])
        def cases(case: Case) -> None:
            self.check(case)

        try:
            cases()
        except Broken as broken:
            self.failures[broken.failure.cause] = broken

    def table(self) -> str:
        """Cases by kind, and the failures."""
        rows = [f"{'kind':<12}{'cases':>8}{'status 0':>10}"]
        rows += [f"{k:<12}{n:>8,}{self.passed[k]:>10,}" for k, n in self.cases.items()]
        rows += [f"{'all':<12}{self.cases.total():>8,}{self.passed.total():>10,}", ""]
        rows += [
            f"{self.repeats[cause]:>5} x {cause}\n{broken}\n"
            for cause, broken in self.failures.items()
        ]
        return "\n".join([*rows, f"{len(self.failures)} failures"])


def fuzz(minutes: float, number: int, kinds: list[str]) -> int:
    """Run cases for so many minutes; 1 when any failed."""
    print(f"seed {number}; again: make fuzz SEED={number} MINUTES={minutes:g}", flush=True)
    campaign = Campaign()
    begin, end, draw = time.monotonic(), time.monotonic() + 60 * minutes, random.Random(number)
    try:
        while time.monotonic() < end:
            for kind in kinds or campaign.kinds:
                campaign.batch(kind, draw.getrandbits(32))
            print(_progress(campaign, begin, end), flush=True)
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        campaign.close()
    print(campaign.table())
    return int(bool(campaign.failures))


def _progress(campaign: Campaign, begin: float, end: float) -> str:
    cases, now = campaign.cases.total(), time.monotonic()
    return (
        f"{cases:,} cases, {len(campaign.failures)} failures, {cases / (now - begin):.1f} cases/s, "
        f"{max(0, end - now) / 60:.0f} minutes left"
    )


def main() -> int:
    """The campaign from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parser.add_argument("--kinds", nargs="*", default=[])
    parser.add_argument("--case", nargs="?", const="-", help="a file with a case, or - for stdin")
    options = parser.parse_args()
    if not options.case:
        return fuzz(options.minutes, options.seed, options.kinds)
    text = sys.stdin.read() if options.case == "-" else Path(options.case).read_text()
    campaign = Campaign()
    failures = campaign.run(json.loads(text))
    campaign.close()
    print("\n".join(f"{f.cause}\n{f.details}" for f in failures) or "no law is broken")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
