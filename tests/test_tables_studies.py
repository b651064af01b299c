"""Studies: a cell has the score of the system that its row names, below stand the paper's rows.

The settings and the CSVs of the papers are read here without ems.
"""

import zlib
from dataclasses import replace
from functools import partial

import pytest
from conftest import ROOT
from made import golden
from made.experiments import MINIMAL, REAL, Settings, changed_jobs, edited, shipped
from made.scores import EUROPARL, write_accuracies, write_retrieval, write_scores
from made.tables import (
    csv_rows,
    read,
    texts,
    times_file,
    values_of,
    write_cost,
    write_model,
    write_report,
)

from ems.base.errors import EmsError
from ems.config.load import load_yaml
from ems.tables.registry import captions, input_files, outputs_of, times_of

FULL, TWIN = "lightweight", "lightweight-small"
TITLES = {"mldoc": "MLDoc", "europarlxsr": "Europarl", "sib200": "SIB-200", "tatoeba": "Tatoeba"}
TATOEBA = {"fr": "fra", "es": "spa", "de": "deu", "it": "ita"}
STUDIES = load_yaml(ROOT / "configs" / f"{TWIN}.yaml")["tables"]["studies"]
SCORED = [name for name, study in STUDIES.items() if "columns" in study]
PRINTED = [name for name in STUDIES if name != "lightweight_dimension"]  # a figure of the paper
FREQUENT = "most frequent class"


@pytest.fixture
def project(tmp_path):
    return Settings(tmp_path, REAL)


def value_of(system, benchmark, direction):
    """Return a percentage with one decimal that differs by its arguments."""
    return zlib.crc32(f"{system} {benchmark} {direction}".encode()) % 1001 / 10


def write_benchmark(folder, system, benchmark, code):
    there, back = (value_of(system, benchmark, way) for way in (f"{code}-en", f"en-{code}"))
    if benchmark == "tatoeba":
        return write_scores(folder, system, {TATOEBA[code]: (there, back)}, {TATOEBA[code]: code})
    if benchmark == "europarlxsr":
        return write_retrieval(folder, system, benchmark, {code: (there, back)}, EUROPARL)
    values = {f"{code}-en": [there], f"en-{code}": [back]}
    frequent = {FREQUENT: dict.fromkeys(values, 25)}
    return write_accuracies(folder, benchmark, system, values, frequent)


def sources_of(experiment, name, folder, kind="table"):
    made = []
    for file in dict.fromkeys(input_files(outputs_of(experiment)[kind], experiment)[name]):
        *_, system, last = file.split("/")
        code = system.rpartition("-")[2]
        if last == "model.json":
            made.append(write_model(folder, system, ["en", code]))
        elif last == "decontamination.json":
            pairs = ("en-fr", "de-en", "en-es", "en-it")
            entries = [("A", "train", pair, 100 + at, {}, {}) for at, pair in enumerate(pairs)]
            made.append(write_report(folder / last, entries))
        else:
            made.append(write_benchmark(folder, system, last.removesuffix(".json"), code))
    return made


def write(experiment, name, folder, sources=None):
    """Write a study as a table; return its rows by label, and its .md."""
    out = folder / f"{name}.tex"
    sources = sources_of(experiment, name, folder) if sources is None else sources
    outputs_of(experiment)["table"][name].make(experiment, sources, out)
    return csv_rows(out), out.with_suffix(".md").read_text(encoding="utf-8")


def ours(rows):
    return {label: row for label, row in rows.items() if not label.endswith(" (printed)")}


def expected(study, scored):
    """Return label -> heading -> value, from the settings alone."""
    found = {}
    for label, row in study["rows"].items():
        for benchmark, directions in study["columns"].items():
            name = row if isinstance(row, str) else row[benchmark]
            for way in directions:
                code = way.replace("en", "").strip("-")
                heading = f"{TITLES[scored[benchmark]]} {way.replace('-', '->')}"
                value = value_of(f"{name}-{code}", scored[benchmark], way)
                found.setdefault(label, {})[heading] = f"{value:.1f}"
                frequent = "" if scored[benchmark] in ("tatoeba", "europarlxsr") else "25.0"
                found.setdefault(FREQUENT, {})[heading] = frequent
    return found


STAND_INS = {"mldoc": "sib200", "europarlxsr": "tatoeba"}


