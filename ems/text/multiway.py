"""Join sentences that share a translation into further pairs.

The segmented pairs of all corpora with the language `through` are joined by the key of that side,
in the form that decontamination uses (`decontaminate.key`). Each sentence of `through` gives at
most `most` pairs, from the language pairs with the fewest so far, so that large ones do not win.

Memory is bounded: the rows are divided by the hash of their key into files that are sorted one by
one. Keys are taken in the order of their hashes, so the number of files does not matter.
"""

import heapq
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import combinations, compress, count, groupby, islice, product
from pathlib import Path
from typing import NamedTuple

from ems.base.errors import mistake
from ems.base.files import atomic_path, write_json
from ems.base.progress import Progress
from ems.base.records import Json
from ems.config.experiment import MULTIWAY, Experiment
from ems.text.duplicates import Seen
from ems.text.keys import KEYS
from ems.text.tsv import check_count, codes_of, is_pairs, read_columns, write_list

PART = 1 << 27  # bytes of pairs sorted at once: half a GB of memory
PARTS = 512  # most files open at once
HELD = 1 << 25  # bytes of pairs held before they are written
KEY, TEXT = 12, 8  # bytes of a key's hash and of a text's hash
CodePair = tuple[str, str]


class Translation(NamedTuple):
    digest: bytes
    line: int
    text: bytes


Translations = dict[str, list[Translation]]  # language -> distinct translations of one sentence


@dataclass
class JoinCounts:
    """Counts of pairs by language pair; `read`: all that the join could make."""

    read: Counter[CodePair] = field(default_factory=Counter)
    identical: Counter[CodePair] = field(default_factory=Counter)
    taken: Counter[CodePair] = field(default_factory=Counter)
    kept: Counter[CodePair] = field(default_factory=Counter)


def join_pairs(
    experiment: Experiment, sources: list[Path], out: Path, reports: Path, part: int = PART
) -> dict[str, int]:
    """Join segmented pair files into `<a>-<b>.tsv` in the folder `out`, with a report on each,
    `<a>-<b>.json`, in the folder `reports`. Return the counts "read" and "kept". Line numbers of
    pairs run through the files of their first language. Raises `EmsError` if no pair can be joined.
    """
    settings, counts = experiment.multiway, JoinCounts()
    if not settings.through:
        raise mistake("no language in common")
    with atomic_path(reports, is_pairs) as report, atomic_path(out, is_pairs) as folder:
        report.mkdir()
        rows = folder / "rows"
        rows.mkdir(parents=True)
        parts, lines = _divide(sources, rows, part, settings.through, experiment.decontaminate.key)
        waiting, held = defaultdict[CodePair, list[bytes]](list), 0
        for translations in _sentences(parts):
            for pair, first, second in _choose(translations, settings.most, counts):
                row = b"%s\t%s\t%d\n" % (first.text, second.text, first.line)
                waiting[pair].append(row)
                held += len(row)
            if held > HELD:
                _append(waiting, rows)
                held = 0
        _append(waiting, rows)
        for pair in sorted(counts.taken):
            counts.kept[pair] = _distinct(rows / _name(pair), counts.taken[pair], folder)
        if not counts.kept:
            raise mistake("no common translation", files=len(sources), through=settings.through)
        shutil.rmtree(rows)
        for pair in sorted(counts.read):
            write_json(report / _name(pair, "json"), _entry(pair, lines, counts, settings.through))
        write_list(folder)
        write_list(report)
    return {"read": counts.read.total(), "kept": counts.kept.total()}


