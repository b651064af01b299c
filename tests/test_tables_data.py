"""Tables of training data, models and mined pairs: counts add up, each pair where it belongs."""

import json

import pytest
from made import golden
from made.experiments import REAL, Settings
from made.tables import demo_report, write_model, write_report

from ems.base.errors import EmsError
from ems.tables.corpora import (
    write_corpora_table,
    write_decontamination_table,
    write_filters_table,
)
from ems.tables.models import write_mining_table, write_models_table
from ems.tables.registry import input_files, outputs_of

# --- decontamination reports

BENCHMARKS = ("tatoeba", "flores200", "sib200", "ntrex")


@pytest.fixture
def report(tmp_path):
    return demo_report(tmp_path / "decontamination.json")


def edit(report, change):
    data = json.loads(report.read_text())
    change(data)
    report.write_text(json.dumps(data))


def with_documents(report, kept=2):
    counts = {"read": 9, "removed": {"evaluation": 2, "no_context": 1}, "kept": 6}
    documents = {"read": 5, "removed": {"no_context": 1, "empty": 2}, "kept": kept}
    own = {"corpus": "Own", "version": "v1", "pair": "en", "role": "train", "by_benchmark": {}}
    edit(report, lambda data: data["corpora"].append(own | counts | {"documents": documents}))
    return report


def with_parts(report):
    counts = {name: {"en": 2, "de": 1, "pairs": 3} for name in BENCHMARKS}
    entries = [
        ("TED", "train", "de-en", 500, {"evaluation": 5}, counts),
        ("NTREX+train", "train", "de-en", 300, {"evaluation": 7}, counts),
        ("NTREX+validation", "validation", "de-en", 200, {"evaluation": 4}, counts),
        ("bible", "train", "de-en", 100, {}, {}),
    ]
    return write_report(report, entries, BENCHMARKS)


def with_reasons(report):
    removed = {"evaluation": 3, "one_empty": 2, "max_ratio": 5}
    return write_report(report, [("A", "train", "de-en", 100, removed, {})] * 2)


