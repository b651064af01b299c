"""Break one operator of a core module at a time and see whether a test fails.

    python perf/mutants.py [--count 20] [--seed 1] [--modules text.filters ...] [--out mutants.json]

Prints, per module, how many mutants the tests kill and each one that survives. Mutants are drawn by
the seed from the module's comparisons, arithmetic, boolean operators, constants and `not`, in the
order of the source, so the same code gives the same mutants. A mutated source is loaded from
memory; no file changes. A mutant is killed if a test fails, or hangs for TIMEOUT seconds.
"""

import argparse
import ast
import copy
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT = 300  # seconds
TESTS = {  # module of ems: the test files that state its laws, fastest first
    "model.encoder": "model objectives_exact",
    "model.objectives.contrastive": "objectives objectives_exact train_verified",
    "model.objectives.xtr": "objectives_exact objectives",
    "train.step": "train_finite train",
    "train.checkpoint": "checkpoint train_stop",
    "shards.reader": "shards spoilt_shards",
    "text.filters": "filters noise clean",
    "text.evalkeys": "clean",
    "bench.margin": "nearest mine",
    "tables.table": "tables tables_laws",
}
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
    **{ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.MatMult: ast.Mult, ast.Pow: ast.Mult},
}


def mutations(tree: ast.Module) -> Iterator[tuple[ast.AST, str, object, str]]:
    """Yield (node, field, new value, description) for each operator or constant to change."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPS:
            if not (isinstance(node.op, ast.Add) and _is_text(node)):
                new = SWAPS[type(node.op)]()
                yield node, "op", new, f"{line}: {type(node.op).__name__} > {type(new).__name__}"
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
            new = SWAPS[type(node.ops[0])]()
            words = f"{line}: {type(node.ops[0]).__name__} > {type(new).__name__}"
            yield node, "ops", [new, *node.ops[1:]], words
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node, "op", ast.UAdd(), f"{line}: not > +"
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield node, "value", not node.value, f"{line}: {node.value} > {not node.value}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield node, "value", node.value + 1, f"{line}: {node.value} > {node.value + 1}"


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(isinstance(side, ast.JoinedStr) or _is_string(side) for side in sides)


def _is_string(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def draw(source: str, count: int, seed: int) -> list[tuple[str, str]]:
    """Return (description, mutated source) of `count` mutants, or of all if there are fewer."""
    total = len(list(mutations(ast.parse(source))))
    chosen = random.Random(seed).sample(range(total), min(count, total))
    drawn = []
    for index in sorted(chosen):
        tree = ast.parse(source)
        node, field, value, words = list(mutations(tree))[index]
        setattr(node, field, copy.copy(value))
        drawn.append((words, ast.unparse(ast.fix_missing_locations(tree))))
    return drawn


class Mutated(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Loads one module from memory and leaves all others to Python."""

    def __init__(self, name: str, path: Path, source: str) -> None:
        self.name, self.path, self.source = name, str(path), source

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=self)

    def get_filename(self, fullname: str) -> str:
        return self.path

    def get_data(self, path: str) -> bytes:
        if path != self.path:
            raise OSError(f"{path}: no cached bytecode for a mutant")
        return self.source.encode()


def run_tests(name: str, path: Path, files: list[str]) -> int:
    """Run the test files on the module whose mutated source is on stdin; return 1 at a failure."""
    import pytest

    sys.meta_path.insert(0, Mutated(name, path, sys.stdin.read()))
    words = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return int(any(pytest.main([file, *words]) not in (0, 5) for file in files))


def is_killed(name: str, path: Path, source: str, files: list[str]) -> bool:
    """Return whether a test fails, or hangs, with the mutated source of a module."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--run", name, str(path), *files],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        process.communicate(source, timeout=TIMEOUT)
        return process.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # what the tests have started, too
        process.wait()


def measure(module: str, count: int, seed: int) -> dict[str, object]:
    """Return how many mutants of a module its tests kill, and which survive."""
    path = ROOT / "ems" / f"{module.replace('.', '/')}.py"
    source = path.read_text(encoding="utf-8")
    files = [str(ROOT / "tests" / f"test_{name}.py") for name in TESTS[module].split()]
    if is_killed(f"ems.{module}", path, source, files):
        raise SystemExit(f"{module}: {' '.join(files)} fail or hang without a mutation")
    mutants = draw(source, count, seed)
    survivors, start = [], time.monotonic()
    for number, (words, mutated) in enumerate(mutants, 1):
        if not is_killed(f"ems.{module}", path, mutated, files):
            survivors.append(words)
        rest = (time.monotonic() - start) / number * (len(mutants) - number)
        print(f"  {module}: {number}/{len(mutants)}, ETA {rest:.0f} s", end="\r", file=sys.stderr)
    killed = len(mutants) - len(survivors)
    print(f"{module:32} {killed:3} of {len(mutants):3} killed   survived: {', '.join(survivors)}")
    return {"module": module, "mutants": len(mutants), "killed": killed, "survivors": survivors}


def main() -> None:
    """Measure the modules and write the counts as JSON."""
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    os.environ.pop("EMS_NO_SKIP", None)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20, help="mutants per module (default: 20)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draw (default: 1)")
    parser.add_argument("--modules", nargs="+", choices=TESTS, default=[*TESTS], metavar="MODULE")
    parser.add_argument("--out", type=Path, help="JSON file for the counts")
    parser.add_argument("--run", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        name, path, *files = arguments.run
        raise SystemExit(run_tests(name, Path(path), files))
    rows = [measure(module, arguments.count, arguments.seed) for module in arguments.modules]
    killed, total = (sum(int(str(row[key])) for row in rows) for key in ("killed", "mutants"))
    print(f"{killed} of {total} mutants killed ({100 * killed / total:.1f} %)")
    if arguments.out:
        arguments.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
