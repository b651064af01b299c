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


def project_of(path: Path) -> Path:
    """The folder that the commands run in."""
    return next(folder for folder in path.parents if (folder / "rules").exists())


def copy(path: Path, other: str) -> None:
    """Put another file of the project in place of this one."""
    content = (project_of(path) / other).read_bytes()
    remove(path)
    path.write_bytes(content)


def link(path: Path, target: str) -> None:
    """Put a link in place of this path; `target`: relative to the project."""
    remove(path)
    path.symlink_to(project_of(path) / target)


def spoiled(change):
    """An edit of a file's bytes."""

    def edit(path: Path, *rest: Any) -> None:
        if path.is_file():
            path.write_bytes(change(path.read_bytes(), *rest))

    return edit


def flip(content: bytes, at: int, bit: int) -> bytes:
    """The content with one bit turned over."""
    if not content:
        return content
    at %= len(content)
    return content[:at] + bytes([content[at] ^ (1 << bit)]) + content[at + 1 :]


def repeat(content: bytes, at: int, length: int) -> bytes:
    """The content with a stretch of it twice."""
    at %= len(content) + 1
    return content[: at + length] + content[at:]


def insert(content: bytes, at: int, text: str) -> bytes:
    """The content with base64 `text` in it."""
    at %= len(content) + 1
    return content[:at] + base64.b64decode(text) + content[at:]


def in_tree(read, write):
    """An edit of one value in a tree of mappings and lists, which a pointer of places names."""

    def edit(path: Path, pointer: list[int], name: str, value: Any = None) -> None:
        if not path.is_file():
            return
        try:
            tree = read(path.read_text(encoding="utf-8"))
        except (ValueError, yaml.YAMLError, OSError):
            return
        path.write_text(write(put([tree], [0, *pointer], name, value)[0]), encoding="utf-8")

    return edit


def put(tree: Any, pointer: list[int], name: str, value: Any) -> Any:
    """Walk by `pointer` (an item's number at each level, modulo the length) and change what is
    there: "set" it, "remove" it, "add" a key beside it, "double" it.
    """
    at, keys = tree, []
    for number in pointer:
        if not isinstance(at, dict | list) or not at:
            break
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        parent, key = at, keys[number % len(keys)]
        at = at[key]
    if parent is tree and name != "set":
        return tree
    if name == "set":
        parent[key] = value
    elif name == "remove":
        del parent[key]
    elif name == "add" and isinstance(parent, dict):
        parent[str(key) + "x"] = value
    elif name == "double" and isinstance(parent, list):
        parent.append(parent[key])
    return tree


def at(path: Path, way: list[str], value: Any) -> None:
    """Give the setting at the end of a way of keys a value, in a YAML file."""
    tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    place = tree
    for key in way[:-1]:
        place[key] = place[key] if isinstance(place.get(key), dict) else {}
        place = place[key]
    place[way[-1]] = value
    path.write_text(yaml.safe_dump(tree, sort_keys=False), encoding="utf-8")


EDITS = {
    "at": at,
    "write": lambda path, text: (remove(path), path.write_bytes(base64.b64decode(text))),
    "copy": copy,
    "remove": remove,
    "folder": lambda path: (remove(path), path.mkdir()),
    "fifo": lambda path: (remove(path), os.mkfifo(path)),
    "link": link,
    "flip": spoiled(flip),
    "cut": spoiled(lambda content, at: content[: at % (len(content) + 1)]),
    "repeat": spoiled(repeat),
    "insert": spoiled(insert),
    "delete": spoiled(lambda content, at, length: content[:at] + content[at + length :]),
    "fill": spoiled(lambda content, byte: bytes([byte]) * len(content)),
    "json": in_tree(json.loads, json.dumps),
    "yaml": in_tree(yaml.safe_load, lambda tree: yaml.safe_dump(tree, sort_keys=False)),
}
