"""Read and check the two settings files, config.yaml and configs/<name>.yaml.

An experiment file is complete: no setting of another experiment can leak in, because each process
reads only this file, by name (Snakemake's own config holds only `experiment` and the settings of
the site).

The files follow YAML 1.2's core schema with finite numbers and text keys. By YAML 1.1, `no` is
false (and Norwegian), `1:30` is 90 and `010` is 8, and DVC reads the same config.yaml by 1.2. Sizes
are limited, so that reading a file takes seconds at most.
"""

import math
import os
import re
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import Event
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.resolver import VersionedResolver

from ems.base.errors import EmsError, mistake
from ems.base.files import SURROGATE
from ems.base.records import Json
from ems.base.schema import checked, merge, plain
from ems.config.experiment import Experiment
from ems.config.file import Site, experiment_model, site_model
from ems.config.resolve import build

RESERVED = {"tables", "figures"}  # folders in results/ for the selected experiment's tables
MOST_BYTES = 1_000_000  # in a file: 30 times the largest one shipped
MOST_VALUES = 100_000  # in a file with its aliases expanded: 30 times the largest one shipped
DEEPEST = 100  # levels: ten are in use, and Python's stack suffices for about 200
TAG = "tag:yaml.org,2002:"
CORE = {  # section 10.3.2 of YAML 1.2.2: what a plain word is; any other is text
    "null": r"null|Null|NULL|~|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    "float": r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
    "merge": r"<<",
}
BASES = {"0o": 8, "0x": 16}


def load_site(path: Path, overrides: Json | None = None) -> Site:
    """Read and check config.yaml, with `overrides` (from `--config`) and defaults filled in."""
    words = {"true": True, "false": False}  # Snakemake converts only `True` and `False`
    converted = {key: words.get(str(value), value) for key, value in (overrides or {}).items()}
    site = checked(site_model(), merge(load_yaml(path), converted), path)
    folder = path.parent / site.data
    try:
        os.scandir(folder).close()
    except OSError as error:
        if not isinstance(error, FileNotFoundError) or folder.is_symlink():
            raise mistake("data is no folder", path=path, folder=str(folder), error=error) from None
    return site


def load_experiment(name: str, site: Site, configs: Path = Path("configs")) -> Experiment:
    """Read and check configs/`name`.yaml. Raises `EmsError`, one line that names the key."""
    path = configs / f"{name}.yaml"
    if name in RESERVED:
        raise EmsError(f"experiment: {name} is a folder in results/; rename {path}")
    if not path.is_file():
        known = ", ".join(sorted(item.stem for item in configs.glob("*.yaml"))) or "none"
        raise EmsError(f"experiment: {path} does not exist; the experiments here: {known}")
    value = load_yaml(path)
    file = checked(experiment_model(), value, path)
    try:
        return build(name, file, plain(site.sources), value["systems"])
    except EmsError as error:
        raise EmsError(f"{path}: {error}") from None


# --- YAML


class _Resolver(VersionedResolver):
    """Tags plain words by the core schema; ruamel.yaml's own also knows dates, 1_000 and 0b11."""

    versioned_resolver = {  # noqa: RUF012
        None: [(f"{TAG}{name}", re.compile(rf"(?:{words})\Z")) for name, words in CORE.items()]
    }


class _Composer(Composer):
    depth = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            raise _error(f"nested deeper than {DEEPEST} levels", self.parser.peek_event())
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def parse_yaml(text: str) -> Any:
    """Return the value of a YAML document. Raises `YAMLError` that names the line."""
    reader = YAML(typ="safe", pure=True)
    reader.Resolver, reader.Composer = _Resolver, _Composer
    node = reader.compose(text)
    return None if node is None else _Values().convert(node, [])


