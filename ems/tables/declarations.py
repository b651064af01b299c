"""Tables shared by several benchmarks: classification ("en->de": learnt in English and tested in
German), and retrieval among many candidates.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from string import Formatter
from typing import Any, Literal

from pydantic import Field

from ems.base.files import read_text
from ems.base.records import Count, NonBlank
from ems.base.schema import Settings, checked
from ems.bench.scores import ENGLISH
from ems.config.load import load_yaml
from ems.config.plugins import folder, has_module, module
from ems.tables import engine, printed
from ems.tables.engine import BEST, Column, Declaration, Models, PrintedRows, headings, labels_of
from ems.tables.scores import Scores
from ems.tables.table import Block, balanced_blocks

TEXTS = ("margin", "documents")  # settings of protocols that are no numbers
PRECISION, MAJORITY = "average precision", "most frequent class"


class Shown(Settings):
    """The words of a table or figure in the PDF and the report, and the systems it shows."""

    caption: str
    place: int = Field(10_000, description="Orders the tables as the papers do.")
    paper: str = Field("", description="The paper table that it reproduces.")
    report: str = Field("", description="A paragraph of reStructuredText.")
    among: Literal["", "families", "unseen"] = Field(
        "", description="Shows only members of families, or systems scored on unseen languages."
    )
    ablation: str = Field("", description="Describes its means in EMS v2 Table XIV.")
    first: bool = Field(False, description="Shows only the first system.")
    heading: str = Field("", description="Makes it a table of accuracies; begins its note.")
    printed: str = Field("", description="The file of ems/tables/printed with the paper's rows.")
    rows: PrintedRows = Field(PrintedRows(), description="What the paper's rows are of.")
    note: str = Field(
        "",
        description="Describes the numbers; {version}, {counted} or a {setting} of the protocol.",
    )
    choices: dict[str, dict[str, str]] = Field(
        {}, description="What the note says for each value of a setting, which may name others."
    )
    published: dict[str, dict[str, float]] = Field({}, description="Rows without a file.")

    @property
    def paragraph(self) -> str:
        """The paragraph of the report, which most tables of accuracies share."""
        shared = Path(__file__).with_name("zero_shot.txt") if self.heading else None
        return self.report or (read_text(shared) if shared else "")


class Words(Settings):
    """A file of words: command ("table", "figure", "timed") -> output -> its words."""

    table: dict[str, Shown] = Field({})
    figure: dict[str, Shown] = Field({})
    timed: dict[str, Shown] = Field({})


@cache
def words_of(benchmark: str = "") -> dict[str, dict[str, Shown]]:
    """Return command -> output -> words, of a benchmark's tables and figures, or of the rest.
    Raises `EmsError` for a malformed file.
    """
    path = folder(benchmark) / "table.yaml" if benchmark else Path(__file__).with_name("words.yaml")
    return dict(checked(Words, load_yaml(path), path) if path.is_file() else Words())


@cache
def tables_of(benchmark: str) -> Mapping[str, Declaration | Callable[[Iterable[Path], Path], None]]:
    """Return name -> table of a benchmark: TABLES of its `table.py`, tables of accuracies, and of
    P@1 if all that one needs is a `note`.
    """
    shown = words_of(benchmark)["table"].items()
    order, tables = printed.in_table_one_order, {}
    for name, words in shown:
        if words.note:
            models = partial(printed.load_table, words.printed, "language")
            models = models if words.printed else None
            columns = partial(engine.one_each, order=order, models=models and models())
            tables[name] = noted_table(benchmark, "P@1", columns, models, name)
    tables |= {name: accuracy_table(benchmark, name) for name, words in shown if words.heading}
    if has_module(benchmark, "table"):
        tables |= getattr(module(benchmark, "table"), "TABLES", {})
    return tables


def noted(benchmark: str, table: str) -> Callable[[Sequence[Scores]], list[str]]:
    """Return the function that fills in the `note` of a table, of the first score file. Each of its
    paragraphs is a note.
    """
    words = words_of(benchmark)["table"][table]

    def about(systems: Sequence[Scores]) -> list[str]:
        file, note = systems[0].file, words.note
        known = {"version": file.version, "counted": engine.counted(systems)}
        for name, choices in words.choices.items():
            value = file.setting(name, Literal[tuple(choices)])
            note = note.replace(f"{{{name}}}", choices[value])
        for _, name, *_ in Formatter().parse(note):
            if name and name not in known:
                known[name] = file.setting(name, NonBlank if name in TEXTS else Count)
        return note.format(**known).split("\n")

    return about


def printed_rows(benchmark: str, table: str, models: Callable[[], Models]) -> PrintedRows:
    """Return the rows of the paper that table.yaml describes."""
    words = words_of(benchmark)["table"][table]
    own = {"source": words.paper + words.rows.source, "models": models}
    return words.rows.model_copy(update=own)


def noted_table(
    benchmark: str,
    metric: str,
    columns: Callable[[Sequence[Scores]], list[Column]],
    models: Callable[[], Models] | None = None,
    table: str = "",
    **own: Any,
) -> Declaration:
    """Return a table (default: of the benchmark's name) whose `note` and rows of the paper, of
    `models`, table.yaml describes.
    """
    table = table or benchmark
    own = {"about": noted(benchmark, table), **own}
    if published := words_of(benchmark)["table"][table].published:
        models = published.copy
    if models:
        own["printed"] = printed_rows(benchmark, table, models)
    return Declaration({benchmark: ""}, metric, columns, **own)


def accuracy_table(benchmark: str, table: str) -> Declaration:
    shown = words_of(benchmark)["table"][table]
    models = partial(printed.load_accuracies, shown.printed) if shown.printed else dict
    classes = partial(printed.load_classes, shown.printed)
    own = {"version": "v1", "data": "version v1", "classes": classes}
    paper = printed_rows(benchmark, table, models).model_copy(update=own)
    return Declaration(
        benchmarks={benchmark: ""},
        metric="accuracy",
        label=lambda file, row: row.direction,
        columns=lambda systems: _columns(systems, models()),
        blocks=_blocks,
        about=partial(_about, title=shown.heading),
        printed=paper if shown.printed else None,
        below={PRECISION: "AP"},
        shared="" if shown.printed else MAJORITY,
    )


def _columns(systems: Sequence[Scores], models: Models) -> list[Column]:
    """Return a column per direction, in the paper's order, then their mean. If all directions have
    one source, its own column stands first and is not averaged, and the targets name the columns.
    """
    there = labels_of(systems)
    paper = [name for values in models.values() for name in values if name != printed.AVERAGE]
    languages = printed.in_table_one_order({part for name in there for part in _parts(name)[:2]})
    source = _source(there)
    others = sorted(there, key=lambda name: _place(name, languages, source))
    names = [name for name in dict.fromkeys([*paper, *others]) if name in there]
    own = f"{source}-{source}"
    names = sorted(names, key=lambda name: name != own)  # stable: it comes first
    arrows = {name: name.replace("-", "->", 1) for name in names}
    shown = {name: _parts(name)[1] if own in there else arrows[name] for name in names}
    columns = [Column(heading, [name], name) for name, heading in shown.items()]
    return [*columns, engine.average([name for name in names if name != own], models)]


def _blocks(columns: list[Column]) -> list[Block]:
    """Return a block per language pair if there are domains, else blocks of equal size."""
    *directions, last = columns
    if not any(" " in column.printed for column in directions):
        return balanced_blocks(headings(columns))
    pairs: dict[str, list[str]] = {}
    for column in directions:
        pair = "-".join(sorted(_parts(column.printed)[:2]))
        pairs.setdefault(pair, []).append(column.heading)
    *front, end = pairs.values()
    return [*map(Block, front), Block([*end, last.heading])]


def _parts(name: str) -> tuple[str, str, str]:
    """Return source, target and domain: "en-de books" -> "en", "de", " books"."""
    pair, space, domain = name.partition(" ")
    source, _, target = pair.partition("-")
    return source, target, space + domain


def _source(names: set[str]) -> str:
    """Return the language that every direction has, English if there are two."""
    sides = [set(_parts(name)[:2]) for name in sorted(names)]
    shared = set.intersection(*sides) if sides else set()
    return ENGLISH if ENGLISH in shared or not shared else min(shared)


def _place(name: str, languages: list[str], pivot: str) -> tuple[int, str, bool]:
    """Return the sort key of a direction: the language other than the pivot, domain, source."""
    source, target, domain = _parts(name)
    return languages.index(target if source == pivot else source), domain, source != pivot


def _about(systems: Sequence[Scores], title: str) -> list[str]:
    counts = {len(values) for system in systems for values in system.seeds.values()}
    seeds = ""
    if max(counts, default=0) > 1:
        seeds = f", mean of {engine.span(counts)} seeds{engine.SPREAD}"
    ranked = any(PRECISION in system.measures for system in systems)
    precision = "; AP: average precision of the cosine" if ranked else ""
    labels = labels_of(systems)
    source = _source(labels)
    name = "English" if source == ENGLISH else source
    own = f"{source}-{source}" in labels and not ranked
    ways = f", learnt in {name}; Avg. without {name}" if own else ""
    part = f", {systems[0].file.protocol['part']}" if systems[0].file.protocol.get("part") else ""
    data = f"Data {systems[0].version}{part}: accuracy in percent{seeds}{precision}."
    return [f"{title}{ways}. {data} {BEST}"]
