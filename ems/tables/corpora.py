"""Tables of the training data: EMS v2 Table I (pairs per language) and what decontamination removed
(section IV-B: "we removed the sentences that appear in any evaluation dataset").

Notable choices:
- a row is the language that is not English; a pair without English keeps its own name, "de-fr";
- only training corpora count; validation pairs stand in one row apart;
- printed counts stay as printed ("4.9M"): they are rounded, more digits would pretend otherwise.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ems.damaged import Damaged
from ems.errors import EmsError
from ems.files import read_json
from ems.shapes import COUNT, TEXT, listing, mapping, named, record
from ems.tables.printed import in_table_one_order, load_pair_totals, load_pairs
from ems.tables.table import Block, Table, Value, make_frame
from ems.tables.words import TABLES
from ems.tables.write import write_table

PIVOT = "en"
EVALUATION = "evaluation"  # the reason under which decontamination counts its removals
TRAIN, VALIDATION = "train", "validation"
PART = "+"  # between a corpus and the name of a part of it
PRINTED = ["LASER (printed)", "EMS (printed)"]
_TEXTS = dict.fromkeys(("corpus", "version", "pair"), TEXT)
_COUNTS = {"read": COUNT, "removed": mapping(COUNT), "kept": COUNT}
ENTRY = record(
    {
        **_TEXTS,
        "role": {"enum": [TRAIN, VALIDATION]},
        **_COUNTS,
        "by_benchmark": mapping(mapping(COUNT)),
    }
)
REPORT = named(
    "decontamination.json",
    record({"key": TEXT, "against": listing(TEXT), "corpora": listing(ENTRY)}),
)
COUNTS = ["Read", "Decontaminated", "Other removals", "Kept"]


@dataclass(frozen=True)
class Entry:
    """One corpus of one pair in the decontamination report; all counts are sentence pairs, but
    `by_benchmark`: benchmark -> side ("en") -> sentences found in it, and "pairs" -> pairs."""

    corpus: str
    role: str
    pair: str
    read: int
    removed: dict[str, int]
    kept: int
    by_benchmark: dict[str, dict[str, int]]

    @property
    def sides(self) -> list[str]:
        """The languages of the pair; one for a corpus of a single language."""
        return self.pair.split("-")

    @property
    def language(self) -> str:
        """The side that is not English, or the whole pair where neither or both are."""
        others = [side for side in self.sides if side != PIVOT]
        return others[0] if len(others) == 1 else self.pair


@dataclass(frozen=True)
class Report:
    """The decontamination report: the key of comparison, the benchmarks, the counts."""

    key: str
    against: list[str]
    entries: list[Entry]


def read_report(path: Path) -> Report:
    """Read decontamination.json. Raises `Damaged` when counts are missing or do not add up."""
    data = read_json(path, REPORT)
    entries = [_entry(path, number, item) for number, item in enumerate(data["corpora"])]
    if not entries:
        raise EmsError(f"{path}: lists no corpora; name some in the experiment and run again")
    return Report(data["key"], data["against"], entries)


def _entry(path: Path, number: int, item: dict[str, Any]) -> Entry:
    entry = Entry(
        corpus=f"{item['corpus']} {item['version']}",
        role=item["role"],
        pair=item["pair"],
        read=item["read"],
        removed=item["removed"],
        kept=item["kept"],
        by_benchmark=item["by_benchmark"],
    )
    if entry.read - sum(entry.removed.values()) != entry.kept:
        raise Damaged(
            path,
            f"corpora[{number}] ({entry.corpus}, {entry.pair}): {entry.read:,} read less "
            f"{sum(entry.removed.values()):,} removed is not the {entry.kept:,} kept",
        )
    return entry


def write_corpora_table(report: Path, out: Path) -> None:
    """Write EMS v2 Table I for our experiment as .tex, .md and .csv beside `out`.

    Per language, in sentence pairs: read, removed by decontamination, removed for other reasons,
    kept, and the printed counts of LASER and EMS. Raises `EmsError` for a malformed report.
    """
    found = read_report(report)
    train = [entry for entry in found.entries if entry.role == TRAIN]
    validation = [entry for entry in found.entries if entry.role == VALIDATION]
    languages = in_table_one_order({entry.language for entry in train})
    rows: list[list[Value]] = [_language_row(language, train) for language in languages]
    rows.append(["Total", *_counts(train), *_printed_totals(languages)])
    if validation:
        rows.append(["Validation", *_counts(validation), None, None])
    columns = [*COUNTS, *PRINTED]
    table = Table(
        frame=make_frame(["Language", *columns], rows),
        blocks=[Block(columns)],
        rules={len(languages), len(languages) + 1},
        notes=_corpora_notes(found, train),
    )
    write_table(table, out)


def _language_row(language: str, train: list[Entry]) -> list[Value]:
    ours = _counts(entry for entry in train if entry.language == language)
    paper = load_pairs().get(language)
    printed = (paper.laser_printed, paper.ems_printed) if paper else ("-", "-")
    return [language, *ours, *(None if text == "-" else text for text in printed)]


def _counts(entries: Iterable[Entry]) -> list[Value]:
    """Sums of read, removed by decontamination, removed otherwise, kept."""
    read = evaluation = other = kept = 0
    for entry in entries:
        read, kept = read + entry.read, kept + entry.kept
        evaluation += entry.removed.get(EVALUATION, 0)
        other += sum(entry.removed.values()) - entry.removed.get(EVALUATION, 0)
    return [read, evaluation, other, kept]


def _printed_totals(languages: list[str]) -> list[Value]:
    """Sums of the printed LASER and EMS counts over `languages`."""
    pairs = load_pairs()
    shown = [pairs[language] for language in languages if language in pairs]
    laser = [paper.laser for paper in shown if paper.laser is not None]
    ems = [paper.ems for paper in shown if paper.ems is not None]
    return [human(sum(counts)) if counts else None for counts in (laser, ems)]


def human(count: int) -> str:
    """A rounded count as Table I writes them: 300 -> "0.3k", 50000 -> "50k", 4900000 -> "4.9M"."""
    if count >= 999_500:
        return f"{count / 1e6:.1f}M"
    return f"{count / 1e3:.0f}k" if count >= 1000 else f"{count / 1e3:.1f}k"


def _corpora_notes(report: Report, train: list[Entry]) -> list[str]:
    paper, languages = load_pair_totals(), list(load_pairs())
    laser, ems = _printed_totals(languages)
    reasons: Counter[str] = Counter()
    for entry in train:
        reasons.update(entry.removed)
    del reasons[EVALUATION]
    other = [f"{name.replace('_', ' ')} {count:,}" for name, count in sorted(reasons.items())]
    return [
        "Sentence pairs for training, by the language that is not English. Decontaminated: pairs "
        f"with a sentence of {', '.join(report.against) or 'no benchmark'}. "
        f"Other removals: {', '.join(other) or 'none'}.",
        f"Printed: {TABLES['corpora'].paper}. The totals here are sums over the languages shown; "
        f"the paper prints {paper.laser_printed} for LASER and {paper.ems_printed} for EMS over "
        f"its {len(languages)} languages (its rounded counts add up to {laser} and {ems}).",
    ]


def write_decontamination_table(report: Path, out: Path) -> None:
    """Write what decontamination found as .tex, .md and .csv beside `out`.

    Per corpus and benchmark: pairs read, sentences found in the benchmark on the English and on the
    other side, pairs found. A pair may be in several benchmarks; "any of them" counts it once.
    """
    found = read_report(report)
    rows: list[list[Value]] = []
    rules: set[int] = set()
    for corpus, role in _corpora_and_roles(found):
        rules.add(len(rows))
        entries = [e for e in found.entries if (e.corpus, e.role) == (corpus, role)]
        rows += _benchmark_rows(corpus, role, entries, found.against)
    columns = ["Role", "Benchmark", "Read", "English side", "Other side", "Pairs"]
    table = Table(
        frame=make_frame(["Corpus", *columns], rows),
        blocks=[Block(columns)],
        rules=rules,
        text={"Role", "Benchmark"},
        once={"Corpus", "Role", "Read"},
        notes=_decontamination_notes(found),
    )
    write_table(table, out)


def _corpora_and_roles(report: Report) -> list[tuple[str, str]]:
    """Each corpus in each of its roles, by the alphabet."""
    found = {(entry.corpus, entry.role) for entry in report.entries}
    return sorted(found, key=lambda names: (names[0].casefold(), *names))


def _decontamination_notes(report: Report) -> list[str]:
    notes = [
        "Sentences of each corpus that are in a benchmark, by side, and the pairs they are in "
        f"(EMS v2 section IV-B). Compared by the key: {report.key}."
    ]
    if any(PART in entry.corpus for entry in report.entries):
        notes.append(f"A name such as NTREX{PART}train is a part of the corpus before the {PART}.")
    return notes


def _benchmark_rows(
    corpus: str, role: str, entries: list[Entry], against: list[str]
) -> list[list[Value]]:
    """One row per benchmark and, for several, the pairs that decontamination removed in all."""
    read, removed, _, _ = _counts(entries)
    names = dict.fromkeys([*against, *sorted({n for e in entries for n in e.by_benchmark})])
    rows: list[list[Value]] = []
    for name in names:
        english, other, pairs = _found(entries, name)
        rows.append([corpus, role, name, read, english, other, pairs])
    if len(names) != 1:
        rows.append([corpus, role, "any of them", read, None, None, removed])
    return rows


def _found(entries: list[Entry], benchmark: str) -> tuple[int, int, int]:
    """Sentences on the English side, on the other side, and pairs, found in one benchmark."""
    english = other = pairs = 0
    for entry in entries:
        counts = entry.by_benchmark.get(benchmark, {})
        english += counts.get(PIVOT, 0)
        other += sum(counts.get(side, 0) for side in entry.sides if side != PIVOT)
        pairs += counts.get("pairs", 0)
    return english, other, pairs
