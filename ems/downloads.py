"""`ems corpora list`: what an experiment downloads and trains on, beside EMS v2 Table I.

Three forms of the same numbers: text for a terminal, JSON, and CSV with a row per corpus and
language pair. A `?` is what is not known without a network; a count with `?` is what is known of
it, and `at most` bounds it from above.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from ems.config import Experiment
from ems.corpora.sizes import PairSize, pair_sizes, set_sizes
from ems.tables.printed import in_table_one_order, load_pair_totals, load_pairs

UNKNOWN = "?"


def listing(experiment: Experiment) -> dict[str, Any]:
    """The whole list as JSON-like values; None is what is not known."""
    sizes = pair_sizes(experiment)
    corpora: dict[tuple[str, str], list[PairSize]] = {}
    for size in sizes:
        corpora.setdefault((size.corpus.label, size.corpus.version), []).append(size)
    trained = [size for size in sizes if size.role == "train"]
    whole = _sum([size for size in sizes if not size.shared], lambda size: size.lines)
    return {
        "experiment": experiment.name,
        "corpora": [_corpus(own) for own in corpora.values()],
        "total": _sums(sizes) | {"sentence_pairs": whole, "train": _sums(trained)},
        "evalsets": [asdict(size) for size in set_sizes(experiment)],
        "languages": _languages(trained),
        "table_1_total": load_pair_totals().ems,
    }


def _corpus(sizes: list[PairSize]) -> dict[str, Any]:
    one = sizes[0]
    return {
        "corpus": one.corpus.label,
        "version": one.corpus.version,
        "role": one.role,
        "languages": [size.language for size in sizes],
        "licence": one.licence,
        **_sums(sizes),
    }


def _sums(sizes: Iterable[PairSize]) -> dict[str, Any]:
    """Sums of what is known, and how many language pairs are not."""
    sizes = list(sizes)
    own = [size for size in sizes if not size.shared]
    return {
        "pairs": len(sizes),
        "files": sum(len(size.corpus.files(size.pair)) for size in own),
        "sentence_pairs": _sum(sizes, lambda size: size.lines),
        "used": _sum(sizes, lambda size: size.used),
        "at_most": _bound(sizes),
        "kilobytes": _sum(own or sizes, lambda size: size.kilobytes),
        "unknown": sum(size.used is None for size in sizes),
        "unknown_kilobytes": sum(size.kilobytes is None for size in own),
    }


def _sum(sizes: list[PairSize], value: Callable[[PairSize], int | None]) -> int | None:
    """The sum of the known values; None when there is not one."""
    known = [value(size) for size in sizes if value(size) is not None]
    return sum(known) if known else None


def _bound(sizes: list[PairSize]) -> int | None:
    bounds = [size.at_most for size in sizes]
    return None if None in bounds else sum(bounds)


def _languages(trained: list[PairSize]) -> list[dict[str, Any]]:
    own: dict[str, list[PairSize]] = {}
    for size in trained:
        own.setdefault(size.language, []).append(size)
    return [_language(code, own[code]) for code in in_table_one_order(own)]


def _language(code: str, sizes: list[PairSize]) -> dict[str, Any]:
    sums = _sums(sizes)
    printed = load_pairs().get(code)
    ems = printed.ems if printed else None
    return {
        "language": code,
        "used": sums["used"],
        "at_most": sums["at_most"],
        "unknown": sums["unknown"],
        "table_1": ems,
        "difference": _difference(ems, sums["used"] or 0, sums["at_most"]),
    }


def _difference(printed: int | None, low: int, high: int | None) -> int | None:
    """How far the counts are from the printed one: 0 where it lies between them; None: unknown."""
    if printed is None or (high is None and low < printed):
        return None
    if low <= printed <= (low if high is None else high):
        return 0
    return low - printed if low > printed else high - printed


def as_json(experiment: Experiment) -> str:
    """The list as JSON."""
    return json.dumps(listing(experiment), indent=1, ensure_ascii=False) + "\n"


def as_csv(experiment: Experiment) -> str:
    """A row for each corpus and language pair; an empty cell is not known."""
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
    """Aligned tables for people: the corpora, the evaluation sets that are drawn of a corpus, and
    the languages beside EMS v2 Table I.
    """
    found = listing(experiment)
    total = found["total"]
    head = ("corpus", "version", "for", "pairs", "files", "sentence pairs", "used", "MB", "licence")
    rows = [
        (row["corpus"], row["version"], row["role"], *_counts(row), row["licence"])
        for row in found["corpora"]
    ]
    rows.append(("total", "", "", *_counts(total), ""))
    lines = [f"{experiment.name}: what it downloads", "", *_aligned([head, *rows], "lllrrrrrl")]
    if found["evalsets"]:
        lines += ["", "Besides, for evaluation sets that are drawn of whole files of a corpus", ""]
        lines += _evalsets(found["evalsets"])
    lines += ["", "Sentence pairs that it trains on, and those of EMS v2 Table I", ""]
    head = ("language", "used", "at most", "Table I", "difference")
    rows = [_language_row(row) for row in found["languages"]]
    train = total["train"] | {"language": "total", "table_1": found["table_1_total"]}
    train["difference"] = _difference(train["table_1"], train["used"] or 0, train["at_most"])
    lines += _aligned([head, *rows, _language_row(train)], "lrrrr")
    notes = list(_notes(total))
    return "\n".join([*lines, *(["", *notes] if notes else [])]) + "\n"


def _evalsets(sizes: list[dict[str, Any]]) -> list[str]:
    head = ("evaluation set", "corpus", "version", "files", "sentence pairs", "MB")
    rows = [
        (
            *(size[key] for key in ("evalset", "corpus", "version")),
            f"{size['files']:,}",
            _known(size["lines"], 0),
            UNKNOWN if size["kilobytes"] is None else f"{size['kilobytes'] / 1000:,.0f}",
        )
        for size in sizes
    ]
    return _aligned([head, *rows], "lllrrr")


def _counts(row: dict[str, Any]) -> tuple[str, ...]:
    megabytes = None if row["kilobytes"] is None else row["kilobytes"] / 1000
    return (
        f"{row['pairs']:,}",
        f"{row['files']:,}",
        _known(row["sentence_pairs"], row["unknown"]),
        _known(row["used"], row["unknown"]),
        _known(megabytes, row["unknown_kilobytes"]),
    )


def _known(value: float | None, unknown: int) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" + (UNKNOWN if unknown else "")


def _language_row(row: dict[str, Any]) -> tuple[str, ...]:
    bound = row["at_most"] if row["unknown"] else row["used"]
    return (
        row["language"],
        _known(row["used"], row["unknown"]),
        UNKNOWN if bound is None else f"{bound:,}",
        "-" if row["table_1"] is None else f"{row['table_1']:,}",
        UNKNOWN if row["difference"] is None else f"{row['difference']:+,}",
    )


def _notes(total: dict[str, Any]) -> Iterable[str]:
    if total["unknown"]:
        yield (
            f"? of {total['unknown']} language pairs of a corpus the count is not known without "
            "fetching it (one of your own, another release, or LASER's mined files: at most OPUS's)"
        )
        yield "the difference is 0 where Table I lies between what is known and `at most`"
    if total["unknown_kilobytes"]:
        yield f"? of {total['unknown_kilobytes']} of them the size is not known either"


def _aligned(rows: list[tuple[str, ...]], sides: str) -> list[str]:
    """Rows as lines, each column as wide as its widest cell; `sides`: l(eft) or r(ight)."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if side == "r" else cell.ljust(width)
            for cell, width, side in zip(row, widths, sides, strict=True)
        ).rstrip()
        for row in rows
    ]
