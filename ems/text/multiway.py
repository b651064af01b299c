"""Further pairs of multi-parallel text: sentences with a translation in common.

The segmented pairs of all corpora that have the language `through` are joined by the key of that
side, as decontamination compares sentences (`decontaminate.key`). Of each sentence of `through` at
most `most` pairs are taken: those of the language pairs that have the fewest so far, so that few
pairs of many languages are not drowned by many pairs of few. Nothing is drawn at random.

Both sides of a further pair are of rows that cleaning has kept, and that are segmented already: no
sentence is segmented twice, and none is one of an evaluation set.

Memory is bounded: the rows are divided by the hash of their key into files, each of which is sorted
by itself. Keys are taken in the order of their hashes, so the number of files changes nothing.
"""

import heapq
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import combinations, count, groupby, islice, product
from pathlib import Path
from typing import Any, NamedTuple

from ems.base.errors import EmsError
from ems.base.files import atomic_path, write_json
from ems.base.progress import Progress
from ems.config.corpus_entries import MultiwaySettings
from ems.config.experiment import MULTIWAY, Experiment
from ems.text.duplicates import Seen
from ems.text.normalise import keys_function
from ems.text.tsv import check_count, codes_of, is_pairs, read_columns, write_list

PART = 1 << 27  # bytes of the pairs whose rows are sorted at once: half a GB of memory
PARTS = 512  # files that are open at once, at most
HELD = 1 << 25  # bytes of pairs that wait to be written
KEY, TEXT = 12, 8  # bytes of the hashes of a key and of a text
IDENTICAL, DUPLICATES, CAP = "identical", "duplicates", "cap"  # reasons of the report
Pair = tuple[str, str]


class Sentence(NamedTuple):
    """A translation of a sentence of `through`: its hash, where it comes from, and its text."""

    digest: bytes
    line: int
    text: bytes


Translations = dict[str, list[Sentence]]  # of one sentence: language -> distinct texts, by hash


@dataclass
class Counts:
    """What became of the pairs of each language pair: `read` are all that the join could make."""

    read: Counter[Pair] = field(default_factory=Counter)
    identical: Counter[Pair] = field(default_factory=Counter)
    taken: Counter[Pair] = field(default_factory=Counter)
    kept: Counter[Pair] = field(default_factory=Counter)

    def removed(self, pair: Pair) -> dict[str, int]:
        """Return reason -> pairs; those of a sentence that had enough are under `cap`."""
        identical, taken, kept = self.identical[pair], self.taken[pair], self.kept[pair]
        cap = self.read[pair] - identical - taken
        return {CAP: cap, IDENTICAL: identical, DUPLICATES: taken - kept}


def join_pairs(
    experiment: Experiment, sources: list[Path], out: Path, reports: Path, part: int = PART
) -> dict[str, int]:
    """Write the further pairs of some segmented pair files, `<a>-<b>.tsv` in the folder `out`, and
    a report on each, `<a>-<b>.json` in the folder `reports`. Return their counts.

    The line of a pair counts through the files of its first language, in their order. `part` is the
    size of what is sorted at once in bytes. Raises `EmsError` when there is no further pair.
    """
    settings, counts = experiment.multiway, Counts()
    if not settings.through:
        raise EmsError("multiway.through: this key is missing; name the language in common")
    with atomic_path(reports, is_pairs) as report, atomic_path(out, is_pairs) as folder:
        report.mkdir()
        folder.mkdir()
        rows = folder / "rows"
        rows.mkdir()
        parts, lines = _divide(sources, rows, part, settings.through, experiment.decontaminate.key)
        taken = Taken(rows)
        for translations in _sentences(parts):
            for pair, first, second in _choose(translations, settings.most, counts):
                taken.add(pair, first, second)
        taken.write()
        for pair in sorted(counts.taken):
            counts.kept[pair] = _distinct(taken.path(pair), counts.taken[pair], folder)
        if not counts.kept:
            raise EmsError(
                f"multiway: no two sentences of these {len(sources)} files share a translation "
                f"into {settings.through}; take multiway out"
            )
        shutil.rmtree(rows)
        for pair in sorted(counts.read):
            write_json(report / f"{'-'.join(pair)}.json", _entry(pair, lines, counts, settings))
        write_list(folder)
        write_list(report)
    return {"read": counts.read.total(), "kept": counts.kept.total()}


# --- rows by the key of the sentence that they share


