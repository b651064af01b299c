"""Laws of the monolingual experiment and its twin: each system of the paper's tables and figures is
there, starts from the one that it should, and stands beside the printed numbers."""

import pytest
from conftest import ROOT, copy_project, planned
from made.experiments import shipped
from made.papers import read
from made.scores import write_accuracies
from made.tables import csv_rows

from ems.base.schema import plain
from ems.config.load import load_yaml
from ems.tables.registry import input_files, outputs_of

FULL, TWIN, DEMO = "monolingual", "monolingual-small", "demo-full"
ALL = (FULL, TWIN, DEMO)
LANGUAGES = ["en", "zh", "fr", "es", "de"]  # 4.1
STUDIES = load_yaml(ROOT / "configs" / f"{TWIN}.yaml")["tables"]["studies"]
FIGURES = ("monolingual_corpora", "monolingual_iterations")


def chain(experiment, name):
    """The systems that one's training goes back to, itself first."""
    names = [name]
    while start := experiment.systems[names[-1]].train.start_from:
        names.append(start)
    return names


def row(name, study, label):
    """The system of a row of a study."""
    return shipped(name).tables.studies[study].rows[label]


# --- the settings


@pytest.mark.parametrize("name", ALL)
def test_stage_1_learns_contexts_alone_and_stage_2_coherence_alone(name):
    systems = shipped(name).systems
    assert systems["context"].objectives.active == ["context"]
    assert systems["context"].train.start_from is None
    for at in range(1, 6):
        assert systems[f"coherence-{at}"].objectives.active == ["coherence"]
    assert chain(shipped(name), "coherence-5") == [
        *(f"coherence-{at}" for at in (5, 4, 3, 2, 1)),
        "context",
    ]


@pytest.mark.parametrize("name", ALL)
def test_the_encoder_pools_mean_and_max_and_chinese_is_characters(name):
    experiment = shipped(name)
    system = experiment.systems["context"]
    assert list(system.languages) == LANGUAGES
    assert system.model.pooling == "mean-max"
    for system in (experiment.systems[each] for each in ("context", "context-w-w")):
        assert experiment.vocabularies[system.vocabulary].settings.characters == ["zh"]
    for each in ("context-mean", row(name, "monolingual_pooling", "mean")):
        assert experiment.systems[each].model.pooling == "mean"


@pytest.mark.parametrize("name", ALL)
def test_minus_and_plus_iteration_are_before_and_after_three(name):
    for study in ("monolingual_xnli", "monolingual_rcv2", "monolingual_tatoeba"):
        assert row(name, study, "-iteration") == "context"
        assert row(name, study, "+iteration") == "coherence-3"
    rows = shipped(name).tables.studies["monolingual_iterations"].rows
    lengths = {label: len(chain(shipped(name), system)) - 1 for label, system in rows.items()}
    assert lengths == {str(at): at for at in range(6)}  # Figure 3


@pytest.mark.parametrize("name", [FULL, TWIN])
def test_the_samples_differ_in_m_alone_and_are_the_papers(name):
    experiment = shipped(name)
    rows = experiment.tables.studies["monolingual_samples"].rows
    assert list(rows) == [each["m"] for each in read("monolingual-table03-samples")][:5]
    settings = {}
    for label, system in rows.items():
        assert len(chain(experiment, system)) == 4  # three iterations
        for own in chain(experiment, system)[:-1]:
            parts = plain(experiment.systems[own].objectives)
            assert parts["coherence"]["mining"].pop("sample") == int(label)
            settings[own] = parts
    assert all(parts == settings["coherence-3"] for parts in settings.values())


@pytest.mark.parametrize("name", [TWIN, DEMO])
def test_disjoint_corpora_are_of_other_files_or_parts_in_english_alone_or_in_all(name):
    experiment = shipped(name)

    def of(vocabulary):
        pairs = experiment.pairs_of("train", vocabulary)
        return {
            language: {c.label for c, pair in pairs if pair == language} for _, language in pairs
        }

    same, disjoint = of("w-w"), of("b-w")
    assert same["en"] == same["zh"]
    assert all(len(labels) == 1 for labels in [*same.values(), *disjoint.values()])
    assert not disjoint["en"] & (disjoint["zh"] | same["en"])
    assert not [c for c, _ in experiment.pairs_of("train") if c.vocabularies]  # of no other system


@pytest.mark.parametrize("name", [FULL, TWIN])
def test_translations_are_hidden_that_are_neither_trained_on_nor_of_a_benchmark(name):
    experiment = shipped(name)
    pairs = [corpus for corpus in experiment.validation if not corpus.documents]
    assert [corpus.pairs for corpus in pairs] == [("en-zh", "en-fr", "en-es", "de-en")]
    assert not {corpus.label for corpus in pairs} & {c.label for c in experiment.corpora}
    assert {*experiment.decontaminate.against} == {*experiment.evalsets}


