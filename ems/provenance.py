"""Hashes that decide what is still valid: of a config part, and of the source of a stage.

Snakemake sees only shell text and files, so each rule carries both hashes in its `params:` and a
run with another setting or an edited package is seen (DESIGN "When something reruns").

The source of a stage is everything that its package imports within `ems` and within the project's
`extensions/`, by reading the imports, and data files (DATA). Left out are what can only change
messages (NEUTRAL), since rewording one must not retrain a model, and what counts by the values that
follow from it: the declarations of settings (SETTINGS), and the table of what OPUS has, which is
packed. Bytes are hashed, so a changed comment reruns a stage too.
"""

import ast
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

NEUTRAL = {"ems.damaged", "ems.errors", "ems.progress"}
SETTINGS = "settings.py"
EXTENSIONS = Path("extensions")  # the project's own modules: `ems.benchmarks.x` is benchmarks/x
DATA = {".tsv", ".csv", ".yaml", ".txt", ".tex"}  # data files that travel with the package
DIGITS = 16  # hex digits kept of a SHA-256: 64 bits
# An import from ems as a statement on lines of its own; a line with both words that is none.
_IMPORT = re.compile(
    r"^[ \t]*((?:from ems\b[^\n(]*\([^)]*\))|(?:from ems\b|import [^\n]*\bems\b)[^\n\\]*)$", re.M
)
_BOTH = re.compile(r"\bimport\b.*\bems\b|\bems\b.*\bimport\b")


def digest(value: Any) -> str:
    """Return the hash of a JSON-like value that does not depend on the order of keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    encoded = text.encode("utf-8", "surrogatepass")  # names of files may hold any bytes
    return hashlib.sha256(encoded).hexdigest()[:DIGITS]


def source_root() -> Path:
    """Return the folder of the `ems` package."""
    return Path(str(files("ems")))


@cache
def source_files(module: str) -> tuple[Path, ...]:
    """Return every file that `module` (like "ems.train") reaches by imports within ems, data files
    too.
    """
    seen: set[Path] = set()
    waiting = [module]
    while waiting:
        for path in _module_files(waiting.pop()):
            if path in seen or path.name == SETTINGS:
                continue
            seen.add(path)
            if path.suffix == ".py":
                waiting.extend(_imports(path))
    return tuple(sorted(seen))


@cache
def source_hash(module: str) -> str:
    """Return the hash of the bytes of `source_files(module)` and of their names."""
    return digest(dict(map(_named, source_files(module))))


@cache
def _named(path: Path) -> tuple[str, str]:
    """Return the name of a source file, the same in every checkout, and the hash of its bytes."""
    root = source_root()
    name = path.relative_to(root if root in path.parents else EXTENSIONS.absolute().parent)
    return str(name), hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def _module_files(module: str) -> tuple[Path, ...]:
    """Return the files of a module, with the data that has its name; of a package its own modules
    and all data below its folder, but that of packages inside it.
    """
    parts = module.split(".")[1:]
    files: list[Path] = []
    for root in (source_root(), EXTENSIONS.absolute()):
        base = root.joinpath(*parts)
        if (source := base.with_suffix(".py")).is_file():
            data = [base.with_suffix(suffix) for suffix in sorted(DATA)]
            return (source, *(path for path in data if path.is_file()))
        if base.is_dir():
            files += [*base.glob("*.py"), *_data(base)]
    return tuple(files)


def _data(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir() and not (path / "__init__.py").exists():
            yield from _data(path)
        elif path.suffix in DATA:
            yield path


@cache
def _imports(path: Path) -> tuple[str, ...]:
    """Return what a module imports from ems, at any depth of its code."""
    names = []
    for node in _statements(_tree(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(name for name in names if name.startswith("ems.") and name not in NEUTRAL)


def _tree(text: str) -> ast.AST:
    """Parse the imports of a module, or all of it unless each import stands on lines of its own.

    Snakemake asks for this at each start, in each job of a cluster too, and the imports alone take
    a third of the time.
    """
    if not _BOTH.search(_IMPORT.sub("", text)):
        with suppress(SyntaxError):  # a parenthesis in a comment, for example
            return ast.parse("\n".join(_IMPORT.findall(text)))
    return ast.parse(text)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield every statement inside a node; expressions, most of a tree, hold no imports."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, name, ()):
            yield child
            yield from _statements(child)
