"""`ems corpora list`: what an experiment downloads and trains on, beside EMS v2 Table I.

The list has three forms: text for a terminal, JSON, and CSV with a row per corpus and language
pair. A `?` is what is not known without a network; a count with `?` is what is known of it, and
`at most` bounds it from above.
"""

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from ems.config import Experiment
from ems.corpora.sizes import PairSize, SetSize, pair_sizes, set_sizes
from ems.tables.printed import in_table_one_order, load_pair_totals, load_pairs

UNKNOWN = "?"


@dataclass(frozen=True)
class Sums:
    """Sums over language pairs of what is known, and the numbers of pairs of which it is not.

    None: not known for any pair; `at_most`: not known for some.
    """

    pairs: int
    files: int
    sentence_pairs: int | None
    used: int | None
    at_most: int | None
    kilobytes: int | None
    unknown: int
    unknown_kilobytes: int


@dataclass(frozen=True)
class CorpusRow:
    """A corpus in one release."""

    corpus: str
    version: str
    role: str
    languages: list[str]
    licence: str
    sums: Sums


@dataclass(frozen=True)
class LanguageRow:
    """The sentence pairs that a language is trained on, beside those of Table I."""

    language: str
    used: int | None
    at_most: int | None
    unknown: int
    table_1: int | None
    difference: int | None


def _total(sizes: list[PairSize]) -> Sums:
    """Return the sums of all corpora; parts of one share its sentence pairs."""
    whole = _sum([size.lines for size in sizes if not size.shared])
    return replace(_sums(sizes), sentence_pairs=whole)


def _trained(sizes: list[PairSize]) -> list[PairSize]:
    return [size for size in sizes if size.role == "train"]


def _corpora(sizes: list[PairSize]) -> list[CorpusRow]:
    groups: dict[tuple[str, str], list[PairSize]] = {}
    for size in sizes:
        groups.setdefault((size.corpus.label, size.corpus.version), []).append(size)
    return [
        CorpusRow(*names, own[0].role, [s.language for s in own], own[0].licence, _sums(own))
        for names, own in groups.items()
    ]


def _languages(sizes: list[PairSize]) -> list[LanguageRow]:
    """Return the languages in the order of Table I, then the total."""
    printed, codes = load_pairs(), in_table_one_order({size.language for size in sizes})
    rows = []
    for code in codes:
        sums = _sums([size for size in sizes if size.language == code])
        rows.append(_language(code, sums, printed[code].ems if code in printed else None))
    return [*rows, _language("total", _sums(sizes), load_pair_totals().ems)]


def _language(code: str, sums: Sums, table_1: int | None) -> LanguageRow:
    difference = _difference(table_1, sums.used or 0, sums.at_most)
    return LanguageRow(code, sums.used, sums.at_most, sums.unknown, table_1, difference)


def _sums(sizes: list[PairSize]) -> Sums:
    own = [size for size in sizes if not size.shared]
    bounds = [size.at_most for size in sizes]
    return Sums(
        pairs=len(sizes),
        files=sum(len(size.corpus.files(size.pair)) for size in own),
        sentence_pairs=_sum([size.lines for size in sizes]),
        used=_sum([size.used for size in sizes]),
        at_most=None if None in bounds else sum(bounds),
        kilobytes=_sum([size.kilobytes for size in own or sizes]),
        unknown=sum(size.used is None for size in sizes),
        unknown_kilobytes=sum(size.kilobytes is None for size in own),
    )


