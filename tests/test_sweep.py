"""Laws of a sweep: one setting at a time around one point, a system each, and their table."""

import re

import pytest
from made.experiments import MINIMAL, SHIPPED, Settings, changed, edited, shipped
from made.tables import csv_rows, tex_line, write_lines

from ems.base.errors import EmsError
from ems.base.schema import plain
from ems.config.model import EncoderSettings
from ems.config.objectives import Objectives
from ems.config.stages import stage_hash
from ems.config.sweep import written
from ems.config.train import TrainSettings
from ems.tables.models import write_sweep_table
from ems.tables.printed import read_rows

AXES = {
    "model.layers": [2, 6],
    "objectives.contrastive.temperature": [0.05, 0.1, 1.0],
    "train.weight_decay": [0, 0.00001],
}
SWEEP = {"base": "ems", "axes": AXES, "train": {"steps": 7}}
HELD_OUT = {"name": "Toy", "version": "dev", "source": "nowhere"}
BASE = changed(MINIMAL, {"sweep": SWEEP}) | {"validation": HELD_OUT}


@pytest.fixture
def project(tmp_path):
    return Settings(tmp_path, BASE)


def systems(experiment):
    """The systems that the sweep made."""
    return {point.system: experiment.systems[point.system] for point in experiment.sweep}


