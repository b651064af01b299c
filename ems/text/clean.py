"""Raw pairs -> clean pairs that no evaluation set contains, with every loss counted.

One streaming pass per corpus and language pair: cap, tidy, drop empty sides, decontaminate. What
went in is what came out plus the sum of the reasons (EMS v2 section IV-A: caps; IV-B: evaluation
sentences out).

Notable choices:
- a pair goes if *either* side is an evaluation sentence of *any* set and language; `scope: pair`
  looks only at the evaluation sentences of the pair's own language (what reference counts often
  do);
- a cap draws exactly N of M pairs by selection sampling (Knuth, TAOCP vol. 2, algorithm S): seeded,
  streaming, in the corpus's order, and made before the filters so that it needs only the line
  count;
- output is TSV, one pair a line, so the two sides cannot drift apart.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ems.config import Experiment
from ems.corpora.moses import count_pairs, read_pairs
from ems.errors import EmsError
from ems.evalsets.tatoeba import read_language
from ems.files import atomic_path, write_json
from ems.progress import Progress
from ems.text.normalise import key_function, tidy

Sides = tuple[list[str], list[str]]  # the two sides of an evaluation set's part


def write_eval_keys(key_name: str, files: dict[str, Callable[[], Sides]], out: Path) -> int:
    """Write `key<TAB>label,label...` for every evaluation sentence; return the number of keys.

    `files` maps a label `<evalset>/<language>` to a function that reads both sides of that part.
    """
    function = key_function(key_name)
    labels: dict[str, set[str]] = {}
    progress = Progress("read evaluation sets", len(files), "languages")
    for label, read in files.items():
        for side in read():
            for sentence in side:
                if key := function(tidy(sentence)):  # as the training side is compared
                    labels.setdefault(key, set()).add(label)
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
        f"{name}/{code}": partial(
            read_language, folders[name], experiment.languages[code].tatoeba_v1
        )
        for name in experiment.decontaminate["against"]
        for code in experiment.evalsets[name]["languages"]
    }


def read_eval_keys(path: Path, scope: str = "any", pair: str = "") -> dict[str, tuple[str, ...]]:
    """The evaluation sets that hold each key: of all languages, or of those of `pair` only."""
    codes = pair.split("-")
    keys = {}
    with open(path, encoding="utf-8", newline="\n") as reader:
        for line in reader:
            key, _, labels = line.rstrip("\n").partition("\t")
            parts = [label.split("/") for label in labels.split(",")]
            names = {name for name, code in parts if scope == "any" or code in codes}
            if names:
                keys[key] = tuple(sorted(names))
    return keys


@dataclass
class Report:
    """What happened to the pairs of one corpus: read = kept + sum of `removed`."""

    read: int
    removed: Counter[str]
    by_benchmark: dict[str, Counter[str]]
    kept: int = 0


def clean_pairs(
    pairs: Iterable[tuple[str, str]],
    sides: tuple[str, str],
    keys: dict[str, tuple[str, ...]],
    key_name: str,
    report: Report,
) -> Iterator[tuple[str, str]]:
    """Yield the tidy pairs that hold text on both sides and no evaluation sentence on either.

    `report` is filled in as the pairs go by; `by_benchmark[set]` counts per side ("en", "fr") and
    `pairs`, so a pair that two sets hold counts for both but once in `removed["evaluation"]`.
    """
    function = key_function(key_name)
    for first, second in pairs:
        first, second = tidy(first), tidy(second)
        if not first or not second:
            report.removed["empty"] += 1
            continue
        hits = [keys.get(function(text), ()) for text in (first, second)]
        if hits[0] or hits[1]:
            report.removed["evaluation"] += 1
            _count_hits(report, sides, hits)
            continue
        report.kept += 1
        yield first, second


def _count_hits(report: Report, sides: tuple[str, str], hits: list[tuple[str, ...]]) -> None:
    for name in {*hits[0], *hits[1]}:
        counts = report.by_benchmark.setdefault(name, Counter())
        counts["pairs"] += 1
        counts.update(side for side, names in zip(sides, hits, strict=True) if name in names)


def capped(
    pairs: Iterable[tuple[str, str]], total: int, keep: int, seed: str
) -> Iterator[tuple[str, str]]:
    """Exactly `keep` of `total` pairs, drawn without replacement, in their order."""
    draw, left, needed = random.Random(seed), total, keep
    for pair in pairs:
        if draw.random() * left < needed:
            needed -= 1
            yield pair
        left -= 1


def clean_corpus(
    experiment: Experiment, name: str, version: str, pair: str, archive: Path, keys: Path, out: Path
) -> dict[str, Any]:
    """Clean one pair of one corpus from its zip to the TSV `out`; return and write its report.

    The report goes to `out` with the suffix .json. Raises `EmsError` for a bad archive.
    """
    role, corpus = experiment.corpus(name, version)
    total = count_pairs(archive, name, pair)
    sides = (pair.split("-")[0], pair.split("-")[1])
    report = Report(total, Counter(empty=0, evaluation=0, cap=0), {})
    pairs: Iterable[tuple[str, str]] = read_pairs(archive, name, pair)
    if corpus.max_pairs is not None and corpus.max_pairs < total:
        report.removed["cap"] = total - corpus.max_pairs
        pairs = capped(pairs, total, corpus.max_pairs, f"{experiment.seed}/{name}/{version}/{pair}")
    progress = Progress(f"decontaminate {name} {pair}", total - report.removed["cap"], "pairs")
    settings = experiment.decontaminate
    known = read_eval_keys(keys, settings["scope"], pair)
    with atomic_path(out) as temporary, open(temporary, "w", encoding="utf-8") as writer:
        for first, second in clean_pairs(
            _counted(pairs, progress), sides, known, settings["key"], report
        ):
            writer.write(f"{first}\t{second}\n")
        if not report.kept:
            raise EmsError(
                f"{archive}: none of its {total:,} pairs is left: {dict(report.removed)}"
            )
    progress.close(f"{report.kept:,} kept, removed {dict(report.removed)}")
    entry = {
        "corpus": name,
        "version": version,
        "role": role,
        "pair": pair,
        "read": report.read,
        "removed": dict(report.removed),
        "by_benchmark": {set_: dict(counts) for set_, counts in report.by_benchmark.items()},
        "kept": report.kept,
    }
    write_json(out.with_suffix(".json"), entry)
    return entry


def _counted(pairs: Iterable[tuple[str, str]], progress: Progress) -> Iterator[tuple[str, str]]:
    for pair in pairs:
        progress.add()
        yield pair


def merge_reports(experiment: Experiment, entries: list[dict[str, Any]], out: Path) -> None:
    """Write the decontamination report of an experiment from those of its corpora and pairs."""
    write_json(out, {**experiment.decontaminate, "corpora": entries})
