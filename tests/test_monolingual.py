"""Laws of the monolingual experiment: its settings and tables are the paper's, and it is planned.

tests/golden/monolingual.md has every system, study row and corpus of the three experiments; it is
read next to the paper: stage 1 learns `context` alone and stage 2 `coherence` alone, three times
(+iteration), one to five times for Figure 3, with each m of Table 3.
"""

import pytest
from conftest import ROOT, copy_project, planned
from made import golden
from made.experiments import shipped
from made.scores import write_accuracies
from made.tables import read

from ems.base.schema import plain
from ems.config.load import load_yaml
from ems.tables.registry import input_files, outputs_of

FULL, TWIN, DEMO = "monolingual", "monolingual-small", "demo-full"
ALL = (FULL, TWIN, DEMO)
LANGUAGES = ["en", "zh", "fr", "es", "de"]  # 4.1
STUDIES = load_yaml(ROOT / "configs" / f"{TWIN}.yaml")["tables"]["studies"]


def described(name):
    """The systems that learn from documents, the rows of studies, and the corpora."""
    experiment = shipped(name)
    lines = [f"# {name}", ""]
    for label, system in experiment.systems.items():
        active = [name for name in system.objectives.active if name in ("context", "coherence")]
        if active and system.trained:
            words = [*active, f"from {system.train.start_from}", f"pooling {system.model.pooling}"]
            characters = experiment.vocabularies[system.vocabulary].settings.characters
            words += [f"vocabulary {system.vocabulary}, characters of {' '.join(characters)}"]
            mining = system.objectives.coherence.mining
            words += [f"m {mining.sample:,}"] if "coherence" in active else []
            lines.append(f"- {label}: {'; '.join(words)}; {' '.join(system.languages)}")
    for study in STUDIES:
        rows = experiment.tables.studies[study].rows.items()
        lines += ["", f"{study}:", "", *(f"- {row}: {system}" for row, system in rows)]
    for vocabulary in experiment.vocabularies:
        pairs = experiment.pairs_of("train", vocabulary)
        lines += ["", f"trained on with vocabulary {vocabulary}:", ""]
        lines += [f"- {corpus.label} {pair}" for corpus, pair in pairs if "-" not in pair]
    return "\n".join(lines) + "\n"


def test_the_settings_of_the_three_experiments_are_golden():
    golden.check("monolingual.md", "\n".join(map(described, ALL)))


@pytest.mark.parametrize("name", [FULL, TWIN])
def test_samples_differ_in_m_alone_and_hidden_translations_are_not_trained_on(name):
    experiment = shipped(name)
    rows = experiment.tables.studies["monolingual_samples"].rows
    assert list(rows) == [each["m"] for each in read("monolingual-table03-samples")][:5]
    settings = []
    for label, system in rows.items():
        settings.append(plain(experiment.systems[system].objectives))
        assert settings[-1]["coherence"]["mining"].pop("sample") == int(label)
    assert all(parts == settings[0] for parts in settings)
    pairs = [corpus for corpus in experiment.validation if not corpus.documents]
    assert [corpus.pairs for corpus in pairs] == [("en-zh", "en-fr", "en-es", "de-en")]
    assert not {corpus.label for corpus in pairs} & {c.label for c in experiment.corpora}
    assert {*experiment.decontaminate.against} == {*experiment.evalsets}


def test_the_small_twin_has_the_systems_and_studies_of_the_full_size():
    full, twin = (load_yaml(ROOT / "configs" / f"{name}.yaml") for name in (FULL, TWIN))
    books = {"context-b-w", "coherence-b-w"}  # their corpus is closed: commented out
    assert {*twin["systems"]} - {*full["systems"]} == books
    assert list(full["tables"]["studies"]) == list(STUDIES)
    for name, study in full["tables"]["studies"].items():
        assert study | {"rows": 0} == STUDIES[name] | {"rows": 0}
        assert study["rows"].items() <= STUDIES[name]["rows"].items()


def write_scores(folder, system, benchmark, start):
    ways = [f"en-{code}" for code in LANGUAGES]
    if benchmark == "rcv2":
        ways = [way for code in LANGUAGES[1:] for way in (f"en-{code}", f"{code}-en")]
    values = {way: [start + at] for at, way in enumerate(ways)}
    return write_accuracies(folder, benchmark, system, values)


@pytest.mark.parametrize("study", ["monolingual_xnli", "monolingual_rcv2", "monolingual_samples"])
def test_the_tables_with_the_rows_of_the_paper_are_golden(study, tmp_path):
    """XNLI's average is without English; steps of an iteration include the earlier ones."""
    experiment, benchmark = shipped(DEMO), next(iter(STUDIES[study]["columns"]))
    systems = list(dict.fromkeys(experiment.tables.studies[study].rows.values()))
    paths = [write_scores(tmp_path, name, benchmark, 20 + at) for at, name in enumerate(systems)]
    outputs_of(experiment)["table"][study].make(experiment, paths, tmp_path / "t.tex")
    golden.check_table(study, tmp_path / "t.tex")


@pytest.mark.parametrize("name", ALL)
def test_every_table_and_figure_of_the_paper_is_a_part_of_all(name):
    experiment = shipped(name)
    assert {*STUDIES, "mining"} <= {*input_files(outputs_of(experiment)["table"], experiment)}
    figures = {*input_files(outputs_of(experiment)["figure"], experiment)}
    assert figures >= {"monolingual_corpora", "monolingual_iterations"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [FULL, TWIN])
def test_the_whole_experiment_is_planned_without_a_network(tmp_path, name):
    project = copy_project(tmp_path)
    path = project.folder / f"configs/{TWIN}.yaml"
    text = path.read_text().replace(", path: ../shared/data/pawsx", "")
    text = text.replace("path: ../shared/data", "source: https://mirror.invalid")
    path.write_text(text.replace("../shared/data", "https://mirror.invalid"))
    plan = project.snakemake("-n", "--config", f"experiment={name}", "--", "all")
    jobs = planned(plan)
    systems = [each for each in shipped(name).systems.values() if each.trained]
    assert jobs["train"] == len(systems)  # each is in a table, or another starts from it
    assert jobs["mine"] == len([each for each in systems if each.train.start_from])
