"""What a case does to the files of the sandbox before its command runs."""

import base64
import json
import os
import shutil
from pathlib import Path
from typing import Any

import yaml


def remove(path: Path) -> None:
    """Remove whatever is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _project_of(path: Path) -> Path:
    """The folder that the commands run in."""
    return next(folder for folder in path.parents if (folder / "rules").exists())


def _replaced(make):
    """An edit that removes what is there and makes something else."""

    def edit(path: Path, *rest: Any) -> None:
        remove(path)
        make(path, *rest)

    return edit


def _copy(path: Path, other: str) -> None:
    """Put another file of the project in place of this one."""
    content = (_project_of(path) / other).read_bytes()
    remove(path)
    path.write_bytes(content)


def _spoiled(change):
    """An edit of a file's bytes."""

    def edit(path: Path, *rest: Any) -> None:
        if path.is_file():
            path.write_bytes(change(path.read_bytes(), *rest))

    return edit


def _flip(content: bytes, at: int, bit: int) -> bytes:
    """The content with one bit turned over."""
    if not content:
        return content
    at %= len(content)
    return content[:at] + bytes([content[at] ^ (1 << bit)]) + content[at + 1 :]


def _repeat(content: bytes, at: int, length: int) -> bytes:
    """The content with a stretch of it twice."""
    at %= len(content) + 1
    return content[: at + length] + content[at:]


def _insert(content: bytes, at: int, text: str) -> bytes:
    """The content with base64 `text` in it."""
    at %= len(content) + 1
    return content[:at] + base64.b64decode(text) + content[at:]


def _in_tree(read, write):
    """An edit of one value in a tree of mappings and lists, which a pointer of places names."""

    def edit(path: Path, pointer: list[int], name: str, value: Any = None) -> None:
        if not path.is_file():
            return
        try:
            tree = read(path.read_text(encoding="utf-8"))
        except (ValueError, yaml.YAMLError, OSError):
            return
        path.write_text(write(_put([tree], [0, *pointer], name, value)[0]), encoding="utf-8")

    return edit


def _put(tree: Any, pointer: list[int], name: str, value: Any) -> Any:
    """Walk by `pointer` (an item's number at each level, modulo the length) and change what is
    there: "set" it, "remove" it, "add" a key beside it, "double" it.
    """
    at = tree
    for number in pointer:
        if not isinstance(at, dict | list) or not at:
            break
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        parent, key = at, keys[number % len(keys)]
        at = at[key]
    if name == "set":
        parent[key] = value
    elif name == "remove" and parent is not tree:
        del parent[key]
    elif name == "add" and isinstance(parent, dict):
        parent[str(key) + "x"] = value
    elif name == "double" and isinstance(parent, list) and parent is not tree:
        parent.append(parent[key])
    return tree


def _at(path: Path, way: list[str], value: Any) -> None:
    """Give the setting at the end of a way of keys a value, in a YAML file."""
    tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    place = tree
    for key in way[:-1]:
        place[key] = place[key] if isinstance(place.get(key), dict) else {}
        place = place[key]
    place[way[-1]] = value
    path.write_text(yaml.safe_dump(tree, sort_keys=False), encoding="utf-8")


EDITS = {
    "at": _at,
    "write": _replaced(lambda path, text: path.write_bytes(base64.b64decode(text))),
    "copy": _copy,
    "remove": remove,
    "folder": _replaced(lambda path: path.mkdir()),
    "fifo": _replaced(os.mkfifo),
    "link": _replaced(lambda path, target: path.symlink_to(_project_of(path) / target)),
    "flip": _spoiled(_flip),
    "cut": _spoiled(lambda content, at: content[: at % (len(content) + 1)]),
    "repeat": _spoiled(_repeat),
    "insert": _spoiled(_insert),
    "delete": _spoiled(lambda content, at, length: content[:at] + content[at + length :]),
    "fill": _spoiled(lambda content, byte: bytes([byte]) * len(content)),
    "json": _in_tree(json.loads, json.dumps),
    "yaml": _in_tree(yaml.safe_load, lambda tree: yaml.safe_dump(tree, sort_keys=False)),
}