def load_yaml(path: Path) -> Json:
    """Read a YAML mapping. Raises `EmsError` that names file and line."""
    try:
        with open(path, "rb") as handle:
            content = handle.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise EmsError(f"{path}: expected settings, found a file of over {MOST_BYTES:,} bytes")
        value = parse_yaml(content.decode("utf-8"))
    except FileNotFoundError:
        hint = "; run ems in the folder of the project" if path.name == "config.yaml" else ""
        raise EmsError(f"{path}: no such file{hint}") from None
    except UnicodeDecodeError as error:
        raise EmsError(f"{path}: not UTF-8 at byte {error.start:,}; save it as UTF-8") from None
    except YAMLError as error:
        words = " ".join(str(error).split()).replace('in "<unicode string>", line', "in line")
        raise EmsError(f"{path}: not valid YAML: {words}") from None
    if value is None:
        raise EmsError(f"{path}: the file is empty")
    if not isinstance(value, dict):
        raise EmsError(f"{path}: expected `key: value` lines, found {type(value).__name__}")
    return value


class _Values:
    """Converts nodes to values, counting them with all aliases expanded."""

    count = 0

    def convert(self, node: Node, parents: list[Node]) -> Any:
        self.count += 1
        if any(node is parent for parent in parents):
            raise _error(f"the alias *{node.anchor} contains itself", node)
        if self.count > MOST_VALUES:
            raise _error(f"more than {MOST_VALUES:,} values, with aliases expanded", node)
        name = node.tag.removeprefix(TAG)
        if isinstance(node, SequenceNode) and name == "seq":
            return [self.convert(item, [*parents, node]) for item in node.value]
        if isinstance(node, MappingNode) and name == "map":
            return self._mapping(node, [*parents, node])
        if isinstance(node, ScalarNode) and name in ("null", "bool", "int", "float", "str"):
            return _scalar(node, name)
        raise _error(f"could not determine a constructor for the tag {node.tag!r}", node)

    def _mapping(self, node: MappingNode, parents: list[Node]) -> Json:
        mapping: Json = {}
        merged: Json = {}
        for key, value in node.value:
            scalar = isinstance(key, ScalarNode)
            if not scalar or key.tag not in (f"{TAG}str", f"{TAG}merge"):
                wrong = (_short(key.value) or "nothing") if scalar else f"a {key.id}"
                raise _error(f"expected text as a key, found {wrong}; put it in quotes", key)
            if key.value in mapping or (key.tag == f"{TAG}merge" and merged):
                raise _error(f"the key {_short(key.value)} is there twice", key)
            if key.tag == f"{TAG}merge":
                merged = self._merged(value, parents)
            else:
                mapping[_scalar(key, "str")] = self.convert(value, parents)
        return {**merged, **mapping}

    def _merged(self, node: Node, parents: list[Node]) -> Json:
        """Return the mapping that `<<` merges in; in a list, the first mapping with a key wins."""
        nodes = node.value if isinstance(node, SequenceNode) else [node]
        values = [self.convert(item, parents) for item in nodes]
        if not all(isinstance(value, dict) for value in values):
            raise _error("expected a mapping, or a list of them, to merge", node)
        return {key: part for value in reversed(values) for key, part in value.items()}


def _scalar(node: ScalarNode, name: str) -> Any:
    text = node.value
    if name in ("null", "bool"):
        if not re.fullmatch(CORE[name], text):
            raise _error(f"expected {name}, found {_short(text)}", node)
        return text.lower() == "true" if name == "bool" else None
    if name == "str":
        if half := SURROGATE.search(text):
            raise _error(f"expected text, found half of a character, {ascii(half[0])[1:-1]}", node)
        return text
    try:  # Python reads at most 4,300 digits
        value = int(text, BASES.get(text[:2], 10)) if name == "int" else float(text)
    except ValueError:
        value = math.nan
    if not abs(value) < math.inf:
        raise _error(f"expected a finite number, found {_short(text)}", node)
    return value


def _short(text: str) -> str:
    return text if len(text) < 40 else f"{text[:30]}... ({len(text):,} characters)"


def _error(problem: str, place: Node | Event) -> MarkedYAMLError:
    return MarkedYAMLError(problem=problem, problem_mark=place.start_mark)
