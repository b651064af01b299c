"""Hashes that decide what is still valid: of a config part, and of the source of a stage.

Snakemake sees only shell text and files, so each rule carries both hashes in its `params:` and a
run
with another setting or an edited package is seen (DESIGN "When something reruns").

Notable choices:
- the source of a stage is everything that its package imports within `ems`, found by reading the
  imports: nobody has to keep a list of dependencies by hand;
- what can only change messages (NEUTRAL) is left out: rewording an error must not retrain a model;
- so is the list of what OPUS has (PLANNED): every stage reads it to know what an experiment means,
  and that is in the hash of the settings. Newer counts must not clean a corpus again;
- bytes are hashed, so a changed comment reruns a stage too: dear now and then, never wrong.
"""

import ast
import hashlib
import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

NEUTRAL = {"ems.damaged", "ems.errors", "ems.progress"}
PLANNED = {"languages/opus.tsv"}
DATA = {".tsv", ".csv", ".yaml", ".txt"}  # data files that travel with the package
DIGITS = 16  # hex digits kept of a SHA-256: 64 bits


def digest(value: Any) -> str:
    """Hash of a JSON-like value that does not depend on the order of keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    encoded = text.encode("utf-8", "surrogatepass")  # names of files may hold any bytes
    return hashlib.sha256(encoded).hexdigest()[:DIGITS]


def source_root() -> Path:
    """The folder of the `ems` package."""
    return Path(str(files("ems")))


@cache
def source_files(module: str) -> tuple[Path, ...]:
    """Every file that `module` (like "ems.train") reaches by imports within ems, data files too."""
    seen: set[Path] = set()
    waiting = [module]
    while waiting:
        for path in _module_files(waiting.pop()):
            if path in seen:
                continue
            seen.add(path)
            if path.suffix == ".py":
                waiting.extend(_imports(path))
    return tuple(sorted(seen))


@cache
def source_hash(module: str) -> str:
    """Hash of the bytes of `source_files(module)` and of their names."""
    root = source_root()
    hashes = {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in source_files(module)
    }
    return digest(hashes)


def _module_files(module: str) -> list[Path]:
    """The files of a module; of a package its own modules and all data below its folder."""
    base = source_root().parent.joinpath(*module.split("."))
    if base.with_suffix(".py").is_file():
        return [base.with_suffix(".py")]
    if base.is_dir():
        planned = {source_root() / name for name in PLANNED}
        data = [path for path in base.rglob("*") if path.suffix in DATA and path not in planned]
        return [*base.glob("*.py"), *data]
    return []


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        yield from (name for name in names if name.startswith("ems.") and name not in NEUTRAL)
