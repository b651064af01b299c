"""Laws of the table of what was mined: a row for each iteration, sums over pairs of languages, and
the share that is right beside that of chance."""

import json

import pytest
from made.experiments import REAL, Settings, one_line
from made.tables import csv_rows

from ems.tables.models import write_mining_table
from ems.tables.registry import made_of, outputs_of

HIDDEN = {"hidden": 10, "among": [50, 50], "share": None}
OF_PAIRS = {
    "de-en": {"pairs": 30, "distinct": 20, "equal": 2, "cosine": 0.5, "csls": 0.1}
    | {"known": HIDDEN | {"known": 8, "right": 2, "chance": 0.5}},
    "en-fr": {"pairs": 10, "distinct": 10, "equal": 0, "cosine": 0.9, "csls": -0.1}
    | {"known": HIDDEN | {"known": 2, "right": 1, "chance": 3.0}},
}


def manifest(folder, system, of_pairs=OF_PAIRS, **changes):
    """The manifest of what a system mined."""
    path = folder / system / "mined" / "manifest.json"
    path.parent.mkdir(parents=True)
    value = {"rounds": 4, "mining": {"sample": 7}, "by_pair": of_pairs, **changes}
    path.write_text(json.dumps(value))
    return path


def test_a_row_has_the_sums_over_all_pairs_of_languages_in_the_order_given(tmp_path):
    paths = [manifest(tmp_path, name) for name in ("b-1", "a-2")]
    write_mining_table(paths, tmp_path / "mining.tex")
    rows = csv_rows(tmp_path / "mining.tex")
    assert list(rows) == ["b-1", "a-2"]
    for row in rows.values():
        found = [row[name] for name in ("m", "Rounds", "Pairs", "Distinct", "Equal")]
        assert found == ["7", "4", "40", "30", "2"]
        assert row["Cosine"] == f"{(30 * 0.5 + 10 * 0.9) / 40:.3f}"


def test_chance_is_weighed_as_the_pairs_that_are_known(tmp_path):
    write_mining_table([manifest(tmp_path, "a")], tmp_path / "mining.tex")
    row = csv_rows(tmp_path / "mining.tex")["a"]
    assert row["Known"] == "10"
    assert row["Right (%)"] == f"{100 * (2 + 1) / 10:.2f}"
    assert row["Chance (%)"] == f"{(8 * 0.5 + 2 * 3.0) / 10:.2f}"


def test_without_a_hidden_sentence_found_there_is_no_share_and_without_any_hidden_no_column(
    tmp_path,
):
    none = {"known": HIDDEN | {"known": 0, "right": 0, "chance": 0.5}}
    paths = [manifest(tmp_path, "a", {"de-en": OF_PAIRS["de-en"] | none})]
    write_mining_table(paths, tmp_path / "mining.tex")
    row = csv_rows(tmp_path / "mining.tex")["a"]
    assert (row["Known"], row["Right (%)"], row["Chance (%)"]) == ("0", "", "")
    bare = {pair: {k: v for k, v in of.items() if k != "known"} for pair, of in OF_PAIRS.items()}
    write_mining_table([manifest(tmp_path, "b", bare)], tmp_path / "mining.tex")
    assert list(csv_rows(tmp_path / "mining.tex")["b"])[-1] == "Cosine"
    assert "Chance" not in (tmp_path / "mining.md").read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"of_pairs": {}}, "by_pair"),
        ({"of_pairs": {"de-en": {"pairs": 1}}}, "distinct"),
        ({"rounds": "4"}, "rounds"),
    ],
)
def test_a_malformed_manifest_is_one_line_that_names_it(tmp_path, changes, message):
    path = manifest(tmp_path, "a", **changes)
    line = one_line(write_mining_table, [path], tmp_path / "mining.tex")
    assert str(path) in line
    assert message in line


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
        return made_of(outputs_of(experiment)["table"], experiment).get("mining")

    one, two = (f"results/mine/models/coherence-{at}/mined/manifest.json" for at in (1, 2))
    assert files() == [one, two]
    assert files(systems=["context"]) is None
    study = {"caption": "x", "rows": {"2": "coherence-2"}, "columns": {"tatoeba": ["en-de"]}}
    assert files(systems=["context"], studies={"x": study}) == [
        one,
        two,
    ]  # it starts from the other
    assert files(systems=["coherence-1"]) == [one]
