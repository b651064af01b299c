"""EMS v2 Table IV (trained languages) above Table V (groups of them), and Table VI (unseen
languages).
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ems.config.plugins import benchmark
from ems.tables.declarations import words_of
from ems.tables.engine import (
    BEST,
    BOTH_WAYS,
    Column,
    Declaration,
    Models,
    PrintedRows,
    headings,
    labels_of,
    part_of,
)
from ems.tables.printed import AVERAGE, in_paper_order, load_groups, load_models
from ems.tables.scores import Families, Scores, read_scores
from ems.tables.study import AblationColumns
from ems.tables.table import Block, balanced_blocks

TRAINED = ("LASER", "LaBSE")  # on "several" languages of Table VI, by its caption


def _models() -> Models:
    """Return the printed values of Tables IV to VI; means have the name of their table or group."""
    return {
        name: {
            **model.seen,
            **model.unseen,
            **({"IV": model.seen_average, "VI": model.unseen_average} if model.seen else {}),
            **model.groups,
        }
        for name, model in load_models().items()
    }


def _columns(systems: Sequence[Scores], groups: bool) -> list[Column]:
    languages = in_paper_order(labels_of(systems))
    ems = load_models()["EMS"]
    tables = {"IV": set(ems.seen), "VI": set(ems.unseen)}
    whole = next((name for name, codes in tables.items() if codes == set(languages)), "")
    columns = [Column(code, [code], code) for code in languages]
    columns.append(Column(AVERAGE, languages, whole, part=not whole))
    for heading, codes in load_groups().items() if groups else ():
        columns.append(part_of(heading, codes, languages))
    return columns


def _blocks(columns: list[Column]) -> list[Block]:
    names = headings(columns)
    first = names.index(AVERAGE) + 1
    wide = [Block(names[first:], spread=True)] if names[first:] else []
    return [*balanced_blocks(names[:first]), *wide]


def _notes(columns: list[Column], printed: list[str]) -> list[str]:
    """Return notes on printed rows: uncertain or absent values, and models trained on Table VI."""
    languages = [column.heading for column in columns if column.members == [column.heading]]
    models = [load_models()[name] for name in printed]
    trained = [m.name for m in models if m.name in TRAINED and set(languages) & set(m.unseen)]
    notes = []
    if trained:
        names = ", ".join(trained)
        notes.append(f"According to the paper, trained on several languages of Table VI: {names}.")
    for model in models:
        paper = f"{model.name} (printed): the paper"
        unsettled = [code for code in languages if code in model.unsettled]
        absent = [c for c in languages if model.seen and c not in model.seen | model.unseen]
        if unsettled:
            notes.append(f"{paper}'s text gives two values for {', '.join(unsettled)}.")
        if absent:
            notes.append(f"{paper} prints no value for {', '.join(absent)}.")
    return notes


def _table(name: str, seen: bool, about: str, *more: str) -> Declaration:
    return Declaration(
        benchmarks={"tatoeba": ""},
        metric="P@1",
        columns=partial(_columns, groups=seen),
        blocks=_blocks,
        seen=seen,
        about=lambda systems: [f"Tatoeba {systems[0].version}: {BOTH_WAYS}, {about} {BEST}", *more],
        printed=PrintedRows(
            words_of("tatoeba")["table"][name].paper, _models, "Tatoeba v1", version="v1"
        ),
        more_notes=_notes,
    )


TABLES = {
    "tatoeba": _table(
        "tatoeba",
        True,
        "for each language, then the mean over all languages, then over the groups of EMS v2 "
        "Table V.",
        "A group n/m has n of the m languages of the paper's mean; the paper's numbers count "
        "English, which has no score of its own.",
    ),
    "tatoeba_unseen": _table(
        "tatoeba_unseen",
        False,
        "for each language that our systems were not trained on, then the mean over these "
        "languages.",
    ),
}
ABLATION = AblationColumns(
    "Tatoeba",
    "P@1 of both directions",
    TABLES["tatoeba"],
    lambda: {
        "Tatoeba Avg. (58)": list(load_models()["EMS"].seen),
        **{f"Tatoeba {heading}": codes for heading, codes in load_groups("XIV").items()},
    },
)


def plot_tatoeba(scores: list[Path], out: Path, families: Families | None = None) -> None:
    """Draw P@1 (percent) of each trained language and system; `families` count as one system.

    Raises `EmsError` for score files that may not share a table.
    """
    from ems.tables.figures import plot_strip  # here: matplotlib is slow to import

    systems = read_scores(scores, "tatoeba", "P@1", families=families, seen=True)
    values = {s.system: {s.languages[k]: v for k, v in s.values.items()} for s in systems}
    title = f"{benchmark('tatoeba').title} {systems[0].version}: P@1, mean of both directions"
    plot_strip(values, title, out)


FIGURES = {"tatoeba": plot_tatoeba}
