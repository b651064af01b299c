"""Laws of what is read from JSON: its numbers are finite, and what is no JSON is one line."""

import json

import pytest

from ems.benchmarks.cls.data import _label
from ems.benchmarks.marc.data import read_split
from ems.benchmarks.xnli.data import read_all
from ems.errors import EmsError
from ems.files import read_json
from ems.tables.losses import read_losses
from ems.train.checkpoint import _rows

NUMBERS = ["NaN", "Infinity", "-Infinity", "1e999", "-1E+400", "9" * 5000]
PLACES = ["{}", "[1, {}]", '{{"a": {{"b": [{}]}}}}']
REVIEW = {"stars": 5, "review_title": "a", "review_body": "b", "language": "de"}
PAIR = {"language": "de", "gold_label": "neutral", "sentence1": "a", "sentence2": "b"}


def one_line(error, name):
    message = str(error.value)
    assert name in message
    assert "\n" not in message
    assert len(message) < 400
    return message


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_that_is_not_finite_is_no_json(tmp_path, number, place):
    path = tmp_path / "x.json"
    path.write_text(place.format(number))
    with pytest.raises(EmsError, match="not valid JSON") as error:
        read_json(path, {})
    one_line(error, "x.json")


@pytest.mark.parametrize("text", ['"\\ud800"', '{"\\uDFFF": 1}'])
def test_half_a_character_is_no_json(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(EmsError, match="half of a character") as error:
        read_json(path, {})
    one_line(error, "x.json")


def test_a_whole_character_in_two_halves_is_json(tmp_path):
    (tmp_path / "x.json").write_text('"\\ud83d\\ude00"')
    assert read_json(tmp_path / "x.json", {}) == "\U0001f600"


@pytest.mark.parametrize(
    "value", [1.5, -2e300, 1e-320, 10**400, True, None, "NaN", {"Infinity": 1}]
)
def test_any_other_value_is_read_as_it_was_written(tmp_path, value):
    path = tmp_path / "x.json"
    path.write_text(json.dumps([value]))
    assert read_json(path, {}) == [value]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000], ids=["lists", "mappings"])
def test_deep_nesting_is_no_json(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(EmsError, match="not valid JSON") as error:
        read_json(path, {})
    one_line(error, "x.json")


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_in_a_loss_log_that_is_not_finite_is_an_error_with_its_line(tmp_path, number):
    path = tmp_path / "losses.jsonl"
    row = '{"part": "train", "step": 1, "pairs": 2, "total": %s}\n'
    path.write_text(row % 3 + row % number)
    with pytest.raises(EmsError, match=r"losses\.jsonl: line 2") as error:
        read_losses(path)
    one_line(error, "losses.jsonl")
    with pytest.raises(ValueError):  # noqa: PT011 - upon which the checkpoint before is taken
        _rows(path)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_in_a_review_that_is_not_finite_is_an_error_with_its_line(tmp_path, number):
    path = tmp_path / "dev/dataset_de_dev.json"
    path.parent.mkdir()
    bad = json.dumps(REVIEW).replace("5", number)
    path.write_text(f"{json.dumps(REVIEW)}\n{bad}\n")
    with pytest.raises(EmsError, match="line 2") as error:
        list(read_split(tmp_path, "de", "dev"))
    one_line(error, "dataset_de_dev.json")


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_in_an_inference_that_is_not_finite_is_an_error_with_its_line(tmp_path, number):
    path = tmp_path / "XNLI-1.0/xnli.dev.jsonl"
    path.parent.mkdir()
    bad = json.dumps({**PAIR, "more": 5}).replace("5", number)
    path.write_text(f"{json.dumps(PAIR)}\n{bad}\n")
    with pytest.raises(EmsError, match="line 2") as error:
        list(read_all(tmp_path, "dev"))
    one_line(error, "xnli.dev.jsonl")


@pytest.mark.parametrize("rating", ["nan", "inf", "-inf", "1e999", "x"])
def test_a_rating_that_is_not_finite_is_of_no_class(rating):
    assert _label(rating) == ""
    assert (_label("4.0"), _label("1")) == ("positive", "negative")
