"""Changed settings."""

from collections.abc import Callable

from fuzz_values_made import Case, as_text, in_bytes, in_tree
from hypothesis import strategies as st

RAW = [
    b"\t",
    b": ",
    b"- ",
    b"{",
    b"[",
    b"&a *a",
    b"!!python/object:os.system x",
    b"<<: *x",
    b"\xff",
]
RAW += [
    b"? ",
    b"| ",
    b"%",
    b"@",
    b"\x00",
    b"\xe2\x80\xa8",
    b"*" * 30,
    b"a: &a [*a]\n",
    b"\nseed: 1\n",
]


def raw_text(path: str) -> st.SearchStrategy:
    """An edit of a YAML file as text."""
    at = st.integers(0, 10_000)
    inserted = st.tuples(st.just("insert"), st.just(path), at, st.sampled_from(RAW).map(as_text))
    return st.one_of(inserted.map(list), in_bytes(path))


def config_cases(experiments: list[str]) -> st.SearchStrategy:
    """Changed settings, checked by `ems check`."""

    @st.composite
    def one(draw: Callable) -> Case:
        name = draw(st.sampled_from(experiments))
        file = draw(st.sampled_from([f"configs/{name}.yaml"] * 4 + ["config.yaml"]))
        way = draw(st.sampled_from([in_tree("yaml", file)] * 3 + [raw_text(file)]))
        edits = draw(st.lists(way, min_size=0 if not draw(st.integers(0, 9)) else 1, max_size=2))
        words = ["ems", *draw(st.sampled_from([["check"], ["check"], ["corpora", "list"]]))]
        return {"kind": "configs", "edits": edits, "words": [*words, "--experiment", name]}

    return one()
