"""Cases: command lines of every subcommand, damaged files for each that reads them, and changed
settings that are checked, planned by Snakemake without a job, run by it, and trained with.
"""

import argparse
import itertools
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from fuzz.edits import NUMBERS, ODD, TEXTS, VALUES, Case, as_text, in_bytes, in_tensors, in_tree
from fuzz.world import COMMANDS, NAMES, RESUMED, as_words
from hypothesis import strategies as st
from made.experiments import SCHEMAS, parts_of

from ems.commands import COMMANDS as EVERY_COMMAND
from ems.commands.flags import SHARED, Assignment, flags_of, path

# The law asks a command to end soon. `serve` ends by a signal: test_serve.py has the laws of its
# start, of its end and of whatever arrives. The others run all stages.
ENDLESS = {"quickstart", "run", "serve"}


def subcommands() -> dict[str, list[argparse.Action]]:
    """The flags of each subcommand that ends."""
    stages = {}
    for name in EVERY_COMMAND.keys() - ENDLESS:
        parser = argparse.ArgumentParser(add_help=False)
        for flag in (*flags_of(EVERY_COMMAND[name]), *SHARED):
            flag.add_to(parser)
        stages[name] = parser._actions
    return stages


WORDS = [text for text in TEXTS if "\x00" not in text]  # the system allows no zero in a word
WRONG = [f"odd/{name}" for name in (*ODD["kinds"], *ODD["spoilt"], *NAMES)]
WRONG += ["x" * 4200, "a\0b", ""]
PATHS = [*filter(lambda path: "\0" not in path, WRONG), *ODD["paths"], *ODD["existing"]]
WRONG_TEXTS = [*ODD["wrong"]["texts"], "x" * 5000]
WRONG_NUMBERS = [*ODD["wrong"]["numbers"], "9" * 400]


def value_of(action: argparse.Action) -> st.SearchStrategy:
    """One word for a flag, of its type or not."""
    if action.choices:
        return st.one_of(st.sampled_from(sorted(action.choices)), st.sampled_from(WORDS))
    if type(action.type).__name__ == "Bounds":
        words = ("1", "2", "0", "-1", "3.5", "nan", "9" * 400, "", "x", "999", "1_0")
        return st.sampled_from(words)
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
    known = defaultdict(list)
    for flag, *values in (group for words in commands for group in split_flags(words)[1:]):
        known[flag[2:]].append(values)
    return known


def usual(action: argparse.Action, known: dict[str, list[list[str]]]) -> st.SearchStrategy:
    low, high = {"*": (0, 3), "+": (1, 3), "?": (0, 1)}.get(action.nargs, (1, 1))
    odd = st.lists(value_of(action), min_size=low, max_size=high)
    good = known.get(action.dest.replace("_", "-"))
    return st.one_of(st.sampled_from(good), odd) if good else odd


def wrong_cases(commands: list[list[str]], most: int = 99) -> list[Case]:
    """A good command line of each subcommand with each of its flags given each wrong value, or
    `most` of them: others for each flag.
    """
    good = {words[1]: words for words in (*map(as_words, ODD["untried"]), *reversed(commands))}
    listed = []
    for name, actions in subcommands().items():
        groups = split_flags(good[name])
        for action in (action for action in actions if action.nargs != 0):
            flag = action.option_strings[-1] if action.option_strings else None
            kept = [group for group in groups[1:] if group[0] != flag]
            values = _wrong_values(action)
            for at in range(len(listed), len(listed) + min(most, len(values))):
                value = values[7 * at % len(values)]
                first, last = (groups[0], [flag, value]) if flag else (groups[0][:2], [value])
                words = [*first, *itertools.chain(*kept), *last]
                listed.append({"kind": "wrong", "edits": [], "words": words})
    return listed


def _wrong_values(action: argparse.Action) -> list[str]:
    if isinstance(action.type, Assignment):
        return [*WRONG_TEXTS, *(f"tatoeba={path}" for path in WRONG)]
    if action.type is path:
        return WRONG
    if action.type is str and not action.choices:
        return [*WRONG_TEXTS, *(WRONG if action.dest in ("model", "source", "profile") else ())]
    return WRONG_NUMBERS


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


