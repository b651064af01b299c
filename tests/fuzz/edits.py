"""Edits of files: what they may be, and how each is done."""

import json
import shutil
from base64 import b64decode as as_bytes
from base64 import b64encode
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st
from made.models import change_tensors, mend_sums
from safetensors import safe_open

# kind, edits, words; perhaps same (whether the output must be the first run's), whole (files that
# may not be damaged after status 0), outputs (other paths that may be written), seconds
Case = dict[str, Any]
HUGE = 10**400
NUMBERS = [0, -1, 1, 2, 3, 7, 255, 65536, 2**31, 2**63, 2**64, HUGE, -HUGE, 1e-9, 0.5, 1e9, 1e308]
NUMBERS += [-0.5, float("nan"), float("inf"), -float("inf")]
ODD = yaml.safe_load(Path(__file__).with_name("odd.yaml").read_text(encoding="utf-8"))
TEXTS = [*ODD["texts"], "n" * 300]
CONTENTS = [text.encode("latin-1") for text in ODD["contents"]]
CONTENTS += [b"9" * 5000, b"[" * 3000, b"\xff" * 64, b"a" * 200_000 + b"\n"]
SCALARS = st.one_of(
    st.sampled_from(NUMBERS), st.sampled_from(TEXTS), st.booleans(), st.none(), st.text(max_size=8)
)
VALUES = st.one_of(
    SCALARS,
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.lists(SCALARS, max_size=3),
    st.dictionaries(st.sampled_from(TEXTS), SCALARS, max_size=3),
    st.sampled_from([[[[]]], {"a": {"b": {"c": 1}}}, [None], {}, [], "x" * 100_000]),
)
POINTER = st.lists(st.integers(0, 40), min_size=1, max_size=4)


def as_text(content: bytes) -> str:
    return b64encode(content).decode()


def in_tree(name: str, path: str) -> st.SearchStrategy:
    what = st.sampled_from(["set", "set", "set", "remove", "add", "double"])
    return st.tuples(st.just(name), st.just(path), POINTER, what, VALUES).map(list)


def in_bytes(path: str) -> st.SearchStrategy:
    """An edit of a file's bytes, or of what there is in place of the file."""
    at, few = st.integers(0, 1 << 20), st.sampled_from([1, 2, 3, 8, 64, 1024])
    texts = st.one_of(st.sampled_from(CONTENTS), st.binary(max_size=12)).map(as_text)
    here = st.just(path)
    return st.one_of(
        st.tuples(st.just("flip"), here, at, st.integers(0, 7)),
        st.tuples(st.just("flip"), here, st.integers(0, 200), st.integers(0, 7)),
        st.tuples(st.just("cut"), here, at),
        st.tuples(st.just("repeat"), here, at, few),
        st.tuples(st.just("delete"), here, at, few),
        st.tuples(st.just("insert"), here, at, texts),
        st.tuples(st.just("write"), here, texts),
        st.tuples(st.just("fill"), here, st.sampled_from([0, 1, 32, 255])),
        st.tuples(st.just("copy"), here, st.sampled_from(ODD["existing"])),
        st.tuples(st.sampled_from(["remove", "folder"]), here),
        st.tuples(st.just("link"), here, st.sampled_from(["nowhere", "."])),
    ).map(list)


CHANGES = [*map(float, ("nan", "inf", "-inf")), 1e30, 3e38, 9e14, 7e4, 1e-40, 0.0, [], [3], [16, 0]]
CHANGES += ["bool", "int64", "complex64", "float64", "float16", "bfloat16", "GONE"]


def in_tensors(path: str) -> st.SearchStrategy:
    change = st.sampled_from(CHANGES)
    return st.tuples(st.just("tensor"), st.just(path), st.integers(0, 40), change).map(list)


def _tensor(path: Path, at: int, change: Any) -> None:
    with safe_open(path, "pt") as file:
        names = [*sorted(file.keys()), "more"]
    change_tensors(path, {names[at % len(names)]: change})


def _header(path: Path, *edit: Any) -> None:
    """Change the header of a safetensors file as a JSON file."""
    whole = path.read_bytes()
    end = 8 + int.from_bytes(whole[:8], "little")
    header = json.dumps(_put([json.loads(whole[8:end])], [0, *edit[0]], *edit[1:])[0]).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + whole[end:])


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _project_of(path: Path) -> Path:
    return next(folder for folder in path.parents if (folder / "rules").exists())


def _copy(path: Path, other: str) -> None:
    content = (_project_of(path) / other).read_bytes()
    remove(path)
    path.write_bytes(content)


def _replaced(make):
    return lambda path, *rest: (remove(path), make(path, *rest))


def _spoiled(change):
    """An edit of a file's bytes, which may have none, and of a place in them."""

    def edit(path: Path, at: int, *rest: Any) -> None:
        if path.is_file():
            content = path.read_bytes()
            path.write_bytes(change(content, at, at % (len(content) + 1), *rest))

    return edit


def _flip(content: bytes, at: int, _: int, bit: int) -> bytes:
    changed = bytearray(content)
    if content:
        changed[at % len(content)] ^= 1 << bit
    return bytes(changed)


def _in_tree(read, write):
    """An edit of one value in a tree of mappings and lists, which a pointer of places names."""

    def edit(path: Path, pointer: list[int], name: str, value: Any = None) -> None:
        if path.is_file():
            tree = read(path.read_text(encoding="utf-8"))  # the caller ignores its errors
            path.write_text(write(_put([tree], [0, *pointer], name, value)[0]), encoding="utf-8")

    return edit


def _put(tree: Any, pointer: list[int], name: str, value: Any) -> Any:
    """Follow `pointer`, item numbers modulo the length, and change what is there."""
    at = tree
    for number in pointer:
        if not isinstance(at, dict | list) or not at:
            break
        keys = list(at) if isinstance(at, dict) else range(len(at))
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
    "write": _replaced(lambda path, text: path.write_bytes(as_bytes(text))),
    "copy": _copy,
    "remove": remove,
    "folder": _replaced(lambda path: path.mkdir()),
    "link": _replaced(lambda path, target: path.symlink_to(_project_of(path) / target)),
    "flip": _spoiled(_flip),
    "cut": _spoiled(lambda content, _, at: content[:at]),
    "repeat": _spoiled(lambda content, _, at, size: content[: at + size] + content[at:]),
    "insert": _spoiled(lambda content, _, at, text: content[:at] + as_bytes(text) + content[at:]),
    "delete": _spoiled(lambda content, at, _, size: content[:at] + content[at + size :]),
    "header": _header,
    "mend": mend_sums,
    "tensor": _tensor,
    "fill": _spoiled(lambda content, byte, _: bytes([byte]) * len(content)),
    "json": _in_tree(json.loads, json.dumps),
    "yaml": _in_tree(yaml.safe_load, lambda tree: yaml.safe_dump(tree, sort_keys=False)),
}
