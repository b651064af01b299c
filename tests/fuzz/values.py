"""Odd values, and edits of files by them. Cases are plain data (JSON): any can be run again."""

import base64
from typing import Any

from hypothesis import strategies as st

# kind, edits, words; perhaps same (whether the output must be the first run's), whole (files that
# may not be damaged after status 0), outputs (other paths that may be written), seconds
Case = dict[str, Any]
HUGE = 10**400
NUMBERS = [0, -1, 1, 2, 3, 7, 255, 65536, 2**31, 2**63, 2**64, HUGE, -HUGE, 1e-9, 0.5, 1e9, 1e308]
NUMBERS += [-0.5, float("nan"), float("inf"), -float("inf")]
# fmt: off
TEXTS = [
    "", " ", ".", "..", "../x", "/", "/tmp/x", "a b", "ü", "日本", "x\ny", "x\n", "\x00",
    "\x1b[31m", "$(touch pwned)", "; touch pwned", "`touch pwned`", "'", '"', "{x}", "{", "%s",
    "-x", "*", "null", "nan", "inf", "1", "1.5", "-1", "1e999", "en", "de", "de-en", "toy", "tiny",
    "no", "n" * 300, "tatoeba", "tatoeba=.", "=", "a=b=c", "~", "${HOME}", "\u202e", "𐏿", "a/b",
    "a,b",
]
OTHERS = [
    "odd/file.txt", "odd/empty.txt", "models/ems/model.json", "vocab/vocabulary.model",
    "data/opus/Toy/v1/moses/de-en.txt.zip", "data/mined.tsv.gz", "models/ems/model.safetensors",
    "shards/index.json", "shards/train/de-en/00000/de.ids", "scores/ems/tatoeba.json",
    "text/clean/de-en.tsv", "text/clean/de-en.json", "figures/learning.png", "config.yaml",
]
CONTENTS = [
    b"", b"\n", b"\n\n", b"\0", b"{}", b"[]", b"null", b"1", b'"x"', b"[[]]", b"{}\n{}\n",
    b"\t\t\n", b"NaN", b"1e999", b"\xff\xfe", b"\xef\xbb\xbf{}", b"PK\x03\x04", b"\x1f\x8b",
    b"a\tb\tc\n", b"9" * 5000, b"[" * 3000, b"a\tb\t1\r\n", b"\xff" * 64, b"a" * 200_000 + b"\n",
    b"---\n",
]
# fmt: on
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
    """Bytes as a word of a case."""
    return base64.b64encode(content).decode()


def in_tree(name: str, path: str) -> st.SearchStrategy:
    """An edit of one value of a JSON or YAML file."""
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
        st.tuples(st.just("copy"), here, st.sampled_from(OTHERS)),
        st.tuples(st.sampled_from(["remove", "folder"]), here),
        st.tuples(st.just("link"), here, st.sampled_from(["nowhere", "."])),
    ).map(list)
