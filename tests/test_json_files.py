"""Laws of what is read from JSON: its numbers are finite, and what is no JSON is one line."""

import json
from typing import Any

import pytest

from ems.base.errors import EmsError
from ems.base.files import read_json
from ems.benchmarks.cls.data import _label
from ems.benchmarks.marc.data import read_split
from ems.benchmarks.xnli.data import read_all
from ems.tables.logs import read_losses
from ems.train.checkpoint import _rows

NUMBERS = ["NaN", "Infinity", "-Infinity", "1e999", "-1E+400", "9" * 5000]
PLACES = ["{}", "[1, {}]", '{{"a": {{"b": [{}]}}}}']
REVIEW = {"stars": 5, "review_title": "a", "review_body": "b", "language": "de"}
PAIR = {"language": "de", "gold_label": "neutral", "sentence1": "a", "sentence2": "b", "more": 5}
LOSS = {"part": "train", "step": 1, "pairs": 2, "total": 5}
NO_JSON = [place.format(number) for place in PLACES for number in NUMBERS]
NO_JSON += ['"\\ud800"', '{"\\uDFFF": 1}', "[" * 100_000, '{"a":' * 100_000, "{", ""]


def check_one_line(error, name):
    message = str(error.value)
    assert name in message
    assert "\n" not in message
    assert len(message) < 400


@pytest.mark.parametrize("text", NO_JSON, ids=lambda text: text[:20])
def test_a_number_that_is_not_finite_half_a_character_and_deep_nesting_are_no_json(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(EmsError, match="not valid JSON") as error:
        read_json(path, Any)
    assert ("half of a character" in str(error.value)) == ("\\u" in text)
    check_one_line(error, "x.json")


def test_any_other_value_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "x.json"
    values = [1.5, -2e300, 1e-320, 10**400, True, None, "NaN", {"Infinity": 1}]
    path.write_text(json.dumps(values))
    assert read_json(path, Any) == values
    path.write_text('"\\ud83d\\ude00"')  # a whole character in two halves
    assert read_json(path, Any) == "\U0001f600"


READERS = {  # file of JSON lines -> a line, and what reads the file
    "losses.jsonl": (LOSS, lambda folder: read_losses(folder / "losses.jsonl")),
    "dev/dataset_de_dev.json": (REVIEW, lambda folder: list(read_split(folder, "de", "dev"))),
    "XNLI-1.0/xnli.dev.jsonl": (PAIR, lambda folder: list(read_all(folder, "dev"))),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_in_a_line_that_is_not_finite_is_an_error_with_its_line(tmp_path, name, number):
    path, (value, read) = tmp_path / name, READERS[name]
    path.parent.mkdir(exist_ok=True)
    line = json.dumps(value)
    path.write_text(f"{line}\n{line.replace('5', number)}\n")
    with pytest.raises(EmsError, match="line 2") as error:
        read(tmp_path)
    check_one_line(error, path.name)


def test_a_log_of_losses_with_such_a_number_makes_the_checkpoint_a_broken_one(tmp_path):
    for number in NUMBERS:
        (tmp_path / "x").write_text(json.dumps(LOSS).replace("5", number) + "\n")
        with pytest.raises(ValueError):  # noqa: PT011 - upon which the checkpoint before is taken
            _rows(tmp_path / "x")


def test_a_rating_that_is_not_finite_is_of_no_class():
    assert {_label(rating) for rating in ("nan", "inf", "-inf", "1e999", "x")} == {""}
    assert (_label("4.0"), _label("1")) == ("positive", "negative")
