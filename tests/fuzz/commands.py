"""Command lines of every subcommand, as the parser of `ems` lists them."""

import argparse
from collections.abc import Callable

from fuzz.values import OTHERS, TEXTS, Case
from fuzz.world import NAMES
from hypothesis import strategies as st

from ems.commands import COMMANDS
from ems.commands.flags import SHARED, flags_of

# The law asks a command to end. This one ends by a signal: test_serve.py has the laws of its start,
# of its end and of whatever arrives.
ENDLESS = {"serve"}


def subcommands() -> dict[str, list[argparse.Action]]:
    """The flags of each subcommand that ends."""
    stages = {}
    for name, command in COMMANDS.items():
        if name in ENDLESS:
            continue
        parser = argparse.ArgumentParser(add_help=False)
        for flag in (*flags_of(command), *SHARED):
            flag.add_to(parser)
        stages[name] = parser._actions
    return stages


WORDS = [text for text in TEXTS if "\x00" not in text]  # the system allows no zero in a word
# fmt: off
ODD = [
    "file.txt", "folder", "empty.txt", "emptyfolder", "fifo", "socket", "dangling", "link", "loop",
    "linkfolder", "null", "absent", "absent/deep/er.txt", "file.txt/below", *NAMES,
]
PATHS = [f"odd/{name}" for name in ODD] + [
    "", ".", "..", "../..", "./", "odd/../odd/file.txt", "-", "text/lines.de",
    "text/clean/de-en.tsv", "models/ems", "shards", "data", "text", *OTHERS, "shards/train/de-en",
    "scores/ems", "reports/vocabulary.json", "configs", "x" * 4200, "models/../models/ems",
    "./text/./lines.de", "../precious.txt", "new/out.tsv", "new",
]
# fmt: on


def value_of(action: argparse.Action) -> st.SearchStrategy:
    """One word for a flag, of its type or not."""
    if action.choices:
        return st.one_of(st.sampled_from(sorted(action.choices)), st.sampled_from(WORDS))
    if type(action.type).__name__ == "Bounds":
        return st.sampled_from(
            ["1", "2", "0", "-1", "3.5", "nan", "9" * 400, "", "x", "999", "1_0"]
        )
    return st.one_of(st.sampled_from(WORDS), st.sampled_from(PATHS))


def split_flags(words: list[str]) -> list[list[str]]:
    """A command's words: what precedes the flags, and each flag with its values."""
    groups: list[list[str]] = [[]]
    for word in words:
        if word.startswith("--"):
            groups.append([])
        groups[-1].append(word)
    return groups


def values_known(commands: list[list[str]]) -> dict[str, list[list[str]]]:
    """What the good commands give to each flag."""
    known: dict[str, list[list[str]]] = {}
    for words in commands:
        for flag, *values in split_flags(words)[1:]:
            known.setdefault(flag[2:], []).append(values)
    return known


def usual(action: argparse.Action, known: dict[str, list[list[str]]]) -> st.SearchStrategy:
    """The words for a flag that some good command gave it, or ones of its type."""
    low, high = {"*": (0, 3), "+": (1, 3), "?": (0, 1)}.get(action.nargs, (1, 1))
    odd = st.lists(value_of(action), min_size=low, max_size=high)
    good = known.get(action.dest.replace("_", "-"))
    return st.one_of(st.sampled_from(good), odd) if good else odd


def command_cases(commands: list[list[str]]) -> st.SearchStrategy:
    """Command lines of every subcommand: good ones with something changed, and made-up ones."""
    stages, known = subcommands(), values_known(commands)
    good = {name: [words for words in commands if words[1] == name] for name in stages}

    @st.composite
    def one(draw: Callable) -> Case:
        name = draw(st.sampled_from(sorted(stages)))
        if good[name] and draw(st.integers(0, 9)):
            words = _changed(draw, draw(st.sampled_from(good[name])), stages[name])
        else:
            words = ["ems", name]
            for action in stages[name]:
                if (action.required or draw(st.booleans())) and draw(st.integers(0, 19)):
                    words += _words_of(action, draw(usual(action, known)))
        return {"kind": "commands", "edits": [], "words": words}

    return one()


def _words_of(action: argparse.Action, values: list[str]) -> list[str]:
    if not action.option_strings:
        return values
    return [action.option_strings[-1], *([] if action.nargs == 0 else values)]


def _changed(draw: Callable, words: list[str], actions: list[argparse.Action]) -> list[str]:
    """A good command with one or two flags changed, removed, repeated or added."""
    groups = [list(group) for group in split_flags(words)]
    paths = [word for group in groups[1:] for word in group[1:] if "/" in word or "." in word]
    for _ in range(draw(st.integers(0, 2))):
        action = draw(st.sampled_from(actions))
        flags = [at for at, group in enumerate(groups) if group[0] in action.option_strings]
        kind = draw(st.sampled_from(["set", "set", "set", "same", "drop", "twice"]))
        values = draw(st.lists(value_of(action), min_size=1, max_size=1))
        if kind == "same" and paths:  # the same path for two flags, by its or another spelling
            path = draw(st.sampled_from(paths))
            values = [draw(st.sampled_from([path, f"./{path}", f"odd/../{path}", f"{path}/"]))]
        if not action.option_strings:
            groups[0][2:] = values if kind != "drop" else []
        elif not flags:
            groups.append(_words_of(action, values))
        elif kind == "drop":
            del groups[flags[0]]
        elif kind == "twice":
            groups.append(groups[flags[0]])
        else:
            groups[flags[0]] = _words_of(action, values)
    return [word for group in groups for word in group]