def _divide(
    sources: list[Path], rows: Path, part: int, through: str, key_name: str
) -> tuple[list[Path], dict[Path, int]]:
    """Divide the rows of all sources into files, by the hash of the key of the sentence in
    `through`, if it has one; return these files, and the number of lines of each source. A row is
    key, language, hash of the text, line and text, so rows sort in the order of use.
    """
    keys_of = KEYS[key_name]
    number = min(1 + sum(path.stat().st_size for path in sources) // part, PARTS)
    paths, lines = [rows / f"{at:03}" for at in range(number)], dict[Path, int]()
    before: Counter[str] = Counter()  # lines of a language so far
    progress = Progress(f"read pairs with {through}", None, "pairs")
    with ExitStack() as stack:
        files = [stack.enter_context(open(path, "wb")) for path in paths]
        for source in progress.over(sources, lambda source: lines[source]):
            codes = codes_of(source)
            if len(codes) != 2 or through not in codes:
                raise mistake("file that cannot be joined", file=source, through=through)
            side = 1 - codes.index(through)
            numbers, lines[source] = count(before[codes[side]] + 1), 0
            for columns in read_columns(source):
                keys = keys_of(list(columns[1 - side]))
                lines[source] += len(keys)
                for key, text, line in zip(keys, columns[side], numbers, strict=False):
                    if key:
                        digest = blake2b(key.encode(), digest_size=KEY).digest()
                        file = files[int.from_bytes(digest[:4]) * number >> 32]
                        encoded = text.encode()
                        of_text = blake2b(encoded, digest_size=TEXT).hexdigest()
                        begins = f"{digest.hex()}\t{codes[side]}\t{of_text}\t{line:012}\t"
                        file.write(begins.encode() + encoded + b"\n")
            check_count(source, lines[source])
            before[codes[side]] += lines[source]
    return paths, lines


def _sentences(parts: list[Path]) -> Iterator[Translations]:
    """Yield the translations of each sentence with two languages or more; first of equal texts."""
    for path in Progress("join pairs", len(parts), "parts").over(parts):
        lines = sorted(path.read_bytes().split(b"\n")[:-1])  # without what follows the last end
        for _, rows in groupby(lines, lambda row: row[: 2 * KEY]):
            translations: Translations = {}
            last = None
            for row in rows:
                _, language, digest, line, text = row.split(b"\t", 4)
                if (language, digest) != last:
                    sentence = Translation(digest, int(line), text)
                    translations.setdefault(language.decode(), []).append(sentence)
                last = language, digest
            if len(translations) > 1:
                yield translations


def _choose(
    translations: Translations, most: int, counts: JoinCounts
) -> list[tuple[CodePair, Translation, Translation]]:
    """Return the pairs taken from one sentence; count all that it could give."""
    candidates = []
    for pair in combinations(sorted(translations), 2):
        first, second = (translations[language] for language in pair)
        counts.read[pair] += len(first) * len(second)
        both = {each.digest for each in first} & {each.digest for each in second}
        counts.identical[pair] += len(both)
        pairs = ((one, two) for one, two in product(first, second) if one.digest != two.digest)
        # k pairs of its language pair precede the k-th
        candidates += [
            (counts.taken[pair] + at, pair, at, one, two)
            for at, (one, two) in enumerate(islice(pairs, most))
        ]
    chosen = heapq.nsmallest(most, candidates)
    counts.taken.update(pair for _, pair, *_ in chosen)
    return [(pair, one, two) for _, pair, _, one, two in chosen]


def _name(pair: CodePair, suffix: str = "tsv") -> str:
    return f"{'-'.join(pair)}.{suffix}"


def _append(waiting: dict[CodePair, list[bytes]], folder: Path) -> None:
    """Append rows to their files, one open at a time: there may be thousands."""
    for pair, rows in waiting.items():
        with open(folder / _name(pair), "ab") as file:
            file.writelines(rows)
    waiting.clear()


def _distinct(path: Path, pairs: int, folder: Path) -> int:
    """Copy a pair file to `folder` without duplicates; return the number of pairs left."""
    seen, kept = Seen(pairs), 0
    with open(folder / path.name, "w", encoding="utf-8", newline="\n") as writer:
        for columns in read_columns(path):
            rows = list(zip(*columns, strict=True))
            new = seen.add(["\t".join(row[:2]) for row in rows])
            writer.writelines("\t".join(row) + "\n" for row in compress(rows, new))
            kept += sum(new)
    return kept


def _entry(pair: CodePair, lines: dict[Path, int], counts: JoinCounts, through: str) -> Json:
    own = {"/".join(path.parts[-3:]): path for path in lines if pair[0] in codes_of(path)}
    identical, taken, kept = counts.identical[pair], counts.taken[pair], counts.kept[pair]
    cap = counts.read[pair] - identical - taken
    return {
        "read": counts.read[pair],
        "removed": {"cap": cap, "identical": identical, "duplicates": taken - kept},
        "kept": kept,
        "by_benchmark": {},
        "corpus": MULTIWAY,
        "version": through,
        "role": "train",
        "pair": "-".join(pair),
        "threshold": None,
        "files": {name: lines[path] for name, path in own.items()},
        "archives": {name: str(path) for name, path in own.items()},
    }
