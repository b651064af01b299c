"""The keys of all evaluation sentences: one file per experiment, with lines `key<TAB>label,...`.

A label is `<evalset>/<code>` with the evaluation set's own code, so the file does not depend on the
languages of an experiment (EMS v2 IV-B). The last line has no key but the SHA-256 of all others and
the key's name: a file cut short or of other keys would let evaluation sentences into training data.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from ems.base.errors import Damaged, mistake
from ems.base.files import atomic_path, reading_bytes
from ems.base.progress import Progress
from ems.base.texts import batched
from ems.config.experiment import VALIDATION, Experiment
from ems.corpora.content import check_file
from ems.corpora.evalsets.sets import Sides, data_files, read_sides
from ems.text.keys import KEYS, Keys
from ems.text.normalise import tidier, tidy_lines
from ems.text.tsv import codes_of, read_columns

READ = 1 << 20  # approximate bytes read at once


def write_eval_keys(
    key_name: str, files: dict[str, Callable[[], Sides]], out: Path, format_characters: str = "keep"
) -> int:
    """Write the key of every evaluation sentence with its labels; return the number of keys.
    `files` maps a label to a function that reads its sides, which are tidied like training text.
    """
    slow, keys_of = tidier(format_characters), KEYS[key_name]
    labels: dict[str, tuple[str, ...]] = {}
    combinations: dict[tuple[str, ...], tuple[str, ...]] = {}  # shares equal tuples between keys
    progress = Progress("read evaluation sets", len(files), "languages")
    for label, read in files.items():
        for side in read():
            for batch in batched(side, len):
                for key in keys_of(tidy_lines(batch, slow)):
                    had = labels.get(key, ())
                    if key and label not in had:
                        labels[key] = combinations.setdefault((*had, label), (*had, label))
        progress.add()
    progress.close(f"{len(labels):,} distinct keys")
    write_keys(labels, out, key_name)
    return len(labels)


def write_keys(labels: Mapping[str, Iterable[str]], out: Path, key_name: str = "primary") -> None:
    """Write keys in order with their labels, then the checksum of all lines and the key's name."""
    whole = hashlib.sha256()
    with atomic_path(out) as temporary, open(temporary, "wb") as writer:
        for key in sorted(labels):
            line = f"{key}\t{','.join(sorted(labels[key]))}\n".encode()
            whole.update(line)
            writer.write(line)
        writer.write(_last_line(whole.hexdigest(), key_name))


def _last_line(sha256: str, key_name: str) -> bytes:
    return f"\t{sha256}\t{key_name}\n".encode()


def eval_files(experiment: Experiment, folders: dict[str, Path]) -> dict[str, Callable[[], Sides]]:
    """Return {label: function that reads its sides} for the sets of `decontaminate.against`, each
    in its folder. Raises `EmsError` for one without a folder, `Damaged` for one that has changed.
    """
    if missing := set(experiment.decontaminate.against) - folders.keys():
        raise mistake("no folder of a set", sets=" and ".join(sorted(missing)))
    for name in experiment.decontaminate.against:
        for path in data_files(experiment, name, folders[name]):
            if path.is_file():
                check_file(path)
    return {
        f"{name}/{code}": partial(read_sides, experiment, name, folders[name], code)
        for name in experiment.decontaminate.against
        for code in experiment.evalsets[name].languages
    }


def held_out_files(paths: Iterable[Path]) -> dict[str, Callable[[], Sides]]:
    """Return {label: function that reads its sides} for clean files; the set is VALIDATION."""
    sides: dict[str, list[tuple[Path, int, int]]] = {}
    for path in paths:
        codes = codes_of(path)
        for side, code in enumerate(codes):
            sides.setdefault(f"{VALIDATION}/{code}", []).append((path, side, len(codes)))
    return {label: partial(map, _column, *zip(*own, strict=True)) for label, own in sides.items()}


def _column(path: Path, side: int, sides: int) -> Iterator[str]:
    for columns in read_columns(path, sides=sides):
        yield from columns[side]


class EvalKeys:
    """The keys of several files, read once for all language pairs of a job. Raises `Damaged` for a
    file that has changed since it was written, and `EmsError` for another key than `key_name`.
    """

    def __init__(self, paths: Iterable[Path], key_name: str) -> None:
        same: dict[str, str] = {}  # a few thousand combinations of labels
        self.files: list[tuple[list[str], list[str]]] = []  # keys, and the labels of each
        for path in paths:
            keys, labels = [], []
            for lines in filter(None, _blocks(path, key_name)):
                columns = "\t".join(lines).split("\t")
                keys += columns[::2]
                labels += map(same.setdefault, columns[1::2], columns[1::2])
            self.files.append((keys, labels))
        self.combinations = tuple(same)
        self._last: tuple[Collection[str] | None, Keys] | None = None

    def of(self, wanted: Collection[str] | None) -> Keys:
        """Return the evaluation sets of each key, counting labels in `wanted` (None: all)."""
        if self._last is not None and self._last[0] == wanted:
            return self._last[1]
        keys: Keys = {}
        names_of = {}
        for labels in self.combinations:
            known = (label for label in labels.split(",") if wanted is None or label in wanted)
            names_of[labels] = tuple(sorted({label.partition("/")[0] for label in known}))
        for texts, labels in self.files:
            all_names = map(names_of.__getitem__, labels)
            own = {key: names for key, names in zip(texts, all_names, strict=True) if names}
            keys |= own | {key: keys[key] + own[key] for key in own.keys() & keys}
        self._last = wanted, keys
        return keys


def _blocks(path: Path, key_name: str) -> Iterator[list[str]]:
    """Yield lists of lines; at the end, check the last line, the checksum of all others."""
    whole, last = hashlib.sha256(), b""
    with reading_bytes(path) as reader:
        while lines := reader.readlines(READ):
            block, last = last + b"".join(lines[:-1]), lines[-1]
            whole.update(block)
            yield block.decode(errors="replace").split("\n")[:-1]
    name = last.decode(errors="replace").strip().partition("\t")[2]
    if last != _last_line(whole.hexdigest(), name):
        raise Damaged(path, "cut short or changed: its last line is not the checksum of the others")
    if name != key_name:
        raise mistake("keys of another kind", path=path, expected=key_name, found=name)
