"""What `make all` must have given: the demo's scores and its counted leak."""

import json

import pytest
from conftest import ROOT, needs
from results_made import means

from ems.bench.scores import UNSEEN, read_score_file
from ems.corpora.demo import LEAKED_PAIRS

RESULTS = ROOT / "results/demo"


def _mean(system: str) -> float:
    """P@1 of the languages trained on."""
    path = RESULTS / f"scores/{system}/tatoeba.json"
    needs(path.exists(), f"{path} is not there; run `make all` first")
    scores = read_score_file(path)
    seen = [value for code, value in means(scores).items() if scores.languages[code] != UNSEEN]
    assert len(seen) == len(scores.languages) - 1 == 7
    return sum(seen) / len(seen)


def test_ems_finds_at_least_80_percent_of_the_translations() -> None:
    assert _mean("ems") >= 80


@pytest.mark.parametrize(("system", "percent"), [("untrained", 10), ("char-ngram", 25)])
def test_what_is_not_trained_finds_few(system: str, percent: float) -> None:
    assert _mean(system) < percent


def test_the_whole_planted_leak_is_removed_and_nothing_else() -> None:
    path = RESULTS / "reports/decontamination.json"
    needs(path.exists(), f"{path} is not there; run `make all` first")
    for entry in json.loads(path.read_text())["corpora"]:
        planted = LEAKED_PAIRS if entry["role"] == "train" else 0
        assert entry["removed"] == {
            "cap": 0,
            "both_empty": 0,
            "one_empty": 0,
            "evaluation": planted,
        }
        assert entry["kept"] == entry["read"] - planted
        assert entry["kept"] >= 15_000 or entry["role"] == "validation"