def differences(one, other, path=""):
    """The dotted paths at which two nested mappings differ."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return {path} if one != other else set()
    paths = set()
    for key in {*one, *other}:
        paths |= differences(one.get(key), other.get(key), f"{path}.{key}".strip("."))
    return paths


# --- points and systems


def test_a_point_differs_from_the_chosen_one_in_its_own_setting_alone(project):
    experiment = project.load()
    made = systems(experiment)
    centre = made["ems.chosen"]
    assert differences(plain(centre), plain(experiment.systems["ems"])) == {"train.steps"}
    assert centre.train.steps == 7
    for point in experiment.sweep:
        expected = set() if point.chosen else {point.axis}
        assert differences(plain(made[point.system]), plain(centre)) == expected, point
    assert made["ems.layers-2"].model.layers == 2


def test_the_chosen_point_is_one_system_though_it_lies_on_every_axis(project):
    experiment = project.load()
    assert [point.system for point in experiment.sweep if point.chosen] == ["ems.chosen"] * 3
    assert list(systems(experiment)) == [
        "ems.layers-2",
        "ems.chosen",
        "ems.contrastive.temperature-0.05",
        "ems.contrastive.temperature-1",
        "ems.weight_decay-0",
    ]
    assert experiment.shown == ["ems", "ngram"]  # nothing of a sweep is in the tables
    assert project.load(MINIMAL).sweep == ()


def test_without_changes_for_all_points_the_chosen_one_is_the_base_itself(project):
    sweep = {key: value for key, value in SWEEP.items() if key != "train"}
    experiment = project.load(edited(BASE, "sweep", sweep))
    assert {point.system for point in experiment.sweep if point.chosen} == {"ems"}
    assert experiment.shown == ["ems", "ngram"]


def test_another_axis_or_value_leaves_the_systems_that_are_there_as_they_are(project):
    def trained(value):
        experiment = project.load(value)
        return {n: stage_hash(experiment, "train", system=n) for n in systems(experiment)}

    before = trained(BASE)
    more = edited(
        BASE, "sweep.axes", {"model.dropout": [0, 0.1], **AXES, "model.layers": [1, 2, 6]}
    )
    after = trained(more)
    assert set(after) - set(before) == {"ems.dropout-0", "ems.layers-1"}
    assert {name: after[name] for name in before} == before


def test_a_value_is_written_as_one_reads_it():
    values = [0.00001, 0.0, 1.0, 20000, 3e-4, True, "cosine", [64, 32], 1e16]
    texts = "0.00001 0 1 20000 0.0003 true cosine 64-32 10000000000000000"
    assert [written(value) for value in values] == texts.split()


def test_every_system_of_every_sweep_here_is_a_good_name_of_a_folder():
    sweeps = [shipped(name).sweep for name in SHIPPED]
    for sweep in sweeps:
        assert {point.axis for point in sweep} == {point.axis for point in sweep if point.chosen}
    names = {point.system for sweep in sweeps for point in sweep}
    assert len(names) > 20
    assert all(re.fullmatch("[A-Za-z0-9][A-Za-z0-9._-]*", name) for name in names)


def test_no_two_sections_of_a_system_have_a_key_in_common():
    """So that a name without its section, `ems.layers-2`, can mean one setting only."""
    sections = (EncoderSettings, Objectives, TrainSettings)
    keys = [key for section in sections for key in section.model_fields]
    assert len(keys) > 10
    assert len(set(keys)) == len(keys)


def test_ems62_searches_what_table_ii_of_the_paper_lists_around_what_it_chose():
    sweep, values = shipped("ems62").sweep, {}
    for point in sweep:
        values.setdefault(point.axis, {})[point.value] = point.chosen
    printed = {}
    for row in read_rows("ems-v2-table02-grid"):
        printed.setdefault(row["setting"], {})[float(row["value"])] = row["chosen"] == "1"
    assert values == printed
    assert len({point.system for point in sweep}) == 20


# --- the table


def loss_log(path, total, p1, parts=("xtr", "contrastive")):
    """Two validations; only the second one counts."""
    rows = [
        {"part": part, "step": step, "pairs": step * 8, **dict.fromkeys(parts, loss / 2)}
        | {"total": loss, **({"p1": score} if part == "validation" else {})}
        for part, step, loss, score in (
            ("validation", 0, total / 100, 100.0),
            ("train", 7, 0.001, 0),
            ("validation", 7, total, p1),
        )
    ]
    return write_lines(path, rows)


@pytest.fixture
def table(project, tmp_path):
    """Writes the table of the sweep from (loss, P@1) by system; (4, 50) where none are given."""

    def write(values, axes=AXES):
        points = project.load(edited(BASE, "sweep.axes", axes)).sweep
        losses = {
            name: loss_log(tmp_path / name / "losses.jsonl", *values.get(name, (4.0, 50.0)))
            for name in {point.system for point in points}
        }
        write_sweep_table(points, losses, tmp_path / "sweep.tex")
        return tmp_path / "sweep.tex"

    return write


def test_a_row_is_the_last_validation_of_its_system(table):
    path = table({"ems.layers-2": (5.25, 41.26)})
    assert (path.with_suffix(".csv")).read_text().splitlines()[:3] == [
        "Setting,Value,Loss,XTR,contrastive,P@1",
        "layers,2,5.250,2.625,2.625,41.3",
        "layers,6,4.000,2.000,2.000,50.0",
    ]


def bold(path):
    """Per row of the .tex: its value, and which of loss and P@1 are bold."""
    lines = [line for line in path.read_text().splitlines() if line.count("&") == 5][1:]
    rows = [[cell.strip() for cell in line.removesuffix(r"\\").split("&")] for line in lines]
    return [(row[1], row[2].startswith(r"\textbf"), row[5].startswith(r"\textbf")) for row in rows]


def test_the_lowest_loss_and_the_highest_p1_of_each_setting_are_bold_ties_too(table):
    marked = bold(table({"ems.layers-2": (3.0, 49.0), "ems.weight_decay-0": (4.0004, 50.04)}))
    dagger = r"\rlap{$^{\dagger}$}"
    assert marked == [
        ("2", True, False),
        (f"6{dagger}", False, True),
        ("0.05", False, True),  # no loss along the temperature: it changes what it measures
        (f"0.1{dagger}", False, True),
        ("1", False, True),
        ("0", True, True),
        (f"0.00001{dagger}", True, True),
    ]


def test_a_setting_of_the_loss_is_compared_by_p1_alone_and_the_table_says_so(table):
    axis = "objectives.contrastive.temperature"
    values = {"ems.contrastive.temperature-1": (0.5, 10.0)}
    assert ("1", False, False) in bold(table(values, {axis: [0.1, 1]}))
    said = "changes the scale of the loss"
    assert said in table(values, {axis: [0.1, 1]}).read_text()
    assert said not in table({}, {"model.layers": [2, 6]}).read_text()


def test_the_paper_s_value_has_a_dagger_whether_or_not_it_is_the_base_s(project, table):
    project.base = edited(BASE, "model.layers", 2)
    points = project.load(edited(project.base, "sweep.axes", {"model.layers": [2, 6]})).sweep
    assert [point.chosen for point in points] == [True, False]
    text = table({}, {"model.layers": [2, 6]}).with_suffix(".md").read_text()
    assert "6†" in text
    assert "2†" not in text
    assert "chosen in EMS v2, Table II" in text


def test_a_setting_s_name_stands_once_and_a_line_precedes_the_next(table):
    text = table({}).read_text()
    assert text.count(r"\midrule") == 3
    settings = ("layers", "temperature", "weight decay")
    assert {text.count(f"{name} &") for name in settings} == {1}
    assert csv_rows(table({})).keys() == set(settings)
    assert tex_line(table({}), "temperature")[0] == "0.05"


def test_a_point_without_losses_or_without_validation_is_an_error(project, tmp_path):
    points = project.load().sweep
    with pytest.raises(EmsError, match=r"has ems\.layers-2, but its losses\.jsonl is missing"):
        write_sweep_table(points, {}, tmp_path / "t.tex")
    row = {"part": "train", "step": 1, "pairs": 8, "xtr": 1.0, "total": 1.0}
    path = write_lines(tmp_path / "losses.jsonl", [row])
    with pytest.raises(EmsError, match="no row of validation"):
        write_sweep_table(points, {point.system: path for point in points}, tmp_path / "t.tex")
    assert not list(tmp_path.glob("t.*"))