TABLES = {  # name -> what writes the table, and what changes the report
    "corpora": (write_corpora_table, lambda report: report),
    "corpora_documents": (write_corpora_table, with_documents),
    "corpora_parts": (write_corpora_table, with_parts),
    "corpora_reasons": (write_corpora_table, with_reasons),
    "decontamination": (write_decontamination_table, lambda report: report),
    "decontamination_parts": (write_decontamination_table, with_parts),
    "filters": (write_filters_table, with_documents),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_training_data_are_the_golden_ones(name, report, tmp_path):
    write, change = TABLES[name]
    write(change(report), tmp_path / "t.tex")
    golden.check_table(name, tmp_path / "t.tex")


def test_programs_read_a_corpus_in_each_row(report, tmp_path):
    write_decontamination_table(with_parts(report), tmp_path / "t.tex")
    assert (tmp_path / "t.csv").read_text().count("NTREX+train v1") == 5


def test_counts_that_do_not_add_up_are_an_error(tmp_path, report):
    with_documents(report, kept=3)
    with pytest.raises(EmsError, match="5 read less 3 removed is not the 3 kept"):
        write_corpora_table(report, tmp_path / "t.tex")
    edit(report, lambda data: data["corpora"][0].update(kept=1))
    for write in (write_corpora_table, write_decontamination_table):
        with pytest.raises(EmsError, match=r"corpora\[0\] \(Demo v1, en-fr\)"):
            write(report, tmp_path / "t.tex")


# --- EMS v2 Table III: sizes of the weights, pairs of the system's own languages


def test_a_row_counts_weights_and_the_pairs_of_the_systems_own_languages(tmp_path, report):
    """Parameters are counted without the input embedding, and to encode without the heads."""
    models = [
        write_model(tmp_path, "all", ["en", "fr", "de"]),
        write_model(tmp_path, "french", ["en", "fr"]),
        write_model(tmp_path, "half", ["en", "de"], share=0.5),
        write_model(tmp_path, "light", ["en", "fr"], layers=0, table=8, ngrams=16),
        write_model(tmp_path, "both", ["en", "fr"], layers=1, table=8),
    ]
    with_documents(report)  # which are no pairs
    printed = ["mUSE", "LASER", "LASER2", "SBERT-distill", "LaBSE", "EMS"]
    write_models_table(models, report, printed, tmp_path / "t.tex")
    golden.check_table("models", tmp_path / "t.tex")


@pytest.mark.parametrize("name", ["model.safetensors", "heads.safetensors"])
def test_damaged_weights_are_an_error_that_names_them(name, tmp_path, report):
    model = write_model(tmp_path, "ems", ["en", "fr"])
    for spoil in (lambda path: path.write_bytes(b"half"), lambda path: path.unlink()):
        spoil(model.with_name(name))
        with pytest.raises(EmsError, match=rf"{name}: cannot be read"):
            write_models_table([model], report, [], tmp_path / "t.tex")


# --- mined pairs

HIDDEN = {"hidden": 10, "among": [50, 50], "share": None}
OF_PAIRS = {
    "de-en": {"pairs": 30, "distinct": 20, "equal": 2, "cosine": 0.5, "csls": 0.1}
    | {"known": HIDDEN | {"known": 8, "right": 2, "chance": 0.5}},
    "en-fr": {"pairs": 10, "distinct": 10, "equal": 0, "cosine": 0.9, "csls": -0.1}
    | {"known": HIDDEN | {"known": 2, "right": 1, "chance": 3.0}},
}


def manifest(folder, system, of_pairs=OF_PAIRS, **changes):
    path = folder / system / "mined" / "manifest.json"
    path.parent.mkdir(parents=True)
    value = {"rounds": 4, "mining": {"sample": 7}, "by_pair": of_pairs, **changes}
    path.write_text(json.dumps(value))
    return path


UNKNOWN = {"de-en": OF_PAIRS["de-en"] | {"known": HIDDEN | {"known": 0, "right": 0, "chance": 0.5}}}
BARE = {pair: {k: v for k, v in of.items() if k != "known"} for pair, of in OF_PAIRS.items()}


@pytest.mark.parametrize(
    ("name", "systems"),
    [("mining", {"b-1": OF_PAIRS, "a-2": OF_PAIRS, "c": UNKNOWN}), ("mining_bare", {"b": BARE})],
)
def test_a_row_sums_up_all_language_pairs_and_weighs_chance_by_known_pairs(name, systems, tmp_path):
    """Without hidden sentences there are no columns of known pairs."""
    paths = [manifest(tmp_path, system, of_pairs) for system, of_pairs in systems.items()]
    write_mining_table(paths, tmp_path / "t.tex")
    golden.check_table(name, tmp_path / "t.tex")


DOCUMENTS = REAL | {
    "corpora": [{"name": "Own", "version": "v1", "kind": "documents", "path": "own"}],
    "objectives": {"xtr": {"weight": 0}, "contrastive": {"weight": 0}, "context": {"weight": 1}},
    "systems": {
        "context": {},
        "coherence": {
            "objectives": {"context": {"weight": 0}, "coherence": {"weight": 1}},
            "train": {"start_from": "context"},
            "iterations": 2,
        },
    },
    "tables": {"systems": ["context"]},
}


def test_an_experiment_has_the_table_if_a_system_of_its_tables_mines(tmp_path):
    project = Settings(tmp_path, DOCUMENTS)

    def files(**tables):
        experiment = project.load(DOCUMENTS | {"tables": tables})
        listed = input_files(outputs_of(experiment)["table"], experiment)
        assert "sweep" not in listed
        return listed.get("mining")

    one, two = (f"results/mine/models/coherence-{at}/mined/manifest.json" for at in (1, 2))
    assert files() == [one, two]
    assert files(systems=["context"]) is None
    study = {"caption": "x", "rows": {"2": "coherence-2"}, "columns": {"tatoeba": ["en-de"]}}
    both = files(systems=["context"], studies={"x": study})  # coherence-2 starts from the other
    assert both == [one, two]
    assert files(systems=["coherence-1"]) == [one]