def _divide(
    sources: list[Path], rows: Path, part: int, through: str, key_name: str
) -> tuple[list[Path], dict[Path, int]]:
    """Write the rows of all sources, in files by the hash of their key: that of the sentence in the
    language `through`. There is no row for a key without letters.

    Returns these files in their order, and how many lines each source has. A row is key, language,
    text's hash, line and text: rows are read in the order in which they sort.
    """
    keys_of = keys_function(key_name)
    number = min(1 + sum(path.stat().st_size for path in sources) // part, PARTS)
    paths, lines = [rows / f"{at:03}" for at in range(number)], dict[Path, int]()
    before: Counter[str] = Counter()  # lines of a language so far
    progress = Progress(f"read pairs with {through}", None, "pairs")
    with ExitStack() as stack:
        files = [stack.enter_context(open(path, "wb")) for path in paths]
        for source in sources:
            codes = codes_of(source)
            if len(codes) != 2 or through not in codes:
                raise EmsError(
                    f"{source}: expected a pair file with {through}, to join it by that side"
                )
            side = 1 - codes.index(through)
            numbers, lines[source] = count(before[codes[side]] + 1), 0
            for columns in read_columns(source):
                keys = keys_of(list(columns[1 - side]))
                lines[source] += len(keys)
                for key, text, line in zip(keys, columns[side], numbers, strict=False):
                    if key:
                        digest = blake2b(key.encode(), digest_size=KEY).digest()
                        file = files[int.from_bytes(digest[:4]) * number >> 32]
                        file.write(_row(digest, codes[side], text, line))
            check_count(source, lines[source])
            before[codes[side]] += lines[source]
            progress.add(lines[source])
    progress.close()
    return paths, lines


def _row(key: bytes, language: str, text: str, line: int) -> bytes:
    encoded = text.encode()
    digest = blake2b(encoded, digest_size=TEXT).hexdigest()
    return f"{key.hex()}\t{language}\t{digest}\t{line:012}\t".encode() + encoded + b"\n"


def _sentences(parts: list[Path]) -> Iterator[Translations]:
    """Yield the translations of each sentence that has some in two languages, by the hash of its
    key. Of a text that is there twice the first line counts.
    """
    progress = Progress("join pairs", len(parts), "parts")
    for path in parts:
        lines = path.read_bytes().split(b"\n")
        lines.pop()  # what follows the last line end
        lines.sort()
        for _, rows in groupby(lines, lambda row: row[: 2 * KEY]):
            translations = _translations(rows)
            if len(translations) > 1:
                yield translations
        progress.add()
    progress.close()


def _translations(rows: Iterator[bytes]) -> Translations:
    texts: Translations = {}
    last = None
    for row in rows:
        _, language, digest, line, text = row.split(b"\t", 4)
        if (language, digest) != last:
            texts.setdefault(language.decode(), []).append(Sentence(digest, int(line), text))
        last = language, digest
    return texts


# --- which pairs are taken


def _choose(
    translations: Translations, most: int, counts: Counts
) -> list[tuple[Pair, Sentence, Sentence]]:
    """Return the pairs that are taken of one sentence, and count all of them."""
    candidates = []
    for pair in combinations(sorted(translations), 2):
        first, second = (translations[language] for language in pair)
        counts.read[pair] += len(first) * len(second)
        both = {each.digest for each in first} & {each.digest for each in second}
        counts.identical[pair] += len(both)
        pairs = ((one, two) for one, two in product(first, second) if one.digest != two.digest)
        # of the k-th of a language pair k others come before it
        candidates += [
            (counts.taken[pair] + at, pair, at, one, two)
            for at, (one, two) in enumerate(islice(pairs, most))
        ]
    chosen = heapq.nsmallest(most, candidates)
    counts.taken.update(pair for _, pair, *_ in chosen)
    return [(pair, one, two) for _, pair, _, one, two in chosen]


class Taken:
    """The pairs that were taken, in a file for each language pair: more than may be open at once.

    They wait in memory until there are some millions of bytes of them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.held = folder, 0
        self.waiting: dict[Pair, list[bytes]] = defaultdict(list)

    def path(self, pair: Pair) -> Path:
        """Return the file of a language pair."""
        return self.folder / f"{'-'.join(pair)}.tsv"

    def add(self, pair: Pair, first: Sentence, second: Sentence) -> None:
        """Add a pair; its line is that of its first side."""
        row = b"%s\t%s\t%d\n" % (first.text, second.text, first.line)
        self.waiting[pair].append(row)
        self.held += len(row)
        if self.held > HELD:
            self.write()

    def write(self) -> None:
        """Append the pairs that wait to their files."""
        for pair, rows in self.waiting.items():
            with open(self.path(pair), "ab") as file:
                file.writelines(rows)
        self.waiting.clear()
        self.held = 0


def _distinct(path: Path, pairs: int, folder: Path) -> int:
    """Copy a pair file without repetitions, which two sentences of `through` can make, to `folder`;
    return how many pairs are left.
    """
    seen, kept = Seen(pairs), 0
    with open(folder / path.name, "w", encoding="utf-8", newline="\n") as writer:
        for columns in read_columns(path):
            rows = list(zip(*columns, strict=True))
            new = seen.add(["\t".join(row[:2]) for row in rows])
            left = [row for row, is_new in zip(rows, new, strict=True) if is_new]
            writer.writelines("\t".join(row) + "\n" for row in left)
            kept += len(left)
    return kept


def _entry(
    pair: Pair, lines: dict[Path, int], counts: Counts, settings: MultiwaySettings
) -> dict[str, Any]:
    """Return the report on a language pair, as `ems clean` writes it."""
    own = {"/".join(path.parts[-3:]): path for path in lines if pair[0] in codes_of(path)}
    return {
        "read": counts.read[pair],
        "removed": counts.removed(pair),
        "kept": counts.kept[pair],
        "by_benchmark": {},
        "corpus": MULTIWAY,
        "version": settings.through,
        "role": "train",
        "pair": "-".join(pair),
        "threshold": None,
        "files": {name: lines[path] for name, path in own.items()},
        "archives": {name: str(path) for name, path in own.items()},
    }