def test_the_twin_has_the_entries_and_the_studies_of_the_full_size():
    full, twin = (load_yaml(ROOT / "configs" / f"{name}.yaml") for name in (FULL, TWIN))
    books = {"context-b-w", "coherence-b-w"}  # closed: commented out
    assert {*twin["systems"]} - {*full["systems"]} == books
    assert list(full["tables"]["studies"]) == list(STUDIES)
    for name, study in full["tables"]["studies"].items():
        assert study | {"rows": 0} == STUDIES[name] | {"rows": 0}
        assert study["rows"].items() <= STUDIES[name]["rows"].items()


# --- the tables beside the paper's

TITLES = {"xnli": "XNLI", "rcv2": "RCV2"}


def heading(study, each):
    """The column of a printed value, as we head it."""
    if study == "monolingual_xnli":
        way = {"overall": "Avg."}.get(each["language"], f"en->{each['language']}")
        return f"XNLI {way}"
    return f"RCV2 headlines {each['direction'].replace('-', '->')}"


def write_scores(folder, system, benchmark, start):
    languages = [code for code in LANGUAGES if code != "en"]
    ways = [f"en-{code}" for code in LANGUAGES]
    if benchmark == "rcv2":
        ways = [way for code in languages for way in (f"en-{code}", f"{code}-en")]
    values = {way: [start + at] for at, way in enumerate(ways)}
    return write_accuracies(folder, benchmark, system, values)


@pytest.mark.parametrize("study", ["monolingual_xnli", "monolingual_rcv2", "monolingual_samples"])
def test_the_papers_rows_stand_below_ours_cell_by_cell(study, tmp_path):
    experiment, out = shipped(DEMO), tmp_path / "t.tex"
    benchmark = next(iter(STUDIES[study]["columns"]))
    systems = list(dict.fromkeys(experiment.tables.studies[study].rows.values()))
    paths = [write_scores(tmp_path, name, benchmark, 20 + at) for at, name in enumerate(systems)]
    outputs_of(experiment)["table"][study].make(experiment, paths, out)
    rows = csv_rows(out)
    printed = read(STUDIES[study]["printed"])
    for each in printed:
        label = each.get("method") or each["m"]
        assert rows[f"{label} (printed)"][heading(study, each)].rstrip("†") == each["value"]
    assert len(rows) == len(systems) + len({each.get("method") or each["m"] for each in printed})


def test_the_mean_of_xnli_is_without_english_as_the_paper_has_it(tmp_path):
    experiment, out = shipped(DEMO), tmp_path / "t.tex"
    paths = [write_scores(tmp_path, name, "xnli", 20.0) for name in ("context", "coherence-3")]
    outputs_of(experiment)["table"]["monolingual_xnli"].make(experiment, paths, out)
    row = csv_rows(out)["+iteration"]
    values = [float(row[f"XNLI en->{code}"]) for code in LANGUAGES if code != "en"]
    assert float(row["XNLI Avg."]) == pytest.approx(sum(values) / 4, abs=0.05)
    assert float(row["XNLI en->en"]) == 20.0 not in values


def test_the_steps_of_an_iteration_count_those_that_it_goes_on_from(tmp_path):
    experiment, out = shipped(DEMO), tmp_path / "t.tex"
    paths = [write_scores(tmp_path, name, "xnli", 20.0) for name in ("context", "coherence-3")]
    outputs_of(experiment)["table"]["monolingual_xnli"].make(experiment, paths, out)
    first, own = (experiment.systems[name].train.steps for name in ("context", "coherence-3"))
    notes = out.with_suffix(".md").read_text()
    assert f"Steps of training: {first:,}, coherence-3 {first + 3 * own:,}." in notes


@pytest.mark.parametrize("name", ALL)
def test_every_table_and_figure_of_the_paper_is_a_part_of_all(name):
    experiment = shipped(name)
    assert {*STUDIES, "mining"} <= {*input_files(outputs_of(experiment)["table"], experiment)}
    assert {*FIGURES} <= {*input_files(outputs_of(experiment)["figure"], experiment)}


# --- through the workflow


@pytest.mark.parametrize("name", [FULL, TWIN])
def test_the_whole_experiment_is_planned_without_a_network(tmp_path, name):
    project = copy_project(tmp_path)
    path = project.folder / f"configs/{TWIN}.yaml"
    text = path.read_text()
    for part, at in (
        (", path: ../shared/data/pawsx", ""),
        ("path: ../shared/data", "source: https://mirror.invalid"),
        ("../shared/data", "https://mirror.invalid"),
    ):
        text = text.replace(part, at)
    path.write_text(text)
    plan = project.snakemake("-n", "--config", f"experiment={name}", "--", "all")
    jobs = planned(plan)
    systems = [each for each in shipped(name).systems.values() if each.trained]
    assert jobs["train"] == len(systems)  # each is shown, in a study, or another starts from it
    assert jobs["mine"] == len([each for each in systems if each.train.start_from])
    for table in (*STUDIES, "mining"):
        assert f"results/tables/{table}.tex" in plan
