"""Laws of Table III: sizes are those of the weights, pairs those of the system's own languages."""

import json

import pytest
from tables_made import csv_rows, demo_report, write_model

from ems.errors import EmsError
from ems.tables.models import write_models_table
from ems.tables.printed import load_printed_models

KEPT = {"en-fr": 18120 - 120 + 1000 - 5, "de-en": 2000 - 100, "de-fr": 50}


def table(tmp_path, *models, printed=()):
    report = demo_report(tmp_path / "report.json")
    write_models_table(list(models), report, list(printed), tmp_path / "t.tex")
    return csv_rows(tmp_path / "t.tex")


def test_parameters_are_counted_in_the_weights_with_and_without_the_input_embedding(tmp_path):
    row = table(tmp_path, write_model(tmp_path, "ems", ["en", "fr", "de"]))["ems"]
    assert row["#Param."] == str(4 * 3 + 2 * 5)
    assert row["to encode"] == str(10 * 4 + 4 * 3)


def test_pairs_are_those_kept_for_training_of_the_systems_own_languages(tmp_path):
    models = [
        write_model(tmp_path, "all", ["en", "fr", "de"]),
        write_model(tmp_path, "french", ["en", "fr"]),
        write_model(tmp_path, "half", ["en", "de"], share=0.5),
    ]
    rows = table(tmp_path, *models)
    assert [row["Langs"] for row in rows.values()] == ["3", "2", "2"]
    expected = [sum(KEPT.values()), KEPT["en-fr"], KEPT["de-en"] // 2]
    assert [row["Paral."] for row in rows.values()] == list(map(str, expected))


def test_printed_rows_are_those_that_are_named_and_stand_last(tmp_path):
    rows = table(tmp_path, write_model(tmp_path, "ems", ["en", "fr"]), printed=["EMS", "LaBSE"])
    assert list(rows) == ["ems", "LaBSE (printed)", "EMS (printed)"]
    assert list(rows["EMS (printed)"].values())[1:] == ["62", "143M", "", "Dual-Trans", "147M", ""]
    assert rows["LaBSE (printed)"]["Mono"] == "yes"


def test_the_printed_table_has_its_four_models():
    names = [row["model"] for row in load_printed_models()]
    assert names == ["LASER", "SBERT-distill", "LaBSE", "EMS"]


@pytest.mark.parametrize("name", ["model.safetensors", "heads.safetensors"])
def test_weights_that_are_missing_or_damaged_are_an_error_that_names_them(name, tmp_path):
    model = write_model(tmp_path, "ems", ["en", "fr"])
    model.with_name(name).write_bytes(b"half")
    with pytest.raises(EmsError, match=rf"{name}: cannot be read"):
        table(tmp_path, model)
    model.with_name(name).unlink()
    with pytest.raises(EmsError, match=rf"{name}: cannot be read"):
        table(tmp_path, model)


def test_a_model_json_of_another_form_is_an_error_that_says_what_is_missing(tmp_path):
    model = write_model(tmp_path, "ems", ["en", "fr"])
    model.write_text(json.dumps({"name": "ems"}))
    with pytest.raises(EmsError, match="that is not empty under `languages`, found nothing"):
        table(tmp_path, model)
