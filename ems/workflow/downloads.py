"""`ems corpora list`: what an experiment downloads and trains on, beside EMS v2 Table I.

The list has three forms: text for a terminal, JSON, and CSV with a row per corpus and language
pair. A `?` is what is not known without a network; a count with `?` is what is known of it, and
`at most` bounds it from above. Documents of single languages have no sentence pairs.
"""

import csv
import io
import json
from collections.abc import Iterator

from ems.base.schema import Json
from ems.config.experiment import Experiment
from ems.corpora.catalogue import PairSize, pair_sizes, set_sizes
from ems.tables.printed import in_table_one_order, load_pair_totals, load_pairs

UNKNOWN = "?"


def as_json(experiment: Experiment) -> str:
    """Return the list as JSON; null is what is not known."""
    return json.dumps(_listing(experiment), indent=1, ensure_ascii=False) + "\n"


def _listing(experiment: Experiment) -> Json:
    sizes = pair_sizes(experiment)
    trained = [size for size in sizes if size.role == "train" and not size.corpus.documents]
    corpora: dict[tuple[str, str], list[PairSize]] = {}
    for size in sizes:
        corpora.setdefault((size.corpus.label, size.corpus.version), []).append(size)
    lines = _sum([size.lines for size in sizes if not size.shared])  # parts share their files
    printed, codes = load_pairs(), in_table_one_order({size.language for size in trained})
    return {
        "experiment": experiment.name,
        "corpora": [_corpus(own) for own in corpora.values()],
        "total": {
            "kind": "pairs" if _of_pairs(sizes) else "documents",
            **_sums(sizes),
            "sentence_pairs": lines,
            "train": _sums(trained),
        },
        "evalsets": set_sizes(experiment),
        "languages": [
            _language(
                code,
                _sums([size for size in trained if size.language == code]),
                printed[code].ems if code in printed else None,
            )
            for code in codes
        ],
        "table_1_total": load_pair_totals().ems,
    }


def _corpus(sizes: list[PairSize]) -> Json:
    """Return the row of a corpus in one release."""
    first = sizes[0]
    place = {"corpus": first.corpus.label, "version": first.corpus.version, "role": first.role}
    place["kind"] = first.corpus.kind
    languages = [size.language for size in sizes]
    return {**place, "languages": languages, "licence": first.licence, **_sums(sizes)}


def _language(code: str, sums: Json, table_1: int | None) -> Json:
    """Return the pairs that a language is trained on, beside those of Table I."""
    counts = {key: sums[key] for key in ("used", "at_most", "unknown")}
    difference = _difference(table_1, sums["used"] or 0, sums["at_most"])
    return {"language": code, **counts, "table_1": table_1, "difference": difference}


def _sums(sizes: list[PairSize]) -> Json:
    """Return sums of what is known (None: nothing is), and the numbers of pairs of which it is not.

    `at_most` is None if it is not known for some. Documents of a language count as files alone, or
    as languages (`pairs`) where there are no pairs.
    """
    own, pairs = [size for size in sizes if not size.shared], _of_pairs(sizes)
    bounds = [size.at_most for size in pairs]
    return {
        "pairs": len(pairs or sizes),
        "files": sum(len(size.corpus.files(size.pair)) for size in own),
        "sentence_pairs": _sum([size.lines for size in sizes]),
        "used": _sum([size.used for size in sizes]),
        "at_most": None if None in bounds else sum(bounds),
        "kilobytes": _sum([size.kilobytes for size in own or sizes]),
        "unknown": sum(size.used is None for size in pairs),
        "unknown_kilobytes": sum(size.kilobytes is None for size in own),
    }


def _of_pairs(sizes: list[PairSize]) -> list[PairSize]:
    return [size for size in sizes if not size.corpus.documents]


