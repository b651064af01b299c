"""Arguments of the Python interface: checks what people pass, and converts it."""

import operator
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ems.base.errors import EmsError, mistake
from ems.base.files import SURROGATE
from ems.base.records import shown

MISSING = ("None", "nan", "<NA>", "NaT", "--")  # what Python, numpy and pandas print for no value
# Keywords of SentenceTransformer.encode: our names, and advice where only the default fits.
SAME = {"sentences": "lines", "inputs": "lines", "normalize_embeddings": "normalise"}
SAME |= {"truncate_dim": "dimensions", "show_progress_bar": "show_progress"}
ADVICE = dict.fromkeys(("prompt", "prompt_name"), "put the prompt in front of each line")
ADVICE |= dict.fromkeys(("device", "precision"), "give it to Encoder")
ADVICE |= dict.fromkeys(("output_value", "pool", "chunk_size"), "leave it out")
DEFAULTS = (None, "float32", "sentence_embedding")
UNSET = (None, False, 0)  # defaults of our arguments
IGNORED = ("convert_to_numpy",)


def texts_of(value: Any, name: str = "lines") -> tuple[list[str], bool]:
    """Return the texts of a value, and whether it is one alone. Several are a list, an iterator, or
    a column of numpy, pandas, pyarrow, ... Raises `EmsError` with the position of what is no text.
    """
    if getattr(value, "ndim", None) == 0 or hasattr(value, "as_py"):  # scalars: numpy, pyarrow
        value = value.as_py() if hasattr(value, "as_py") else value.item()
    if isinstance(value, str):
        return [_text(value, name)], True
    other = isinstance(value, Mapping | set | frozenset | bytes | bytearray | memoryview)
    if other or not isinstance(value, Iterable) or getattr(value, "ndim", 1) != 1:
        raise EmsError(f"{name}: expected a text (str) or a list of texts, {_found(value)}")
    items = list(value.to_pylist() if hasattr(value, "to_pylist") else value)
    if {*map(type, items)} == {str}:
        with suppress(UnicodeEncodeError):
            deque(map(str.encode, items), 0)  # a third of the time of `_text`
            return items, False
    return [_text(item, f"{name}: position ", at) for at, item in enumerate(items)], False


def _text(value: Any, place: str, at: int | str = "") -> str:
    if not isinstance(value, str):
        raise EmsError(f"{place}{at}: expected text (str), {_found(value)}")
    if SURROGATE.search(value):
        raise mistake("half a character", place=f"{place}{at}")
    return str(value)


def _found(value: Any) -> str:
    kind = type(value).__name__
    if isinstance(value, bytes | bytearray):
        return f"found {kind}; decode it, as in value.decode('utf-8')"
    if not isinstance(value, Iterable) and str(value) in MISSING:
        return f"found {value} ({kind}); drop missing values first, as in series.dropna()"
    return f"found {kind}" + "; choose one column" * (getattr(value, "ndim", 0) > 1)


def lines_of(value: Any, name: str) -> list[str]:
    """Return several texts. Raises `EmsError` for one text alone, too."""
    texts, single = texts_of(value, name)
    if single:
        raise EmsError(f"{name}: expected a list of sentences, found one text; split it into lines")
    return texts


def whole(value: Any, name: str, most: int | None = None) -> int:
    """Return a whole number of at least 1. Raises `EmsError` for anything else."""
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = 0
    if not 1 <= number <= (most or number):
        bounds = f"from 1 to {most}" if most else "of at least 1"
        raise EmsError(f"{name}: expected a whole number {bounds}, found {shown(value)}")
    return number


def prefix(dimensions: Any, most: int) -> int:
    """Return how many of `most` numbers of a vector to keep; None and 0 keep all."""
    number = isinstance(dimensions, int | np.integer) and not isinstance(dimensions, bool)
    everything = dimensions is None or (number and dimensions == 0)
    return most if everything else whole(dimensions, "dimensions", most)


def limit(threshold: Any) -> float:
    """Return a minimum score; None is none. Raises `EmsError` for NaN and for other types."""
    if threshold is None:
        return -np.inf
    number = isinstance(threshold, int | float | np.integer | np.floating)
    number &= not isinstance(threshold, bool)
    if not number or not (abs(threshold) < 1e300 or abs(threshold) == np.inf):  # e.g. NaN
        raise EmsError(f"threshold: expected a number, or None for all, found {shown(threshold)}")
    return float(threshold)


def one_of(value: Any, name: str, allowed: Sequence[Any] = (True, False)) -> None:
    """Raise `EmsError` for any other value; 1 is not True."""
    if not isinstance(value, str | bool | np.bool_) or value not in allowed:
        known = ", ".join(map(str, allowed))
        raise EmsError(f"{name}: found {shown(value)}; allowed values: {known}")


def as_ours(options: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return our arguments for keywords of SentenceTransformer.encode. Raises `EmsError` for an
    unknown keyword, for one whose argument was `given` too, and for a value that has another place.
    """
    for name, value in options.items():
        if name == "batch_size":  # batches have a fixed number of tokens here
            whole(value, name)
        elif name not in (*SAME, *ADVICE, *IGNORED):
            known = ", ".join(["batch_size", *SAME, *ADVICE, *IGNORED])
            raise EmsError(f"encode: unknown argument {name!r}; other arguments are {known}")
        elif name in SAME and not any(given[SAME[name]] is each for each in UNSET):
            raise EmsError(f"encode: found {name} and {SAME[name]}; give one of them")
        elif name in ADVICE and (not isinstance(value, str | None) or value not in DEFAULTS):
            raise EmsError(f"encode: {name}={shown(value)} has no effect here; {ADVICE[name]}")
    return {SAME[name]: value for name, value in options.items() if name in SAME}
