"""Hashes that decide what is still valid: of settings, and of the source of a stage.

Snakemake sees only shell text and files, so each rule carries both hashes in its `params:`.

The source of a stage is everything that its package imports within `ems` and the project's
`extensions/`, and data files (DATA). The hash covers the set of top-level statements in all these
files, without comments, docstrings, blank lines and imports of `ems`. So prose can be mended, and
code can move between the files of a stage, without retraining a model. Left out are modules that
only check and word messages (LEFT_OUT), and settings (`ems.config`), which count by their values.

Regular expressions scan the text, since Snakemake asks at each start and in each job of a cluster:
parsing would take ten times as long. A test compares the two.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

# `ems` only re-exports names; these modules of ems.base do not change any output
LEFT_OUT = {"ems", "ems.base.errors", "ems.base.progress"}
LEFT_OUT |= {"ems.base.records", "ems.base.schema", "ems.corpora.probe"}
MESSAGES = "mistakes.tsv"  # of ems.base.errors, in any room
SETTINGS = "ems.config"
EXTENSIONS = Path("extensions")  # modules of the project: `ems.benchmarks.x` is benchmarks/x
PLUGINS = (("text", "segmenters"), ("text", "repairs"), ("model", "objectives"))  # without room
DATA = {".tsv", ".csv", ".yaml", ".txt", ".tex", ".jinja", ".mplstyle"}  # of data next to code
DIGITS = 16  # hex digits kept of a SHA-256: 64 bits
# A comment, a string, or a bracket. F-strings with their own quotes inside need Python 3.12.
_TOKEN = re.compile(
    r'(?P<comment>#[^\n]*)|(?P<open>[([{])|(?P<close>[)\]}])|(?P<string>"""(?:[^\\]|\\.)*?"""'
    r"|'{3}(?:[^\\]|\\.)*?'{3}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'(?:[^'\\\n]|\\.)*')",
    re.S,
)
_IMPORTED = r"[ \t]*(?:from +([\w.]+) +import +(\([^)]*\)|[^\n;]+)|import +([^\n;]+))"
_IMPORT = re.compile(rf"(?:^|[;:]){_IMPORTED}", re.M)
_IMPORT_LINE = re.compile(rf"^{_IMPORTED}\n?", re.M)
_NOTHING = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|$)")  # the rest of a line without code
_STATEMENT = re.compile(r"^(?=[^\s)\]}])(?!(?:elif|else|except|finally)\b)", re.M)


class SourceFile(NamedTuple):
    """The contribution of a file: top-level statements, and imports as (module, name)."""

    statements: frozenset[str]
    imports: tuple[tuple[str, str], ...] = ()


def digest(value: Any) -> str:
    """Return the hash of a JSON-like value, independent of the order of keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    encoded = text.encode("utf-8", "surrogatepass")  # names of files may hold any bytes
    return hashlib.sha256(encoded).hexdigest()[:DIGITS]


def source_root() -> Path:
    return Path(str(files("ems")))


@cache
def source_files(module: str) -> tuple[Path, ...]:
    """Return every file, data included, that `module` ("ems.train") reaches by imports in ems."""
    seen: set[Path] = set()
    waiting = [module]
    while waiting:
        for path in _module_files(waiting.pop()):
            if path in seen:
                continue
            seen.add(path)
            for package, name in _source(path).imports:
                inner = f"{package}.{name}"  # a module of the package, or a name in it
                imported = inner if name and _module_files(inner) else package
                if imported not in LEFT_OUT and not f"{imported}.".startswith(f"{SETTINGS}."):
                    waiting.append(imported)
    return tuple(sorted(seen))


@cache
def source_hash(module: str) -> str:
    """Return the hash of all statements in `source_files(module)`."""
    return digest(sorted(set().union(*(_source(path).statements for path in source_files(module)))))


@cache
def _source(path: Path) -> SourceFile:
    if path.suffix == ".py":
        return scan(path.read_text(encoding="utf-8"))
    return SourceFile(frozenset({f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}"}))


def scan(text: str) -> SourceFile:
    code = without_prose(text)
    statements, imports = set(), []
    for module, some, others in _IMPORT.findall(code):
        names = [name.split()[0] for name in (some or others).strip("()\n ,").split(",")]
        places = [(module, name) for name in names] if module else [(name, "") for name in names]
        imports += [place for place in places if place[0].partition(".")[0] == "ems"]
        if (module or names[0]).partition(".")[0] != "ems":
            statements.add(" ".join(["import", module, *(some or others).split()]))
    decorated = ""
    for piece in _STATEMENT.split(_IMPORT_LINE.sub("", code)):
        decorated += piece
        if not piece.startswith("@"):
            statements.add(decorated.rstrip())
            decorated = ""
    return SourceFile(frozenset(statements - {""}), tuple(dict.fromkeys(imports)))


def without_prose(text: str) -> str:
    """Return source without comments, docstrings, blank lines and trailing blanks. Newlines inside
    other strings become NUL, so that each line starts outside of strings.
    """
    kept, end, depth, before = [], 0, 0, ":"
    for token in _TOKEN.finditer(text):
        gap, kind = text[end : token.start()].replace("\\\n", " "), token.lastgroup
        earlier, newline, line = gap.rpartition("\n")
        prefix = line.strip() if newline or not end else "?"
        opens = (earlier.rstrip()[-1:] or before) == ":" and prefix in ("", "r", "R", "u", "U")
        alone = not depth and _NOTHING.match(text, token.end())
        if kind == "string" and opens and alone:  # a docstring
            kept.append(earlier + newline)
        else:
            kept += [gap, "" if kind == "comment" else token[0].replace("\n", "\0")]
        before = (gap.rstrip()[-1:] or before) if kind == "comment" else token[0][-1]
        depth += (kind == "open") - (kind == "close")
        end = token.end()
    lines = "".join([*kept, text[end:].replace("\\\n", " ")]).split("\n")
    return "\n".join(line.rstrip() for line in lines if line.strip())


@cache
def _module_files(module: str) -> tuple[Path, ...]:
    """Return the files of a module, and data files of the same name. For a package: its own modules
    and all data below its folder, except in packages inside it.
    """
    parts = module.split(".")[1:]
    own = parts[1:] if tuple(parts[:2]) in PLUGINS else parts
    files: list[Path] = []
    for base in (source_root().joinpath(*parts), EXTENSIONS.absolute().joinpath(*own)):
        named = [base.with_suffix(suffix) for suffix in (".py", *sorted(DATA))]
        own_files = tuple(path for path in named if path.is_file())
        if own_files and (own_files[0].suffix == ".py" or not base.is_dir()):
            return own_files
        if base.is_dir():
            files += [*base.glob("*.py"), *_data(base)]
    return tuple(files)


def _data(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir() and not (path / "__init__.py").exists():
            yield from _data(path)
        elif path.suffix in DATA and path.name != MESSAGES:
            yield path