def _sum(values: list[int | None]) -> int | None:
    """Return the sum of the known values; None if there is none."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _difference(printed: int | None, low: int, high: int | None) -> int | None:
    """Return how far a range is from the printed count: 0 if it holds it; None: not known."""
    if printed is None or (high is None and low < printed):
        return None
    return low - printed if low > printed else min(0, high - printed)


def as_json(experiment: Experiment) -> str:
    """Return the list as JSON; null is what is not known."""
    sizes = pair_sizes(experiment)
    *languages, total = map(asdict, _languages(_trained(sizes)))
    value = {
        "experiment": experiment.name,
        "corpora": [row | row.pop("sums") for row in map(asdict, _corpora(sizes))],
        "total": asdict(_total(sizes)) | {"train": asdict(_sums(_trained(sizes)))},
        "evalsets": [asdict(size) for size in set_sizes(experiment)],
        "languages": languages,
        "table_1_total": total["table_1"],
    }
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def as_csv(experiment: Experiment) -> str:
    """Return a row for each corpus and language pair; an empty cell is not known."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = ("role", "corpus", "version", "language", "files")
    writer.writerow([*names, "sentence_pairs", "used", "at_most", "kilobytes", "licence"])
    for size in pair_sizes(experiment):
        corpus = size.corpus
        files = " ".join(corpus.files(size.pair))
        counts = (size.lines, size.used, size.at_most, size.kilobytes)
        place = (size.role, corpus.label, corpus.version, size.language, files)
        writer.writerow([*place, *("" if n is None else n for n in counts), size.licence])
    return out.getvalue()


def as_text(experiment: Experiment) -> str:
    """Return aligned tables of corpora, of evaluation sets drawn from a corpus, and of languages
    beside EMS v2 Table I.
    """
    sizes, evalsets = pair_sizes(experiment), set_sizes(experiment)
    total = _total(sizes)
    head = ("corpus", "version", "for", "pairs", "files", "sentence pairs", "used", "MB", "licence")
    corpora = [(r.corpus, r.version, r.role, *_counts(r.sums), r.licence) for r in _corpora(sizes)]
    corpora.append(("total", "", "", *_counts(total), ""))
    lines = [f"{experiment.name}: what it downloads", ""]
    lines += _aligned([head, *corpora], "lllrrrrrl")
    if evalsets:
        lines += ["", "Besides, for evaluation sets that are drawn of whole files of a corpus", ""]
        head = ("evaluation set", "corpus", "version", "files", "sentence pairs", "MB")
        lines += _aligned([head, *map(_evalset_cells, evalsets)], "lllrrr")
    lines += ["", "Sentence pairs that it trains on, and those of EMS v2 Table I", ""]
    head = ("language", "used", "at most", "Table I", "difference")
    lines += _aligned([head, *map(_language_cells, _languages(_trained(sizes)))], "lrrrr")
    notes = list(_notes(total))
    return "\n".join([*lines, *(["", *notes] if notes else [])]) + "\n"


def _evalset_cells(size: SetSize) -> tuple[str, ...]:
    counts = (f"{size.files:,}", _known(size.lines), _megabytes(size.kilobytes))
    return (size.evalset, size.corpus, size.version, *counts)


def _counts(sums: Sums) -> tuple[str, ...]:
    return (
        f"{sums.pairs:,}",
        f"{sums.files:,}",
        _known(sums.sentence_pairs, sums.unknown),
        _known(sums.used, sums.unknown),
        _megabytes(sums.kilobytes, sums.unknown_kilobytes),
    )


def _known(value: float | None, unknown: int = 0) -> str:
    return UNKNOWN if value is None else f"{value:,.0f}" + (UNKNOWN if unknown else "")


def _megabytes(kilobytes: int | None, unknown: int = 0) -> str:
    return _known(None if kilobytes is None else kilobytes / 1000, unknown)


def _language_cells(row: LanguageRow) -> tuple[str, ...]:
    return (
        row.language,
        _known(row.used, row.unknown),
        _known(row.at_most if row.unknown else row.used),
        "-" if row.table_1 is None else f"{row.table_1:,}",
        UNKNOWN if row.difference is None else f"{row.difference:+,}",
    )


def _notes(total: Sums) -> Iterable[str]:
    if total.unknown:
        yield (
            f"? of {total.unknown} language pairs of a corpus the count is not known without "
            "fetching it (one of your own, another release, or LASER's mined files: at most OPUS's)"
        )
        yield "the difference is 0 where Table I lies between what is known and `at most`"
    if total.unknown_kilobytes:
        yield f"? of {total.unknown_kilobytes} of them the size is not known either"


def _aligned(rows: list[tuple[str, ...]], sides: str) -> list[str]:
    """Return rows as lines with columns as wide as their widest cell; `sides`: l(eft), r(ight)."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if side == "r" else cell.ljust(width)
            for cell, width, side in zip(row, widths, sides, strict=True)
        ).rstrip()
        for row in rows
    ]
