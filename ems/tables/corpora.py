"""Tables of the training data: EMS v2 Table I (pairs per language), why pairs were removed, and
what decontamination removed (section IV-B: "we removed the sentences that appear in any evaluation
dataset").

A row is the language that is not English; a pair without English keeps its own name, "de-fr". The
further pairs of multi-parallel text are one row, "through en".
Documents of one language are rows of their own, "de (documents)", whose counts are sentences.
Printed counts stay as printed ("4.9M"): they are rounded.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Literal

from pydantic import Field

from ems.base.errors import Damaged, EmsError
from ems.base.files import read_json
from ems.base.schema import Count, Record, Text
from ems.config.experiment import MULTIWAY
from ems.tables.printed import in_table_one_order, load_pair_totals, load_pairs, of_ems
from ems.tables.table import Table, Value, write_table

PIVOT = "en"
EVALUATION = "evaluation"  # the reason under which decontamination counts its removals
TRAIN, VALIDATION = "train", "validation"
PART = "+"  # between a corpus and the name of a part of it
REASONS = {  # as ems.text.filters names them, in the order in which they are asked -> as shown
    "cap": "Cap",
    "malformed": "No pair",
    "undecodable": "Not UTF-8",
    "nul": "NUL",
    "too_long": "Over 1 MB",
    "both_empty": "Both empty",
    "one_empty": "One empty",
    "empty": "Empty",
    "evaluation": "Evaluation",
    "max_bytes": "Too many bytes",
    "identical": "Same sides",
    "min_characters": "Too few characters",
    "max_characters": "Too many characters",
    "min_words": "Too few words",
    "max_words": "Too many words",
    "max_ratio": "Length ratio",
    "swapped": "Swapped",
    "language": "Other language",
    "duplicates": "Duplicates",
    "similarity": "Other meaning",
    "no_context": "No context",
}
OF_DOCUMENTS = " (documents)"


class Counts(Record):
    """What cleaning read, removed for each reason, and kept."""

    read: Count
    removed: dict[str, Count]
    kept: Count


class Entry(Counts):
    """One corpus of one pair in the decontamination report; all counts are sentence pairs, but
    `by_benchmark`: benchmark -> side ("en") -> its sentences in the corpus, and "pairs" -> pairs.

    Of documents of one language all counts are sentences, but `documents`: documents read, removed
    for each reason, and kept.
    """

    name: Text = Field(alias="corpus")
    version: Text
    role: Literal["train", "validation"]
    pair: Text
    by_benchmark: dict[str, dict[str, Count]]
    documents: Counts | None = None

    @property
    def corpus(self) -> str:
        """Return the corpus with its version."""
        return f"{self.name} {self.version}"

    @property
    def sides(self) -> list[str]:
        """Return the languages of the pair; one for a corpus of a single language."""
        return self.pair.split("-")

    @property
    def language(self) -> str:
        """Return the side that is not English, or the whole pair where neither or both are;
        "through en" of pairs that share a translation.
        """
        if self.documents is not None:
            return f"{self.pair}{OF_DOCUMENTS}"
        if self.corpus.startswith(f"{MULTIWAY} "):  # a thousand language pairs, maybe
            return self.corpus.replace(MULTIWAY, "through", 1)
        others = [side for side in self.sides if side != PIVOT]
        return others[0] if len(others) == 1 else self.pair

    @property
    def place(self) -> tuple[str, ...]:
        """Return the corpus in its role, as they are sorted."""
        return self.corpus.casefold(), self.corpus, self.role


class Report(Record):
    """The decontamination report: the key of comparison, the benchmarks (VALIDATION is the text to
    validate on), the counts.
    """

    key: Text
    against: list[Text]
    entries: list[Entry] = Field(alias="corpora")
    validation: bool = False

    def by_corpus(self) -> list[tuple[str, str, list[Entry]]]:
        """Return each corpus in each of its roles, by the alphabet, with its entries."""
        groups = groupby(sorted(self.entries, key=lambda e: e.place), key=lambda e: e.place)
        return [(corpus, role, list(entries)) for (_, corpus, role), entries in groups]


def read_report(path: Path) -> Report:
    """Read decontamination.json. Raises `Damaged` when counts are missing or do not add up."""
    report = read_json(path, Report, "decontamination.json")
    for number, entry in enumerate(report.entries):
        for counts in (entry, *([entry.documents] if entry.documents else [])):
            removed = sum(counts.removed.values())
            if counts.read - removed != counts.kept:
                raise Damaged(
                    path,
                    f"corpora[{number}] ({entry.corpus}, {entry.pair}): {counts.read:,} read less "
                    f"{removed:,} removed is not the {counts.kept:,} kept",
                )
    if not report.entries:
        raise EmsError(f"{path}: lists no corpora; name some in the experiment and run again")
    held_out = [VALIDATION] if report.validation else []
    return report.model_copy(update={"against": [*report.against, *held_out]})


# --- pairs per language


def write_corpora_table(report: Path, out: Path) -> None:
    """Write EMS v2 Table I for our experiment as .tex, .md and .csv beside `out`.

    Per language, in sentence pairs: read, removed by decontamination, removed for other reasons,
    kept, and the printed counts of LASER and EMS. Raises `EmsError` for a malformed report.
    """
    data = read_report(report)
    train = [entry for entry in data.entries if entry.role == TRAIN]
    validation = [entry for entry in data.entries if entry.role == VALIDATION]
    languages = in_table_one_order({entry.language for entry in train})
    rows: list[list[Value]] = []
    for language in languages:
        paper = load_pairs().get(language)
        printed = (paper.laser_printed, paper.ems_printed) if paper else ("-", "-")
        ours = _counts(entry for entry in train if entry.language == language)
        rows.append([language, *ours, *(None if text == "-" else text for text in printed)])
    rows.append(["Total", *_counts(train), *_printed_totals(languages)])
    rows += [["Validation", *_counts(validation), None, None]] if validation else []
    columns = ["Language", "Read", "Decontaminated", "Other removals", "Kept"]
    table = Table(
        [*columns, "LASER (printed)", "EMS (printed)"],
        rows,
        rules={len(languages), len(languages) + 1},
        notes=_corpora_notes(data, train),
    )
    write_table(table, out)


def _counts(entries: Iterable[Entry]) -> list[Value]:
    """Return sums of read, removed by decontamination, removed otherwise, kept."""
    entries = list(entries)
    read, kept = (sum(getattr(entry, key) for entry in entries) for key in ("read", "kept"))
    evaluation = _removed(entries)[EVALUATION]
    return [read, evaluation, read - kept - evaluation, kept]


def _removed(counts: Iterable[Counts]) -> Counter[str]:
    """Return reason -> what was removed for it."""
    removed = Counter[str]()
    for each in counts:
        removed.update(each.removed)
    return removed


def _printed_totals(languages: list[str]) -> list[Value]:
    """Return sums of the printed LASER and EMS counts over `languages`."""
    shown = [load_pairs()[language] for language in languages if language in load_pairs()]
    totals = sum(paper.laser or 0 for paper in shown), sum(paper.ems or 0 for paper in shown)
    return [human(total) if total else None for total in totals]


def human(count: int) -> str:
    """Return a rounded count as Table I writes them: 300 -> "0.3k", 50000 -> "50k", 4900000 ->
    "4.9M".
    """
    if count >= 999_500:
        return f"{count / 1e6:.1f}M"
    return f"{count / 1e3:.0f}k" if count >= 1000 else f"{count / 1e3:.1f}k"


def _corpora_notes(report: Report, train: list[Entry]) -> list[str]:
    paper, languages = load_pair_totals(), list(load_pairs())
    laser, ems = _printed_totals(languages)
    reasons = [item for item in sorted(_removed(train).items()) if item[0] != EVALUATION]
    other = [f"{reason.replace('_', ' ')} {count:,}" for reason, count in reasons]
    return [
        "Sentence pairs for training, by the language that is not English; a pair without English "
        "by both. Decontaminated: pairs "
        f"with a sentence of {', '.join(report.against) or 'no benchmark'}. "
        f"Other removals: {', '.join(other) or 'none'}.",
        *_documents_notes(train),
        f"Printed: {of_ems('I')}. The totals here are sums over the languages shown; "
        f"the paper prints {paper.laser_printed} for LASER and {paper.ems_printed} for EMS over "
        f"its {len(languages)} languages (its rounded counts add up to {laser} and {ems}).",
    ]


def _documents_notes(entries: Iterable[Entry]) -> list[str]:
    """Return a note with the documents of some corpora; none if they have none."""
    counts = [entry.documents for entry in entries if entry.documents is not None]
    if not counts:
        return []
    read, kept = (sum(getattr(each, key) for each in counts) for key in ("read", "kept"))
    reasons = _removed(counts).items()
    why = ", ".join(f"{REASONS.get(reason, reason).lower()} {n:,}" for reason, n in reasons)
    return [
        f"Of documents of one language sentences are counted. Documents: {read:,} read, "
        f"{kept:,} kept; removed: {why or 'none'}."
    ]


# --- evaluation sentences


def write_decontamination_table(report: Path, out: Path) -> None:
    """Write the evaluation sentences of the corpora as .tex, .md and .csv beside `out`.

    Per corpus and benchmark: pairs read, sentences of the benchmark on the English and on the other
    side, pairs with any. A pair may be in several benchmarks; "any of them" counts it once.
    """
    data = read_report(report)
    rows: list[list[Value]] = []
    rules: set[int] = set()
    for corpus, role, entries in data.by_corpus():
        rules.add(len(rows))
        read, removed, _, _ = _counts(entries)
        names = dict.fromkeys(
            [*data.against, *sorted({n for e in entries for n in e.by_benchmark})]
        )
        rows += [[corpus, role, name, read, *_sentences(entries, name)] for name in names]
        if len(names) != 1:
            rows.append([corpus, role, "any of them", read, None, None, removed])
    notes = [
        "Sentences of each corpus that are in a benchmark, by side, and the pairs they are in "
        f"(EMS v2 section IV-B). Compared by the key: {data.key}."
    ]
    if VALIDATION in data.against:
        notes.append(f"{VALIDATION}: sentences of the text to validate on, in training text.")
    if any(entry.documents is None and PIVOT not in entry.sides for entry in data.entries):
        notes.append("Of a pair without English both sides are other sides.")
    if any(PART in entry.corpus for entry in data.entries):
        notes.append(f"A name such as NTREX{PART}train is a part of the corpus before the {PART}.")
    columns = ["Corpus", "Role", "Benchmark", "Read", "English side", "Other side", "Pairs"]
    once, text = {"Corpus", "Role", "Read"}, {"Role", "Benchmark"}
    write_table(Table(columns, rows, rules=rules, text=text, once=once, notes=notes), out)


def _sentences(entries: list[Entry], benchmark: str) -> list[Value]:
    """Return sentences of a benchmark on the English side and on the other side, and pairs with
    any.
    """
    counts = [(entry.sides, entry.by_benchmark.get(benchmark, {})) for entry in entries]
    others = [of.get(side, 0) for sides, of in counts for side in sides if side != PIVOT]
    english, pairs = (sum(of.get(key, 0) for _, of in counts) for key in (PIVOT, "pairs"))
    return [english, sum(others), pairs]


# --- why pairs went


def write_filters_table(report: Path, out: Path) -> None:
    """Write why pairs were removed, corpus by corpus, as .tex, .md and .csv beside `out`.

    Raises `EmsError` for a malformed report or one whose counts do not add up.
    """
    data = read_report(report)
    known = {reason for entry in data.entries for reason in entry.removed}
    reasons = [*(r for r in REASONS if r in known), *sorted(known - set(REASONS))]
    groups = data.by_corpus()
    rows = [[corpus, role, *_removals(of, reasons)] for corpus, role, of in groups]
    rows.append(["Total", "", *_removals(data.entries, reasons)])
    table = Table(
        ["Corpus", "Role", "Read", *(REASONS.get(reason, reason) for reason in reasons), "Kept"],
        rows,
        rules={len(groups)},
        text={"Role"},
        notes=[
            "Sentence pairs. A pair is counted once, under the first reason from the left that it "
            "has: read is kept plus all removals. A dash: the filter was off.",
            *_documents_notes(data.entries),
        ],
    )
    write_table(table, out)


def _removals(entries: list[Entry], reasons: list[str]) -> list[Value]:
    """Return pairs read, removed for each reason (None: the filter was off), and kept."""
    counts = [[e.removed[reason] for e in entries if reason in e.removed] for reason in reasons]
    read, _, _, kept = _counts(entries)
    return [read, *(sum(of) if of else None for of in counts), kept]


# --- vocabularies

NO_SCRIPT = {"other": "no letter", "control": "control symbols", "bytes": "bytes"}


class _Tokens(Record):
    """Of the text of a language."""

    lines: Count
    characters: Count
    tokens: Count
    unknown: Count


class _Vocabulary(Record):
    """The report on a vocabulary: its pieces, and those of each script."""

    pieces: Count
    scripts: dict[str, Count]
    languages: dict[str, _Tokens]


def write_vocabulary_table(reports: list[Path], out: Path) -> None:
    """Write the vocabulary reports (`<name>.json`) as .tex, .md and .csv beside `out`: a row per
    language, then a row per script, most pieces first.

    Raises `EmsError` when counts are missing or the scripts' pieces do not add up.
    """
    rows: list[list[Value]] = []
    rules, sizes = set(), []
    for report in reports:
        data = read_json(report, _Vocabulary)
        pieces, scripts, languages = data.pieces, data.scripts, data.languages
        if sum(scripts.values()) != pieces:
            counted = sum(scripts.values())
            raise Damaged(report, f"the scripts have {counted:,} pieces, the vocabulary {pieces:,}")
        prefix = f"{report.stem}: " if len(reports) > 1 else ""
        rules |= {len(rows), len(rows) + len(languages)} - {0}
        for code in in_table_one_order(languages):
            rows.append([prefix + code, *_rates(languages[code]), None])
        for name in sorted(scripts, key=lambda name: (-scripts[name], name)):
            label = prefix + NO_SCRIPT.get(name, f"{name} script")
            rows.append([label, None, None, None, None, scripts[name]])
        sizes.append(f"{prefix}{pieces:,} pieces")
    note = (
        f"The vocabulary ({', '.join(sizes)}) on the lines that it was trained on. Unknown: tokens "
        "that are <unk>. Characters are counted without spaces. A piece is of the script of its "
        "first letter."
    )
    columns = ["Language", "Lines", "Unknown (%)", "Tokens/character", "Tokens/line", "Pieces"]
    write_table(Table(columns, rows, rules=rules, notes=[note]), out)


def _rates(counts: _Tokens) -> list[Value]:
    """Return lines, percent of unknown tokens, tokens per character and per line."""
    lines, tokens = counts.lines, counts.tokens
    ratios = [(100 * counts.unknown, tokens), (tokens, counts.characters), (tokens, lines)]
    return [lines, *(f"{count / total:.3f}" if total else None for count, total in ratios)]
