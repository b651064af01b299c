"""EMS v2 Table IV (languages trained on) above Table V (groups of them) in one table, and Table VI
(languages that the encoder never saw).

Groups are the languages that the printed means average (`groups.csv`), as far as we have them.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ems.benchmarks import benchmark
from ems.tables.columns import BEST, BOTH_WAYS, groups_beside, labels_of
from ems.tables.engine import Column, Declaration, Models, Printed, Row, headings
from ems.tables.printed import AVERAGE, in_paper_order, load_groups, load_models
from ems.tables.scores import Families, Scores
from ems.tables.table import PRINTED, Block

TRAINED = ("LASER", "LaBSE")  # on "several" languages of Table VI, says its caption


def _models() -> Models:
    """The printed values of Tables IV to VI, each mean under the name of its table or group."""
    return {
        name: {
            **model.values,
            **({"IV": model.seen_average, "VI": model.unseen_average} if model.seen else {}),
            **model.groups,
        }
        for name, model in load_models().items()
    }


def _columns(systems: Sequence[Scores], groups: bool) -> list[Column]:
    """A column for each language, their mean, and those of the groups of Table V."""
    languages = in_paper_order(labels_of(systems))
    ems = load_models()["EMS"]
    tables = {"IV": set(ems.seen), "VI": set(ems.unseen)}
    whole = next((name for name, codes in tables.items() if codes == set(languages)), "")
    columns = [Column(code, [code], code) for code in languages]
    columns.append(Column(AVERAGE, languages, whole, part=not whole))
    for group in load_groups() if groups else ():
        members = [code for code in group.languages if code in languages]
        part = len(members) < len(group.languages)
        heading = f"{group.name} {len(members)}/{len(group.languages)}" if part else group.heading
        columns.append(Column(heading, members, group.heading, part))
    return columns


def _blocks(columns: list[Column]) -> list[Block]:
    return groups_beside(columns, headings(columns).index(AVERAGE) + 1)


def _notes(columns: list[Column], beside: list[Row]) -> list[str]:
    """What is not certain, or not printed, of the printed rows, and who was trained on what."""
    languages = [column.heading for column in columns if column.members == [column.heading]]
    known = load_models()
    models = [known[row.label.removesuffix(PRINTED)] for row in beside]
    trained = [m.name for m in models if m.name in TRAINED and set(languages) & set(m.unseen)]
    notes = []
    if trained:
        names = ", ".join(trained)
        notes.append(f"Trained on several languages of Table VI, says the paper: {names}.")
    for model in models:
        unsettled = [code for code in languages if code in model.unsettled]
        absent = [code for code in languages if code not in model.values and model.seen]
        if unsettled:
            codes = ", ".join(unsettled)
            notes.append(f"{model.name} (printed): the paper's text has two readings for {codes}.")
        if absent:
            codes = ", ".join(absent)
            notes.append(f"{model.name} (printed): the paper prints no value for {codes}.")
    return notes


def _table(name: str, seen: bool, about: list[str]) -> Declaration:
    paper = benchmark("tatoeba").tables[name].paper
    return Declaration(
        benchmarks={"tatoeba": ""},
        metric="P@1",
        columns=partial(_columns, groups=seen),
        blocks=_blocks,
        seen=seen,
        about=lambda systems: [f"Tatoeba {systems[0].version}: {about[0]}", *about[1:]],
        printed=Printed(paper, _models, "Tatoeba v1", version="v1"),
        more_notes=_notes,
    )


TABLES = {
    "tatoeba": _table(
        "tatoeba",
        True,
        [
            f"{BOTH_WAYS}, for each language, then the mean over all languages, then over the "
            f"groups of EMS v2 Table V. {BEST}",
            "A group n/m has n of the m languages that the paper's mean is over; English is "
            "counted in the paper's numbers, but has no score of its own.",
        ],
    ),
    "tatoeba_unseen": _table(
        "tatoeba_unseen",
        False,
        [
            f"{BOTH_WAYS}, for each language that our systems were not trained on, then the mean "
            f"over all of these languages. {BEST}"
        ],
    ),
}


def _plot(scores: list[Path], out: Path, families: Families) -> None:
    """Draw the figure; who only makes a table need not wait for matplotlib."""
    from ems.tables.figures import plot_tatoeba

    plot_tatoeba(scores, out, families)


FIGURES = {"tatoeba": _plot}
