"""`ems corpora list`: the downloads and training pairs of an experiment, compared with EMS v2.

`?` marks a number that is unknown without a network; a count with `?` is the known part, and
`at most` an upper bound. Documents of single languages have no sentence pairs.
"""

import json
from collections.abc import Iterator

from ems.base.records import Json
from ems.config.experiment import Experiment
from ems.corpora.catalogue import PairSize, pair_sizes, set_sizes
from ems.tables.printed import in_table_one_order, load_pair_totals, load_pairs

UNKNOWN = "?"
CORPORA = ("corpus", "version", "for", "pairs", "files", "sentence pairs", "used", "MB", "licence")
EVALSETS = ("evaluation set", "corpus", "version", "files", "sentence pairs", "MB")
LANGUAGES = ("language", "used", "at most", "Table I", "difference")


def as_json(experiment: Experiment) -> str:
    """Return the list as JSON, with null for unknown numbers."""
    return json.dumps(_listing(experiment), indent=1, ensure_ascii=False) + "\n"


def _listing(experiment: Experiment) -> Json:
    sizes = pair_sizes(experiment)
    trained = [size for size in sizes if size.role == "train" and not size.corpus.documents]
    corpora: dict[tuple[str, str], list[PairSize]] = {}
    for size in sizes:
        corpora.setdefault((size.corpus.label, size.corpus.version), []).append(size)
    printed, codes = load_pairs(), in_table_one_order({size.language for size in trained})
    of_language = {code: [size for size in trained if size.language == code] for code in codes}
    return {
        "experiment": experiment.name,
        "corpora": [
            {
                "corpus": name,
                "version": version,
                "role": own[0].role,
                "kind": own[0].corpus.kind,
                "languages": [size.language for size in own],
                "licence": own[0].licence,
                **_sums(own),
            }
            for (name, version), own in corpora.items()
        ],
        "total": {
            "kind": "documents" if all(size.corpus.documents for size in sizes) else "pairs",
            **_sums(sizes),
            # parts share their files
            "sentence_pairs": _sum([size.lines for size in sizes if not size.shared]),
            "train": _sums(trained),
        },
        "evalsets": set_sizes(experiment),
        "languages": [
            _language(code, _sums(own), printed[code].ems if code in printed else None)
            for code, own in of_language.items()
        ],
        "table_1_total": load_pair_totals().ems,
    }


def _language(code: str, sums: Json, table_1: int | None) -> Json:
    """Return the training pairs of a language and its pairs in Table I.

    `difference` is used minus Table I: 0 if Table I lies within the bounds, None if unknown.
    """
    counts = {key: sums[key] for key in ("used", "at_most", "unknown")}
    low, high, difference = sums["used"] or 0, sums["at_most"], None
    if table_1 is not None and low > table_1:
        difference = low - table_1
    elif table_1 is not None and high is not None:
        difference = min(0, high - table_1)
    return {"language": code, **counts, "table_1": table_1, "difference": difference}


def _sums(sizes: list[PairSize]) -> Json:
    """Return sums of the known counts (None if all are unknown) and the number of unknown ones.

    `at_most` is None if one bound is unknown. Documents of a language count only as files, or as
    languages (`pairs`) if the corpora have no pairs.
    """
    own = [size for size in sizes if not size.shared]
    pairs = [size for size in sizes if not size.corpus.documents]
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


def _sum(values: list[int | None]) -> int | None:
    """Return the sum of the known values, None if there are none."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def as_text(experiment: Experiment) -> str:
    """Return tables of corpora, of evaluation sets drawn from a corpus, and of languages."""
    listing = _listing(experiment)
    total = listing["total"]
    of_all = {"corpus": "total", "version": "", "role": "", "licence": "", **total}
    rows = [CORPORA, *map(_corpus_cells, [*listing["corpora"], of_all])]
    lines = [f"{experiment.name}: downloads", "", *aligned(rows, "lllrrrrrl")]
    if listing["evalsets"]:
        rows = [EVALSETS]
        for row in listing["evalsets"]:
            counts = (f"{row['files']:,}", _known(row["lines"]), _megabytes(row["kilobytes"]))
            rows.append((row["evalset"], row["corpus"], row["version"], *counts))
        lines += ["", "Also downloaded, for evaluation sets drawn from whole files of a corpus", ""]
        lines += aligned(rows, "lllrrr")
    if listing["languages"]:
        of_all = _language("total", total["train"], listing["table_1_total"])
        rows = [LANGUAGES, *map(_language_cells, [*listing["languages"], of_all])]
        lines += ["", "Sentence pairs used for training, compared with EMS v2 Table I", ""]
        lines += aligned(rows, "lrrrr")
    notes = list(_notes(total))
    return "\n".join([*lines, *(["", *notes] if notes else [])]) + "\n"


def _corpus_cells(row: Json) -> tuple[str, ...]:
    """Return the cells of a corpus; documents have languages instead of pairs."""
    pairs = f"{row['pairs']:,}"
    cells = [_known(row[key], row["unknown"]) for key in ("sentence_pairs", "used")]
    if row["kind"] == "documents":
        pairs, cells = f"{pairs} languages", ["-", "-"]
    size = _megabytes(row["kilobytes"], row["unknown_kilobytes"])
    place = (row["corpus"], row["version"], row["role"], pairs, f"{row['files']:,}")
    return (*place, *cells, size, row["licence"])


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
            f"?: {total['unknown']} language pairs of a corpus cannot be counted before they are "
            "fetched (your own, another release, or LASER's mined files: at most OPUS's count)"
        )
        yield "the difference is 0 if Table I lies between the known count and `at most`"
    if total["unknown_kilobytes"]:
        count = total["unknown_kilobytes"]
        yield f"?: the size of {count} language pairs, or languages of documents, is unknown"


def aligned(rows: list[tuple[str, ...]], sides: str) -> list[str]:
    """Return rows as lines of aligned columns; `sides`: l(eft) or r(ight) per column."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if side == "r" else cell.ljust(width)
            for cell, width, side in zip(row, widths, sides, strict=True)
        ).rstrip()
        for row in rows
    ]
