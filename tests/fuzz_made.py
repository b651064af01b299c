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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fuzz_commands_made import command_cases, split_flags
from fuzz_configs_made import config_cases, planned_cases, training_cases, workflow_cases
from fuzz_files_made import file_cases
from fuzz_forks_made import Forks
from fuzz_law_made import Failure, broken_laws
from fuzz_values_made import Case
from fuzz_world_made import ROOT, World
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

SHIPPED = sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))
BATCHES = {"commands": 40, "files": 40, "configs": 40, "trainings": 8, "plans": 4, "workflows": 1}
TRIES = 12  # to make a case that fails simpler
SIMPLE = [None, 0, "x", [], {}]
SECONDS = {"ems": 60, "snakemake": 300}


@dataclass(frozen=True)
class Broken:
    """A case that breaks the law."""

    case: Case
    failure: Failure

    def __str__(self) -> str:
        return f"{self.failure.cause}\n{self.failure.details}\n{rebuilt(self.case)}"


def rebuilt(case: Case) -> str:
    """How to run a case again."""
    command = shlex.join(case["words"])
    return f"{command}\nagain: python tests/fuzz_made.py --case <<'EOF'\n{json.dumps(case)}\nEOF"


def simpler(case: Case) -> Iterator[Case]:
    """Cases with one thing less."""
    for at, edit in enumerate(case["edits"]):
        rest = case["edits"][:at], case["edits"][at + 1 :]
        yield case | {"edits": [*rest[0], *rest[1]]}
        if edit[0] in ("json", "yaml") and edit[-1] not in SIMPLE:
            for value in SIMPLE:
                yield case | {"edits": [*rest[0], [*edit[:-1], value], *rest[1]]}
    groups = split_flags(case["words"])
    for at in range(1, len(groups)):
        yield case | {"words": [word for group in groups[:at] + groups[at + 1 :] for word in group]}


class Campaign:
    """The sandbox, what has been run in it and what has broken."""

    def __init__(self, wide: bool = False) -> None:
        self.forks = Forks()
        root = Path(tempfile.mkdtemp(dir=self.forks.scratch))
        self.world = World(root, self.forks, wide)
        project = "outer/project/"
        entries = self.world.master.items()
        listing = [p.removeprefix(project) for p, e in entries if e.kind == "file"]
        mine = [path for path in listing if not path.startswith(("odd/", "rules/", "envs/"))]
        experiments = ["toy", *filter(self._is_fine, SHIPPED)]
        self.kinds: dict[str, st.SearchStrategy] = {
            "commands": command_cases(self.world.commands),
            "files": file_cases(self.world.commands, mine),
            "configs": config_cases(experiments),
            "trainings": training_cases(),
            "plans": planned_cases(),
            "workflows": workflow_cases(),
        }
        self.forget()

    def forget(self) -> None:
        """Count from zero."""
        self.cases: Counter = Counter()
        self.passed: Counter = Counter()  # that ended with status 0
        self.repeats: Counter = Counter()  # by the cause of a failure
        self.failures: dict[str, Broken] = {}

    def _is_fine(self, name: str) -> bool:
        """Whether an experiment can be checked here: with the segmenters of this machine."""
        words = ["ems", "check", "--experiment", name]
        return self.forks.run(words, self.world.project).status == 0

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
        return broken_laws(case, done, before, world.listing(), world)

    def check(self, case: Case) -> None:
        """Run a case and keep what it breaks, made small where it is new."""
        for failure in self.run(case):
            self.repeats[failure.cause] += 1
            if failure.cause not in self.failures:
                print(f"new: {failure.cause}", flush=True)
                self.failures[failure.cause] = self._made_small(Broken(case, failure))

    def _made_small(self, broken: Broken) -> Broken:
        """The same failure of a simpler case: with fewer edits, simpler ones, fewer flags."""
        left = TRIES
        for case in simpler(broken.case):
            left -= 1
            same = [f for f in self.run(case) if f.cause == broken.failure.cause] if left else []
            if same:
                return self._made_small(Broken(case, same[0]))
        return broken

    def batch(self, kind: str, number: int, count: int) -> None:
        """Run `count` cases of a kind, drawn with a seed."""

        @seed(number)
        @settings(
            max_examples=count,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(self.kinds[kind])
        def cases(case: Case) -> None:
            self.check(case)

        cases()

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
    campaign = Campaign(wide=True)
    begin, end, draw = time.monotonic(), time.monotonic() + 60 * minutes, random.Random(number)
    try:
        while time.monotonic() < end:
            for kind in kinds or campaign.kinds:
                campaign.batch(kind, draw.getrandbits(32), BATCHES[kind])
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
    campaign.close()
    print("\n".join(f"{f.cause}\n{f.details}" for f in failures) or "no law is broken")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
