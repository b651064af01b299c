"""Damaged files for every command that reads them."""

from collections.abc import Callable

from fuzz.stages import RESUMED
from fuzz.values import Case, in_bytes, in_tree
from hypothesis import strategies as st

CHECKED = {  # stage -> files with a checksum: damage is noticed, or changes nothing
    "encode": ("models/ems/model.safetensors", "models/ems/vocabulary.model"),
    "bench": ("models/ems/model.safetensors", "models/ems/vocabulary.model"),
    "clean": ("data/opus/Toy/v1/moses/de-en.txt.zip", "data/opus/ToyDev/v1/moses/de-en.txt.zip"),
}


def files_read(words: list[str], listing: list[str]) -> list[str]:
    """The files that a command is given: named, in a folder that it names, or settings."""
    named = {word.partition("=")[2] or word for word in words if not word.startswith("--")}
    outputs = {words[at + 1] for at, word in enumerate(words) if word in ("--out", "--costs")}
    named -= outputs
    if "shards/index.json" in named:
        named |= {"shards/train", "shards/dev"}
    return [f for f in listing if any(f == n or f.startswith(f"{n}/") for n in named - {"."})]


def file_cases(good: list[list[str]], listing: list[str]) -> st.SearchStrategy:
    """Damage to a file that one of the `good` commands reads; `listing`: the files there are."""
    commands = [*good, RESUMED, RESUMED, RESUMED]
    pairs = [(words, path) for words in commands for path in files_read(words, listing)]
    verify = next(words for words in commands if "verify" in words)
    pairs += [(verify, path) for _, path in pairs if "shards/train" in path]

    @st.composite
    def one(draw: Callable) -> Case:
        stage = draw(st.sampled_from(sorted({words[1] for words, _ in pairs})))
        words, path = draw(st.sampled_from([pair for pair in pairs if pair[0][1] == stage]))
        if path.endswith((".json", ".jsonl")) and draw(st.integers(0, 2)):
            edits = draw(st.lists(in_tree("json", path), min_size=1, max_size=2))
        else:
            edits = draw(st.lists(in_bytes(path), min_size=1, max_size=2))
        case = {"kind": "files", "edits": edits, "words": words, "same": checked(words, path)}
        return case | {"whole": [path] if words == verify and not path.endswith("json") else []}

    return one()


def checked(words: list[str], path: str) -> bool:
    """Whether damage to the file must be noticed, or make no difference."""
    return path in CHECKED.get(words[1], ()) or (words == RESUMED and path.startswith("state/"))