CHECKED = {  # stage -> files with a checksum: damage is noticed, or changes nothing
    "encode": ("models/ems/model.safetensors", "models/ems/vocabulary.model"),
    "bench": ("models/ems/model.safetensors", "models/ems/vocabulary.model"),
    "prepare": ("data/opus/Toy/v1/moses/de-en.txt.zip", "data/opus/ToyDev/v1/moses/de-en.txt.zip"),
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


MODELS = {  # model folder -> its files that a command reads
    "models/ems": ("model.json", "model.safetensors", "heads.safetensors", "vocabulary.model"),
    "models/char-ngram": ("model.json", "ngrams.safetensors"),
    "models/fused": ("model.json", "ngrams.safetensors"),
    "exports/ems": ("ems.json", "SHA256SUMS", "model.safetensors", "vocabulary.model"),
    "exports/static": ("ems.json", "SHA256SUMS", "0_StaticEmbedding/model.safetensors"),
}
USES = [words for words in COMMANDS if words[1] in ("encode", "score", "mine", "validate")]


def model_cases() -> st.SearchStrategy:
    """A damaged model folder, half of the time with checksums that fit, in one of its uses."""
    bench = next(words for words in COMMANDS if {"bench", "char-ngram"} <= {*words})

    @st.composite
    def one(draw: Callable) -> Case:
        folder = draw(st.sampled_from(sorted(MODELS)))
        edits = []
        for _ in range(draw(st.integers(1, 2))):
            path = f"{folder}/{draw(st.sampled_from(MODELS[folder]))}"
            likely = in_bytes(path)
            if path.endswith(".json"):
                likely = in_tree("json", path)
            elif path.endswith(".safetensors"):
                likely = st.one_of(in_tensors(path), in_tree("header", path))
            edits.append(draw(likely if draw(st.integers(0, 3)) else in_bytes(path)))
        edits += [["mend", folder]] * draw(st.integers(0, 1))
        own = [bench] if folder in ("models/char-ngram", "models/fused") else USES
        known = {"models/ems": folder, "models/char-ngram": folder}
        words = [known.get(word, word) for word in draw(st.sampled_from(own))]
        return {"kind": "models", "edits": edits, "words": words}

    return one()


def checked(words: list[str], path: str) -> bool:
    """Whether damage to the file must be noticed, or make no difference."""
    return path in CHECKED.get(words[1], ()) or (words == RESUMED and path.startswith("state/"))


TOY, SITE = "configs/toy.yaml", "config.yaml"
Key = tuple[tuple[str, ...], dict[str, Any]]  # the way to a setting, and its schema
RAW = [as_text(text.encode("latin-1")) for text in (*ODD["inserted"], "*" * 30)]


def raw_text(path: str) -> st.SearchStrategy:
    at = st.integers(0, 10_000)
    inserted = st.tuples(st.just("insert"), st.just(path), at, st.sampled_from(RAW))
    return st.one_of(inserted.map(list), in_bytes(path))


KEYS: dict[str, list[Key]] = {  # every setting that the schemas of the toy's files know by name
    file: [(way, part) for way, part in parts_of(schema) if way and not {"[]", "x"} & {*way}]
    for file, schema in ((SITE, SCHEMAS["site"]), (TOY, SCHEMAS["experiment"]))
}


def bounds(schema: dict[str, Any]) -> list[float]:
    """The numbers at, inside and beyond what a setting may be."""
    numbers = [0, 1, 0.5]
    for key, step in (("minimum", 1), ("maximum", -1)):
        limit = schema.get(key, schema.get(f"exclusive{key.capitalize()}"))
        if limit is not None:
            numbers += [limit, limit + step, limit - step, limit + step * 1e-9]
    return numbers


def value_for(schema: dict[str, Any]) -> st.SearchStrategy:
    """A value that a setting may have, or nearly."""
    if "enum" in schema:
        return st.sampled_from([*schema["enum"], *schema["enum"], "x"])
    values = {
        "integer": [n for n in bounds(schema) if n == int(n)] * 2 + NUMBERS,
        "number": bounds(schema) * 3 + NUMBERS,
        "boolean": [True, False, True, False, None, "yes", 1],
        "string": TEXTS,
    }.get(schema.get("type"))
    return st.sampled_from(values) if values else VALUES


@st.composite
def setting(draw: Callable, file: str, keys: list[Key]) -> list[Any]:
    way, schema = draw(st.sampled_from(keys))
    odd = draw(st.integers(0, 5)) == 0
    return ["at", file, list(way), draw(VALUES if odd else value_for(schema))]


@st.composite
def config_cases(draw: Callable, experiments: list[str]) -> Case:
    name = draw(st.sampled_from(experiments))
    file = draw(st.sampled_from([f"configs/{name}.yaml"] * 4 + [SITE]))
    ways = [setting(file, KEYS[SITE if file == SITE else TOY])] * 4
    way = draw(st.sampled_from([*ways, *[in_tree("yaml", file)] * 2, raw_text(file)]))
    edits = draw(st.lists(way, min_size=1 if draw(st.integers(0, 9)) else 0, max_size=2))
    words = ["ems", *draw(st.sampled_from([["check"], ["check"], ["corpora", "list"]]))]
    return {"kind": "configs", "edits": edits, "words": [*words, "--experiment", name]}


def planned_cases() -> st.SearchStrategy:
    files = KEYS.items()
    edits = st.one_of(*(st.one_of(setting(*each), in_tree("yaml", each[0])) for each in files))
    case = {"kind": "plans", "words": ["snakemake", "-n", "all"]}
    return st.lists(edits, min_size=1, max_size=2).map(lambda edits: {**case, "edits": edits})


SECTIONS = ("model", "objectives", "train")
SLOW = {"steps", "compile", "device", "grad_cache"}  # of which large values only take long
SMALL = 64  # numbers above it only take memory
TRAIN = next(words for words in COMMANDS if words[1] == "train")
TRAINED = [
    (way, schema)
    for way, schema in KEYS[TOY]
    if way[0] in SECTIONS and len(way) > 1 and not SLOW & set(way)
]


@st.composite
def training_cases(draw: Callable) -> Case:
    """Odd settings within and around their bounds, with which the toy is trained."""
    edits = []
    for _ in range(draw(st.integers(1, 3))):
        way, schema = draw(st.sampled_from(TRAINED))
        value = draw(value_for(schema))
        if not isinstance(value, int) or value <= SMALL:
            edits.append(["at", TOY, list(way), value])
    return {"kind": "trainings", "edits": edits, "words": TRAIN}


def workflow_cases() -> st.SearchStrategy:
    """Names that a shell, Snakemake or a path takes for more than a name, in a run of some jobs."""
    kinds = ["data", "data", "source", "source", "experiment", "corpus", "version"]
    return st.builds(named, st.sampled_from(kinds), st.sampled_from([*ODD["names"], "x" * 300]))


def named(what: str, name: str) -> Case:
    """The workflow with something of the toy called `name`."""
    corpus = {"name": "Toy", "version": "v1", "source": "mirror/opus"}
    linked, of, outputs, edits = "", "", [], []
    match what:
        case "data":
            edits, outputs = [["at", SITE, ["data"], name]], [name]
        case "source":
            linked, of, corpus["source"] = name, "mirror/opus", name
        case "experiment":
            edits = [["copy", f"configs/{name}.yaml", TOY], ["at", SITE, ["experiment"], name]]
        case "corpus":
            linked, of, corpus["name"] = f"mirror/opus/{name}", "mirror/opus/Toy", name
        case "version":
            linked, of, corpus["version"] = f"mirror/opus/Toy/{name}", "mirror/opus/Toy/v1", name
    if linked.strip("./"):
        edits.append(["link", linked, of])
    edits.append(["at", TOY, ["corpora"], [corpus]])
    results = name if what == "experiment" else "toy"
    words = ["snakemake", f"results/{results}/reports/decontamination.json"]
    return {"kind": "workflows", "edits": edits, "words": words, "outputs": outputs}
