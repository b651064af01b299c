"""The keys of all evaluation sentences: one file per experiment, `key<TAB>label,label...` a line.

A label is `<evalset>/<code>`, the code the set's own, so the file does not depend on what an
experiment trains on. EMS v2 section IV-B.
"""

from collections.abc import Callable, Collection, Iterable
from functools import partial
from itertools import islice
from pathlib import Path

from ems.config import Experiment
from ems.evalsets.sets import read_sides
from ems.files import atomic_path
from ems.progress import Progress
from ems.text.normalise import keys_function, tidier, tidy_lines

Sides = Iterable[Iterable[str]]  # the sides of one language of an evaluation set
BATCH = 2000  # sentences folded at once


def write_eval_keys(
    key_name: str,
    files: dict[str, Callable[[], Sides]],
    out: Path,
    format_characters: str = "keep",
) -> int:
    """Write the keys of every evaluation sentence with its labels; return their number.

    `files` maps a label to a function that reads its sides; sentences are tidied with the setting
    `format_characters` as those of the training side are.
    """
    slow, keys_of = tidier(format_characters), keys_function(key_name)
    labels: dict[str, tuple[str, ...]] = {}
    combinations: dict[tuple[str, ...], tuple[str, ...]] = {}  # one object for each: keys are many
    progress = Progress("read evaluation sets", len(files), "languages")
    for label, read in files.items():
        for side in read():
            sentences = iter(side)
            while batch := list(islice(sentences, BATCH)):
                for key in keys_of(tidy_lines(batch, slow)):
                    had = labels.get(key, ())
                    if key and label not in had:
                        labels[key] = combinations.setdefault((*had, label), (*had, label))
        progress.add()
    progress.close(f"{len(labels):,} distinct keys")
    with atomic_path(out) as temporary, open(temporary, "w", encoding="utf-8") as writer:
        writer.writelines(f"{key}\t{','.join(sorted(labels[key]))}\n" for key in sorted(labels))
    return len(labels)


def eval_files(experiment: Experiment, folders: dict[str, Path]) -> dict[str, Callable[[], Sides]]:
    """The parts of every evaluation set of `decontaminate.against`; `folders`: where each set
    lies.
    """
    return {
        f"{name}/{code}": partial(read_sides, experiment, name, folders[name], code)
        for name in experiment.decontaminate["against"]
        for code in experiment.evalsets[name].languages
    }


def read_eval_keys(path: Path, wanted: Collection[str] | None = None) -> dict[str, tuple[str, ...]]:
    """The evaluation sets that hold each key, under any label or under one of `wanted`."""
    keys: dict[str, tuple[str, ...]] = {}
    names_of: dict[str, tuple[str, ...]] = {}  # a few thousand combinations of labels, all in all
    with open(path, encoding="utf-8", newline="\n") as reader:
        for line in reader:
            key, _, labels = line.rstrip("\n").partition("\t")
            if labels not in names_of:
                found = [x for x in labels.split(",") if wanted is None or x in wanted]
                names_of[labels] = tuple(sorted({label.partition("/")[0] for label in found}))
            if names_of[labels]:
                keys[key] = names_of[labels]
    return keys
