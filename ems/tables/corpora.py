"""Tables of the training data: pairs per language (EMS v2 Table I) and removals by reason.
Documents have rows of their own, which count sentences. A malformed report raises `EmsError`.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import field, replace
from pathlib import Path
from typing import Literal

from ems.base.errors import Damaged, EmsError
from ems.base.files import read_json
from ems.base.records import Count, NonBlank, Record
from ems.config.experiment import MULTIWAY
from ems.tables.declarations import words_of
from ems.tables.printed import TOTAL, in_table_one_order, load_pairs
from ems.tables.table import PRINTED, Table, Value, headings_of, note, write_table
from ems.text.tsv import CleanCounts, Counted

PIVOT = "en"
EVALUATION = "evaluation"  # the reason under which decontamination counts its removals
TRAIN, VALIDATION = "train", "validation"
PART = "+"  # between a corpus and the name of a part of it


class ReportEntry(Counted):
    """One corpus of one language pair; counts are sentence pairs (sentences for `documents`)."""

    name: NonBlank = field(metadata={"key": "corpus"})
    version: NonBlank
    role: Literal["train", "validation"]
    pair: NonBlank
    by_benchmark: dict[str, dict[str, Count]]  # benchmark -> side ("en") or "pairs" -> count
    changed: dict[str, Count] = field(default_factory=dict)  # repair -> sides

    @property
    def corpus(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def sides(self) -> list[str]:
        return self.pair.split("-")

    @property
    def language(self) -> str:
        """The side other than English, the whole pair if neither or both are, or "through en"."""
        if self.documents is not None:
            return f"{self.pair} (documents)"
        if self.corpus.startswith(f"{MULTIWAY} "):  # up to a thousand language pairs
            return self.corpus.replace(MULTIWAY, "through", 1)
        others = [side for side in self.sides if side != PIVOT]
        return others[0] if len(others) == 1 else self.pair


class Report(Record):
    """The decontamination report; the benchmark VALIDATION is the text to validate on."""

    key: NonBlank
    against: list[NonBlank]
    entries: list[ReportEntry] = field(metadata={"key": "corpora"})
    validation: bool = False

    def by_corpus(self) -> list[tuple[str, str, list[ReportEntry]]]:
        """Return (corpus, role, entries), sorted by corpus."""
        groups: dict[tuple[str, str], list[ReportEntry]] = {}
        for entry in sorted(self.entries, key=lambda e: (e.corpus.casefold(), e.corpus, e.role)):
            groups.setdefault((entry.corpus, entry.role), []).append(entry)
        return [(corpus, role, entries) for (corpus, role), entries in groups.items()]


def read_report(path: Path) -> Report:
    """Read decontamination.json. Raises `Damaged` when counts are missing or do not add up."""
    report = read_json(path, Report, "decontamination.json")
    for number, entry in enumerate(report.entries):
        for counts in filter(None, (entry, entry.documents)):
            removed = sum(counts.removed.values())
            if counts.read - removed != counts.kept:
                where = f"corpora[{number}] ({entry.corpus}, {entry.pair})"
                rest = f"{counts.read:,} read less {removed:,} removed"
                raise Damaged(path, f"{where}: {rest} is not the {counts.kept:,} kept")
    if not report.entries:
        raise EmsError(f"{path}: lists no corpora; name some in the experiment and run again")
    held_out = [VALIDATION] if report.validation else []
    return replace(report, against=[*report.against, *held_out])


def _total(counts: Iterable[CleanCounts]) -> tuple[int, Counter[str], int]:
    """Return the sums read, removed by reason, and kept."""
    counts, removed = list(counts), Counter[str]()
    for each in counts:
        removed.update(each.removed)
    return sum(each.read for each in counts), removed, sum(each.kept for each in counts)


def write_corpora_table(report: Path, out: Path, printed: Collection[str] = ()) -> None:
    """Write EMS v2 Table I for our experiment, with the counts of the models `printed` in it."""
    data = read_report(report)
    train = [entry for entry in data.entries if entry.role == TRAIN]
    validation = [entry for entry in data.entries if entry.role == VALIDATION]
    languages = in_table_one_order({entry.language for entry in train})
    models = [name for name in ("LASER", "EMS") if name in printed]
    pairs = {name: load_pairs(f"{name.lower()}_printed") for name in models}
    rows: list[list[Value]] = []
    for language in languages:
        ours = _counts(entry for entry in train if entry.language == language)
        theirs = (counts.get(language, "-") for counts in pairs.values())
        rows.append([language, *ours, *(None if text == "-" else text for text in theirs)])
    rows.append([TOTAL, *_counts(train), *(None for _ in models)])
    rows += [["Validation", *_counts(validation), *(None for _ in models)]] if validation else []
    _, removed, _ = _total(train)
    reasons = [item for item in sorted(removed.items()) if item[0] != EVALUATION]
    labels = headings_of("reason")
    other = [f"{labels.get(name, name).lower()} {count:,}" for name, count in reasons if count]
    against, removals = ", ".join(data.against) or "no benchmark", ", ".join(other) or "none"
    notes = [note("corpora", against=against, other=removals), *_documents_notes(train)]
    if models:
        totals = " and ".join(f"{own[TOTAL]} for {name}" for name, own in pairs.items())
        paper = words_of()["table"]["corpora"].paper
        notes.append(note("corpora_printed", paper=paper, totals=totals))
    columns = ["Language", "Read", "Decontaminated", "Other removals", "Kept"]
    columns += [name + PRINTED for name in models]
    write_table(Table(columns, rows, rules={len(languages), len(languages) + 1}, notes=notes), out)


def _counts(entries: Iterable[ReportEntry]) -> list[Value]:
    """Return the sums read, removed by decontamination, removed otherwise, and kept."""
    read, removed, kept = _total(entries)
    return [read, removed[EVALUATION], read - kept - removed[EVALUATION], kept]


def _documents_notes(entries: Iterable[ReportEntry]) -> list[str]:
    """Return a note that counts the documents; [] if there are none."""
    counts = [entry.documents for entry in entries if entry.documents is not None]
    if not counts:
        return []
    (read, removed, kept), labels = _total(counts), headings_of("reason")
    why = ", ".join(f"{labels.get(name, name).lower()} {n:,}" for name, n in removed.items())
    return [note("documents", read=read, kept=kept, why=why or "none")]


def write_decontamination_table(report: Path, out: Path) -> None:
    """Write the evaluation sentences in each corpus by benchmark ("any of them": each once)."""
    data = read_report(report)
    rows: list[list[Value]] = []
    rules: set[int] = set()
    for corpus, role, entries in data.by_corpus():
        rules.add(len(rows))
        read, removed, _ = _total(entries)
        others = sorted({name for entry in entries for name in entry.by_benchmark})
        names = dict.fromkeys([*data.against, *others])
        for name in names:
            counts = Counter[str]()  # side -> sentences; and "pairs"
            for entry in entries:
                of = entry.by_benchmark.get(name, {})
                counts["pairs"] += of.get("pairs", 0)
                counts[PIVOT] += of.get(PIVOT, 0)
                counts["other"] += sum(of.get(side, 0) for side in entry.sides if side != PIVOT)
            found = [counts[PIVOT], counts["other"], counts["pairs"]]
            rows.append([corpus, role, name, read, *found])
        if len(names) != 1:
            rows.append([corpus, role, "any of them", read, None, None, removed[EVALUATION]])
    notes = [note("decontamination", key=data.key)]
    if VALIDATION in data.against:
        notes.append(f"{VALIDATION}: sentences of the text to validate on, in training text.")
    columns = ["Corpus", "Role", "Benchmark", "Read", "English side", "Other side", "Pairs"]
    once, text = {"Corpus", "Role", "Read"}, {"Role", "Benchmark"}
    write_table(Table(columns, rows, rules=rules, text=text, once=once, notes=notes), out)


def write_filters_table(report: Path, out: Path) -> None:
    """Write the pairs removed from each corpus, by reason."""
    data = read_report(report)
    known = {reason for entry in data.entries for reason in entry.removed}
    labels = headings_of("reason")
    reasons = [*(name for name in labels if name in known), *sorted(known - set(labels))]
    groups = [*data.by_corpus(), ("Total", "", data.entries)]
    rows: list[list[Value]] = []
    for corpus, role, entries in groups:
        read, removed, kept = _total(entries)  # a missing reason: the filter was off
        rows.append([corpus, role, read, *(removed.get(reason) for reason in reasons), kept])
    notes = [note("filters"), *_documents_notes(data.entries)]
    columns = ["Corpus", "Role", "Read", *(labels.get(name, name) for name in reasons), "Kept"]
    write_table(Table(columns, rows, rules={len(groups) - 1}, text={"Role"}, notes=notes), out)


# --- vocabularies

NO_SCRIPT = {"other": "no letter", "control": "control symbols", "bytes": "bytes"}


class _Tokens(Record):
    lines: Count
    characters: Count
    tokens: Count
    unknown: Count


class _Vocabulary(Record):
    pieces: Count
    scripts: dict[str, Count]
    languages: dict[str, _Tokens]


def write_vocabulary_table(reports: list[Path], out: Path) -> None:
    """Write a row per language, then a row per script, of each vocabulary report (`<name>.json`).
    Raises `EmsError` when the scripts' pieces do not add up.
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
            own = languages[code]
            ratios = [(100 * own.unknown, own.tokens), (own.tokens, own.characters)]
            ratios.append((own.tokens, own.lines))
            rates = [f"{count / total:.3f}" if total else None for count, total in ratios]
            rows.append([prefix + code, own.lines, *rates, None])
        for name in sorted(scripts, key=lambda name: (-scripts[name], name)):
            label = prefix + NO_SCRIPT.get(name, f"{name} script")
            rows.append([label, None, None, None, None, scripts[name]])
        sizes.append(f"{prefix}{pieces:,} pieces")
    notes = [note("vocabulary", sizes=", ".join(sizes))]
    columns = ["Language", "Lines", "Unknown (%)", "Tokens/character", "Tokens/line", "Pieces"]
    write_table(Table(columns, rows, rules=rules, notes=notes), out)