@pytest.mark.parametrize("name", SCORED)
def test_each_cell_is_the_score_of_the_system_of_its_row_and_benchmark(name, tmp_path):
    rows, notes = write(shipped(TWIN), name, tmp_path)
    assert values_of(ours(rows)) == expected(STUDIES[name], STAND_INS)
    assert next(iter(rows.values())).keys() >= {STUDIES[name]["heading"]}
    assert "SIB-200 for MLDoc, Tatoeba for Europarl" in notes
    mixed = [row for row in STUDIES[name]["rows"].values() if not isinstance(row, str)]
    assert ("Rows of several systems" in notes) == bool(mixed)
    for row in mixed:
        assert f"SIB-200 of {row['mldoc']}, Tatoeba of {row['europarlxsr']}" in notes


# --- the papers' rows

FACTS = {name: name for name in ("d_h", "d_fc", "attn_h")}
FACTS |= {"Enc.": "enc_layers", "Dec.": "dec_layers"}
FACTS |= {"Params.": "params", "Architecture": "architecture"}


def printed(name):
    """Return label -> heading of the paper -> cell, from the CSV of a study."""
    found = {}
    for row in read(STUDIES[name]["printed"]):
        label = next(iter(row.values()))
        if name == "lightweight_models":
            label = {"Ours": "Lightweight"}.get(label, label.split(" (")[0])
            found[label] = {heading: row[key] for heading, key in FACTS.items()}
        elif name == "lightweight_data":
            found.setdefault(row["pair"], {})[row["set"]] = row["printed"]
        else:
            found.setdefault(label, {})[row["column"]] = row["value"]
    return found


COSTS = {"M (memory MB)", "T (min per 10,000 steps)"}
IN_THEIR_WORDS = {"SIB-200": "MLDoc", "Tatoeba": "XSR", "Europarl": "XSR"}


def in_their_words(heading):
    for title, theirs in IN_THEIR_WORDS.items():
        heading = heading.replace(title, theirs)
    return heading


@pytest.mark.parametrize("name", PRINTED)
@pytest.mark.parametrize("experiment", [FULL, TWIN])
def test_the_papers_rows_stand_below_ours(name, experiment, tmp_path):
    rows, _ = write(shipped(experiment), name, tmp_path)
    theirs, whole = values_of(rows, " (printed)"), printed(name)
    assert list(theirs) == list(whole)
    for label, row in theirs.items():
        expected = {key: cell for key, cell in whole[label].items() if key not in COSTS}
        assert {in_their_words(heading): cell for heading, cell in row.items()} == expected
    assert list(rows)[: len(ours(rows))] == list(ours(rows))


# --- golden tables


def with_costs(experiment, name, folder):
    """Write a study with columns of costs; one system has times, but no costs."""
    files = input_files(outputs_of(experiment)["timed"], experiment)[name]
    systems = [path.split("/")[-1].split(".")[0] for path in times_of(experiment, files)]
    times = {system: times_file(folder, system, 500, 60.0 + len(system)) for system in systems}
    for system in systems[1:]:
        write_cost(folder, system, "train", 1.0, 1.0, 400.4 + len(system))
    sources = sources_of(experiment, name, folder, "timed")
    outputs_of(experiment)["timed"][name].make(experiment, sources, folder / f"{name}.tex", times)


def without_files(experiment, name, folder):
    sources = sources_of(experiment, name, folder)
    benchmarks = {path.name: path for path in sources}
    write(experiment, name, folder, [p for p in sources if p not in benchmarks.values()])


def with_other_sentences(experiment, name, folder):
    sources = sources_of(experiment, name, folder)
    for path in sources:
        code = path.parent.name.rpartition("-")[2]
        protocol = EUROPARL | {"queries": 1000}
        write_retrieval(folder, path.parent.name, "europarlxsr", {code: (1.0, 2.0)}, protocol)
    write(experiment, name, folder, sources)


def with_mldoc(experiment, name, folder):
    """Write a study whose benchmarks are all the paper's, so that no printed value has a dagger."""
    write(replace(experiment, benchmarks=(*experiment.benchmarks, "mldoc")), name, folder)


GOLDEN = {  # golden file -> experiment, study, what writes it
    "study_layers_costs": (TWIN, "lightweight_layers", with_costs),
    "study_models_costs": (TWIN, "lightweight_models", with_costs),
    "study_data": (FULL, "lightweight_data", write),
    "study_generative_missing": (TWIN, "lightweight_generative", without_files),
    "study_batch_without": (TWIN, "lightweight_batch", partial(write, sources=[])),
    "study_layers": (FULL, "lightweight_layers", with_mldoc),
    "study_contrastive": (FULL, "lightweight_contrastive", write),  # Europarl, but no MLDoc
    "study_contrastive_other": (FULL, "lightweight_contrastive", with_other_sentences),
}


