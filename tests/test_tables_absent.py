"""The law of a score file that is not there: its cells, and no others, are dashes, and a note
names it. Each table is made through the registry, as `ems table` does it."""

import csv
from dataclasses import dataclass, field

import pytest
from scores_made import (
    EUROPARL,
    both_measures,
    fives,
    write_accuracies,
    write_bucc,
    write_cosine,
    write_flores,
    write_retrieval,
    write_scores,
)

from ems.tables.printed import load_flores_groups
from ems.tables.registry import Request, tables

MUSE, LOW = load_flores_groups().values()
ISO = {"deu": "de", "fra": "fr"}
NAMES = ["a", "b", "c"]
WAYS = {"de": (10.0, 20.0), "fr": (30.0, 40.0)}


@dataclass
class Made:
    """What the registry asks of an experiment."""

    shown: list[str] = field(default_factory=lambda: list(NAMES))
    families: dict = field(default_factory=dict)
    tables: dict = field(default_factory=lambda: {"printed": ["EMS"]})
    evalsets: tuple = ("tatoeba",)
    systems: dict = field(default_factory=lambda: {key: {"train": {"steps": 5}} for key in NAMES})

    @property
    def ablated(self):
        return self.shown

    def learning(self, names):
        return names

    def scores_unseen(self, evalset, system):
        return True


def unseen(folder, name):
    return [write_scores(folder, name, {"isl": 5.0, "deu": 6.0}, {"isl": "und"})]


def accuracy(benchmark, **more):
    def made(folder, name):
        values = fives(["en-en", "en-de", "en-fr"])
        return [write_accuracies(folder, benchmark, name, values, **more)]

    return made


FILES = {  # table -> the score files of a system
    "tatoeba": lambda folder, name: [write_scores(folder, name, {"deu": 5.0, "fra": 6.0}, ISO)],
    "tatoeba_unseen": unseen,
    "ntrex": lambda folder, name: [
        write_scores(folder, name, {"de": 5.0, "fr": 6.0}, benchmark="ntrex")
    ],
    "flores": lambda folder, name: [write_flores(folder, name, [*MUSE, *LOW])],
    "xsim": lambda folder, name: both_measures(folder, name, 1.5, 40),
    "wordorder": lambda folder, name: [write_cosine(folder, name, 0.5)],
    "bucc2018": lambda folder, name: [write_bucc(folder, name, {"de": 5.0, "zh": 6.0})],
    "paracrawl": lambda folder, name: [write_retrieval(folder, name, "paracrawl", WAYS)],
    "europarlxsr": lambda folder, name: [
        write_retrieval(folder, name, "europarlxsr", WAYS, EUROPARL)
    ],
    **{name: accuracy(name) for name in ("mldoc", "cls", "marc", "rcv2", "xnli", "sib200")},
    "counterfactual": accuracy("counterfactual"),
    "pawsx": accuracy("pawsx"),
    "ablation": lambda folder, name: [
        write_scores(folder, name, {"deu": 5.0, "fra": 6.0}, ISO),
        write_flores(folder, name, [*MUSE, *LOW]),
        write_accuracies(folder, "mldoc", name, fives(["en-de", "de-en"])),
    ],
}
FAMILY = {"one": ["a-de", "a-fr"], "two": ["b-de", "b-fr"]}


def of_pair(folder, name):
    code = name[-2:]
    return [write_accuracies(folder, "mldoc", name, fives([f"en-{code}", f"{code}-en"]))]


def table(name, experiment, sources, out):
    tables()[name].make(Request(experiment, sources, out))
    with open(out.with_suffix(".csv"), encoding="utf-8", newline="") as handle:
        heads, *rows = csv.reader(handle)
    cells = {(row[0], head): cell for row in rows for head, cell in zip(heads, row, strict=True)}
    return cells, out.read_text(encoding="utf-8")


def test_each_table_of_score_files_is_tried_here():
    others = {"bucc_missed"}  # of the first system alone
    others |= {"corpora", "decontamination", "filters", "vocabulary", "models", "sweep"}
    assert set(tables()) == {*FILES, "mldoc_bilingual"} | others


@pytest.mark.parametrize("name", list(FILES))
def test_without_one_score_file_exactly_its_cells_are_dashes_and_a_note_names_it(name, tmp_path):
    scores = {system: FILES[name](tmp_path, system) for system in NAMES}
    every = [path for paths in scores.values() for path in paths]
    whole, told = table(name, Made(), every, tmp_path / "t.tex")
    assert "no score file" not in told
    for absent in [every[0], *scores["b"]]:
        left = [path for path in every if path != absent]
        found, told = table(name, Made(), left, tmp_path / "t.tex")
        system = absent.parent.name
        changed = {place for place in whole if found[place] != whole[place]}
        own = {(row, head) for row, head in whole if is_of(name, row, head, absent)}
        assert list(found) == list(whole)
        assert changed
        assert changed == {place for place in own if whole[place]}
        assert {found[place] for place in changed} == {""}
        assert f"no score file {system}/{absent.name}." in told


def is_of(table, row, head, path):
    """Whether a cell shows what is in a score file."""
    label, _, system = row.rpartition(": ")
    if head == "Model" or system.partition(",")[0] != path.parent.name:
        return False
    if table == "xsim":
        return label.replace("++", "pp") == path.stem
    if table == "ablation":
        return head.split()[0].lower() == path.stem.removesuffix("200")
    return True


def test_of_several_systems_in_a_row_only_the_cells_of_the_absent_one_are_dashes(tmp_path):
    members = [name for of in FAMILY.values() for name in of]
    experiment = Made(shown=[*members, "c"], families=FAMILY)
    other = write_accuracies(tmp_path, "mldoc", "c", fives(["en-de", "de-en"]))
    paths = [path for name in members for path in of_pair(tmp_path, name)]
    whole, told = table("mldoc_bilingual", experiment, [other, *paths], tmp_path / "t.tex")
    assert not any(row == "c" for row, _ in whole)  # which is no model of one pair
    found, told = table("mldoc_bilingual", experiment, paths[1:], tmp_path / "t.tex")
    changed = {place for place in whole if found[place] != whole[place]}
    heads = ("en-de", "de-en", "Avg.")
    assert changed == {(row, head) for row in ("one", "one, s.d.") for head in heads}
    assert {found[place] for place in changed} == {""}
    assert "no score file a-de/mldoc.json." in told
