"""Laws of the target of an export: the folder of a trained system, its card with what the run kept,
and nothing to do the second time."""

import json

import pytest
import yaml
from conftest import copied, planned

README = "results/own/exports/ems/README.md"


@pytest.fixture(scope="module")
def project(tiny_run, tmp_path_factory):
    """A project whose experiment is tiny with the segmenter `unicode`, exported."""
    pytest.importorskip("onnxruntime")
    project = copied(tiny_run, tmp_path_factory.mktemp("export") / "project")
    own = yaml.safe_load((project.folder / "configs/tiny.yaml").read_text(encoding="utf-8"))
    own["segmenters"] = {"default": "unicode"}
    own["export"] = {"systems": ["ems"], "onnx": True}
    project.select("own", own)
    project.snakemake("exports")
    return project


def test_the_card_has_scores_corpora_costs_and_the_identity_of_the_run(project):
    card = (project.folder / README).read_text(encoding="utf-8")
    model = json.loads((project.folder / "results/own/models/ems/model.json").read_text())
    report = json.loads((project.folder / "results/own/reports/decontamination.json").read_text())
    train = [entry for entry in report["corpora"] if entry["role"] == "train"]
    assert model["identity"] in card
    assert f"{sum(entry['kept'] for entry in train):,} |" in card
    assert f"{sum(entry['removed']['evaluation'] for entry in train):,} pairs were removed" in card
    assert "| Tatoeba | P@1 |" in card
    assert "Cost of the training: " in card
    assert (project.folder / "results/own/exports/ems/onnx/model.onnx").is_file()


def test_there_is_nothing_to_do_again_and_another_system_is_a_target_of_its_own(project):
    assert planned(project.snakemake("-n", "exports")) == {}
    other = README.replace("ems", "untrained")
    assert planned(project.snakemake("-n", other)).get("export") == 1