@pytest.mark.parametrize("file", GOLDEN)
def test_studies_are_the_golden_ones(file, tmp_path):
    experiment, name, make = GOLDEN[file]
    make(shipped(experiment), name, tmp_path)
    golden.check(f"tables/{file}.md", (tmp_path / f"{name}.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", [FULL, TWIN])
def test_a_study_needs_the_systems_of_its_directions_and_no_other(name):
    experiment = shipped(name)
    for study, files in input_files(outputs_of(experiment)["table"], experiment).items():
        if study not in STUDIES or "columns" not in STUDIES[study]:
            continue
        codes = {file.split("/")[3].rpartition("-")[2] for file in files if "/scores/" in file}
        ways = {way for of in STUDIES[study]["columns"].values() for way in of}
        assert codes == {way.replace("en", "").strip("-") for way in ways}
    (kept,) = captions(experiment, ["lightweight_batch"])
    assert kept.endswith("As Lightweight, Table 8.")


def test_the_figure_of_a_study_has_a_line_for_each_column(tmp_path):
    experiment, name = shipped(TWIN), "lightweight_dimension"
    out = tmp_path / "d.svg"
    sources = sources_of(experiment, name, tmp_path, "figure")
    outputs_of(experiment)["figure"][name].make(experiment, sources, out)
    golden.check("figures/study.txt", "\n".join(texts(out)) + "\n")
    first = out.read_bytes()
    outputs_of(experiment)["figure"][name].make(experiment, sources[1:], out)  # a gap
    assert out.read_bytes() != first


# --- a study of the user's own

OWN = {
    "caption": "Two sizes.",
    "rows": {"one": "a", "two": {"tatoeba": "b"}},
    "columns": {"tatoeba": ["en-de", "de-en", "Avg."]},
}


def own(project, **changes):
    return project.load(edited(REAL, "tables.studies", {"sizes": OWN | changes}))


def own_scores(folder, system, start):
    values = {"deu": (start, start + 10), "jpn": (start + 1, start + 3), "isl": (99.0, 99.0)}
    return write_scores(folder, system, values, {"deu": "de", "jpn": "ja", "isl": "und"})


LACKING = {"columns": {"tatoeba": ["en-de"], "mldoc": ["en-de"]}}


@pytest.mark.parametrize(("name", "changes"), [("own", {}), ("own_lacking", LACKING)])
def test_a_study_of_the_users_own_is_the_golden_one(name, changes, project, tmp_path):
    """The best is bold, an unseen language in no mean, a benchmark without scores in a note."""
    paths = [own_scores(tmp_path, "a", 10.0), own_scores(tmp_path, "b", 12.0)]
    _, notes = write(own(project, **changes), "sizes", tmp_path, paths)
    golden.check(f"tables/study_{name}.md", notes)


def test_a_study_reads_the_scores_of_its_systems_and_is_absent_without_its_benchmarks(project):
    def files(**changes):
        experiment = own(project, **changes)
        return input_files(outputs_of(experiment)["table"], experiment).get("sizes")

    assert files() == [f"results/mine/scores/{name}/tatoeba.json" for name in "ab"]
    assert files(rows={"one": "a"}, columns={"mldoc": ["en-de"]}) is None


def test_the_hash_of_the_tables_changes_with_the_order_of_rows(project):
    turned = OWN | {"rows": dict(reversed(OWN["rows"].items()))}
    before, after = (edited(REAL, "tables.studies", {"sizes": study}) for study in (OWN, turned))
    assert changed_jobs(project, before, after) == {"tables"}


def test_a_direction_that_two_systems_of_a_row_have_is_refused(tmp_path):
    pairs = {"first": {"languages": ["en", "de"]}, "second": {"languages": ["en", "de"]}}
    value = MINIMAL | {
        "vocabularies": pairs,
        "systems": {"both": {"each": ["first", "second"]}},
        "tables": {"studies": {"sizes": OWN | {"rows": {"one": "both"}}}},
    }
    experiment = Settings(tmp_path, value).load(value)
    paths = [own_scores(tmp_path, f"both-{name}", 10.0) for name in pairs]
    with pytest.raises(EmsError, match="row one: both-first, both-second all have scores of"):
        write(experiment, "sizes", tmp_path, paths)
