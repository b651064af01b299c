"""The header of a safetensors file of weights against the sizes of its model; mapping the file."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from ems.base.errors import Damaged
from ems.base.files import check_readable, parse_json, unreadable

Shapes = Mapping[str, tuple[int, ...]]
FLOATS = ("F32", "F16", "BF16")  # types of weights in safetensors' words
# types of tensors by the end of their names
BYTES = {"letters": ("U8",), "embeddings": ("I8",), "bytes": ("I8",)}
# of NumPy, which has no bfloat16
TYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "U8": "u1", "I8": "i1"}


def mapped(path: Path, shapes: Shapes | None) -> dict[str, np.ndarray]:
    """Map the weights of a safetensors file into memory (bfloat16 as uint16); nothing is read
    before it is used. Raises `Damaged` for other names, shapes (None: any) or types.
    """
    with opened_weights(path, "np"), open(path, "rb") as file:  # the first checks the header
        size = int.from_bytes(file.read(8), "little")
        header = parse_json(file.read(size).decode())
        header.pop("__metadata__", None)
        check_fits(path, {k: (v["dtype"], v["shape"]) for k, v in header.items()}, shapes)
        content = np.memmap(path, np.uint8, "r", 8 + size)
    return {
        name: np.ndarray(of["shape"], TYPES[of["dtype"]], content, of["data_offsets"][0])
        for name, of in header.items()
    }


def in_bytes(shapes: Shapes) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a file of int8: `bytes` [V, d] and `scales` [V] for each `weight`."""
    split: dict[str, tuple[int, ...]] = {}
    for name, shape in shapes.items():
        stem = name.removesuffix("weight")
        parts = {f"{stem}bytes": shape, f"{stem}scales": shape[:1]}
        split |= {name: shape} if stem == name else parts
    return split


@contextmanager
def opened_weights(path: Path, library: str) -> Iterator[Any]:
    """Open a safetensors file for "np" or "pt". Raises `EmsError`; `Damaged` for another kind."""
    check_readable(path)
    try:
        with safe_open(path, library) as file:
            yield file
    except OSError as error:
        raise unreadable(path, error) from None
    except SafetensorError as error:
        raise Damaged(path, f"no file of safetensors ({' '.join(str(error).split())})") from None


def check_fits(path: Path, found: dict[str, tuple[str, list[int]]], shapes: Shapes | None) -> None:
    """Raise `Damaged` for a tensor that is missing or unknown, or has another shape or type."""
    for name in sorted(found.keys() | (shapes or found).keys()):
        kind, shape = found.get(name, ("nothing", []))
        expected = shape if shapes is None else shapes.get(name)
        types = BYTES.get(name.rpartition(".")[2], FLOATS)
        if expected is None or list(expected) != shape or kind not in types:
            wanted = "no such tensor" if expected is None else f"{types[0]}{list(expected)}"
            there = f"{kind}{shape if name in found else ''}"
            problem = f"{name}: expected {wanted}, found {there}"
            raise Damaged(path, f"does not fit its settings: {problem}")