def _sum(values: list[int | None]) -> int | None:
    """Return the sum of the known values; None if there is none."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _difference(printed: int | None, low: int, high: int | None) -> int | None:
    """Return how far a range is from the printed count: 0 if it holds it; None: not known."""
    if printed is None or (high is None and low < printed):
        return None
    return low - printed if low > printed else min(0, high - printed)


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
    known = _listing(experiment)
    total, counted = known["total"], known["total"]["train"]
    head = ("corpus", "version", "for", "pairs", "files", "sentence pairs", "used", "MB", "licence")
    rows = [
        *known["corpora"],
        {"corpus": "total", "version": "", "role": "", "licence": "", **total},
    ]
    lines = [f"{experiment.name}: what it downloads", ""]
    lines += aligned([head, *map(_corpus_cells, rows)], "lllrrrrrl")
    if known["evalsets"]:
        lines += ["", "Besides, for evaluation sets that are drawn of whole files of a corpus", ""]
        head = ("evaluation set", "corpus", "version", "files", "sentence pairs", "MB")
        lines += aligned([head, *map(_evalset_cells, known["evalsets"])], "lllrrr")
    if known["languages"]:
        lines += ["", "Sentence pairs that it trains on, and those of EMS v2 Table I", ""]
        head = ("language", "used", "at most", "Table I", "difference")
        rows = [*known["languages"], _language("total", counted, known["table_1_total"])]
        lines += aligned([head, *map(_language_cells, rows)], "lrrrr")
    notes = list(_notes(total))
    return "\n".join([*lines, *(["", *notes] if notes else [])]) + "\n"


def _corpus_cells(row: Json) -> tuple[str, ...]:
    """Return the cells of a corpus. Documents have languages and no pairs."""
    pairs, counts = f"{row['pairs']:,}", [row["sentence_pairs"], row["used"]]
    cells = [_known(count, row["unknown"]) for count in counts]
    if row["kind"] == "documents":
        pairs, cells = f"{pairs} languages", ["-", "-"]
    return (
        *(row["corpus"], row["version"], row["role"], pairs, f"{row['files']:,}"),
        *cells,
        _megabytes(row["kilobytes"], row["unknown_kilobytes"]),
        row["licence"],
    )


def _evalset_cells(row: Json) -> tuple[str, ...]:
    counts = (f"{row['files']:,}", _known(row["lines"]), _megabytes(row["kilobytes"]))
    return (row["evalset"], row["corpus"], row["version"], *counts)


def _known(value: float | None, unknown: int = 0) -> str:
    return UNKNOWN if value is None else f"{value:,.0f}" + (UNKNOWN if unknown else "")


def _megabytes(kilobytes: int | None, unknown: int = 0) -> str:
    return _known(None if kilobytes is None else kilobytes / 1000, unknown)


def _language_cells(row: Json) -> tuple[str, ...]:
    unknown, table_1, difference = row["unknown"], row["table_1"], row["difference"]
    return (
        row["language"],
        _known(row["used"], unknown),
        _known(row["at_most"] if unknown else row["used"]),
        "-" if table_1 is None else f"{table_1:,}",
        UNKNOWN if difference is None else f"{difference:+,}",
    )


def _notes(total: Json) -> Iterator[str]:
    if total["unknown"]:
        yield (
            f"? of {total['unknown']} language pairs of a corpus the count is not known without "
            "fetching it (one of your own, another release, or LASER's mined files: at most OPUS's)"
        )
        yield "the difference is 0 where Table I lies between what is known and `at most`"
    if total["unknown_kilobytes"]:
        count = total["unknown_kilobytes"]
        yield f"? of {count} language pairs, or languages of documents, the size is not known"


def aligned(rows: list[tuple[str, ...]], sides: str) -> list[str]:
    """Return rows as lines with columns as wide as their widest cell; `sides`: l(eft), r(ight)."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if side == "r" else cell.ljust(width)
            for cell, width, side in zip(row, widths, sides, strict=True)
        ).rstrip()
        for row in rows
    ]
