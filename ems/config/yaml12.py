"""YAML as settings are written: version 1.2's core schema, finite numbers, keys that are text.

PyYAML reads YAML 1.1, in which `no` is false (and Norwegian), `1:30` is 90 and `010` is 8; DVC
reads the same config.yaml by 1.2. Sizes are limited, so that no file takes more than seconds.
"""

import math
import re
from pathlib import Path
from typing import Any

import yaml

from ems.base.errors import EmsError
from ems.base.schema import Json

MOST_BYTES = 1_000_000  # of a file: 30 times the largest here
MOST_VALUES = 100_000  # of a file with its aliases written out: 30 times the largest here
DEEPEST = 100  # levels: ten are in use, and Python's stack is enough for about 200
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
KEYS = (f"{TAG}str", f"{TAG}merge")


def parse_yaml(text: str) -> Any:
    """Return the value of a YAML document. Raises `yaml.YAMLError` that names the line."""
    return yaml.load(text, _Loader)


def load_yaml(path: Path) -> Json:
    """Read a YAML mapping. Raises `EmsError` that names file and line when that fails."""
    try:
        with open(path, "rb") as handle:
            content = handle.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise EmsError(f"{path}: expected settings, found a file of over {MOST_BYTES:,} bytes")
        value = parse_yaml(content.decode("utf-8"))
    except FileNotFoundError:
        raise EmsError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise EmsError(f"{path}: not UTF-8 at byte {error.start:,}; save it as UTF-8") from None
    except yaml.YAMLError as error:
        words = " ".join(str(error).split()).replace('in "<unicode string>", line', "in line")
        raise EmsError(f"{path}: not valid YAML: {words}") from None
    if value is None:
        raise EmsError(f"{path}: the file is empty")
    if not isinstance(value, dict):
        raise EmsError(f"{path}: expected `key: value` lines, found {type(value).__name__}")
    return value


def _short(text: str) -> str:
    return text if len(text) < 40 else f"{text[:30]}... ({len(text):,} characters)"


def _error(problem: str, place: yaml.Node | yaml.Event) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)


class _Loader(yaml.SafeLoader):
    """Refuses what PyYAML takes: a key that is there twice or is no text, numbers that are not
    finite, an alias inside of what it stands for, and more values than anybody writes.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = self.values = 0
        self.sizes: dict[yaml.Node, int] = {}  # values of each node that is complete, itself too

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node:
        """Compose the next node and count it."""
        event, before = self.peek_event(), self.values
        alias = isinstance(event, yaml.AliasEvent)
        self.depth += 1
        if self.depth > DEEPEST:
            raise _error(f"nested deeper than {DEEPEST} levels", event)
        node = super().compose_node(parent, index)
        if alias and node not in self.sizes:
            raise _error(f"*{event.anchor} is part of what it stands for", event)
        self.values += self.sizes[node] if alias else 1
        if self.values > MOST_VALUES:
            raise _error(f"more than {MOST_VALUES:,} values, with aliases written out", event)
        self.sizes.setdefault(node, self.values - before)
        self.depth -= 1
        return node

    def compose_mapping_node(self, anchor: str | None) -> yaml.MappingNode:
        """Compose the next mapping and check its keys."""
        node, names = super().compose_mapping_node(anchor), set()
        for key, _ in node.value:
            scalar = isinstance(key, yaml.ScalarNode)
            if not scalar or key.tag not in KEYS:
                wrong = (_short(key.value) or "nothing") if scalar else f"a {key.id}"
                raise _error(f"expected text as a key, found {wrong}; put it in quotes", key)
            if key.value in names:
                raise _error(f"the key {_short(key.value)} is there twice", key)
            names.add(key.value)
        return node

    def construct_plain(self, node: yaml.ScalarNode) -> bool | None:
        """Return a boolean, or null."""
        text, name = self.construct_scalar(node), node.tag.removeprefix(TAG)
        if not re.fullmatch(CORE[name], text):
            raise _error(f"expected {name}, found {_short(text)}", node)
        return text.lower() == "true" if name == "bool" else None

    def construct_text(self, node: yaml.ScalarNode) -> str:
        """Return text that a file can hold: "\\ud800" is half of a character."""
        text = self.construct_scalar(node)
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            wrong = ascii(text[error.start])[1:-1]
            raise _error(f"expected text, found half of a character, {wrong}", node) from None
        return text

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        """Return a finite number. Python reads at most 4,300 digits of a whole one."""
        text = self.construct_scalar(node)
        try:
            whole = node.tag == f"{TAG}int"
            value = int(text, BASES.get(text[:2], 10)) if whole else float(text)
        except ValueError:
            value = math.nan
        if not abs(value) < math.inf:
            raise _error(f"expected a finite number, found {_short(text)}", node)
        return value

    yaml_implicit_resolvers = {  # noqa: RUF012
        None: [(f"{TAG}{name}", re.compile(rf"(?:{words})\Z")) for name, words in CORE.items()]
    }
    yaml_constructors = {  # noqa: RUF012
        f"{TAG}null": construct_plain,
        f"{TAG}bool": construct_plain,
        f"{TAG}int": construct_number,
        f"{TAG}float": construct_number,
        f"{TAG}str": construct_text,
        f"{TAG}seq": yaml.SafeLoader.construct_yaml_seq,
        f"{TAG}map": yaml.SafeLoader.construct_yaml_map,
        None: yaml.SafeLoader.construct_undefined,
    }
