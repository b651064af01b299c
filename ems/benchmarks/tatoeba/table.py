"""EMS v2 Table IV (languages trained on) above Table V (groups of them) in one table, and Table VI
(languages that the encoder never saw).

Groups are the languages that the printed means average (`groups.csv`), as far as we have them.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ems.benchmarks import benchmark
from ems.tables.ablation import Part
from ems.tables.columns import BEST, BOTH_WAYS, groups_beside, labels_of
from ems.tables.engine import Column, Declaration, Models, Printed, Row, headings
from ems.tables.printed import AVERAGE, in_paper_order, load_groups, load_models
from ems.tables.scores import Families, Scores, read_scores
from ems.tables.table import PRINTED

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


def _notes(columns: list[Column], beside: list[Row]) -> list[str]:
    """What is not certain, or not printed, of the printed rows, and who was trained on what."""
    languages = [column.heading for column in columns if column.members == [column.heading]]
    models = [load_models()[row.label.removesuffix(PRINTED)] for row in beside]
    trained = [m.name for m in models if m.name in TRAINED and set(languages) & set(m.unseen)]
    names = ", ".join(trained)
    notes = (
        [f"Trained on several languages of Table VI, says the paper: {names}."] if trained else []
    )
    for model in models:
        unsettled = ", ".join(code for code in languages if code in model.unsettled)
        absent = ", ".join(c for c in languages if c not in model.values and model.seen)
        if unsettled:
            notes.append(
                f"{model.name} (printed): the paper's text has two readings for {unsettled}."
            )
        if absent:
            notes.append(f"{model.name} (printed): the paper prints no value for {absent}.")
    return notes


def _table(name: str, seen: bool, about: str, *more: str) -> Declaration:
    return Declaration(
        benchmarks={"tatoeba": ""},
        metric="P@1",
        columns=partial(_columns, groups=seen),
        blocks=lambda columns: groups_beside(columns, headings(columns).index(AVERAGE) + 1),
        seen=seen,
        about=lambda systems: [f"Tatoeba {systems[0].version}: {BOTH_WAYS}, {about} {BEST}", *more],
        printed=Printed(
            benchmark("tatoeba").tables[name].paper, _models, "Tatoeba v1", version="v1"
        ),
        more_notes=_notes,
    )


TABLES = {
    "tatoeba": _table(
        "tatoeba",
        True,
        "for each language, then the mean over all languages, then over the groups of EMS v2 "
        "Table V.",
        "A group n/m has n of the m languages that the paper's mean is over; English is counted in "
        "the paper's numbers, but has no score of its own.",
    ),
    "tatoeba_unseen": _table(
        "tatoeba_unseen",
        False,
        "for each language that our systems were not trained on, then the mean over all of these "
        "languages.",
    ),
}
ABLATION = Part(
    "Tatoeba",
    "P@1 of both directions",
    TABLES["tatoeba"],
    lambda: {
        "Tatoeba Avg. (58)": list(load_models()["EMS"].seen),
        **{f"Tatoeba {group.heading}": group.languages for group in load_groups("XIV")},
    },
)


def plot_tatoeba(scores: list[Path], out: Path, families: Families | None = None) -> None:
    """Draw P@1 (percent) of each system in each language trained on, in the paper's order, beside
    `out`; `families` are systems that share their bars. Raises `EmsError` as the table does.
    """
    from ems.tables.bars import plot_bars  # a table need not wait for matplotlib

    systems = read_scores(scores, "tatoeba", "P@1", families=families, seen=True)
    plot_bars(systems, in_paper_order(labels_of(systems)), benchmark("tatoeba"), out)


FIGURES = {"tatoeba": plot_tatoeba}
