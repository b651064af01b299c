"""Laws of JSON of another form: every reader says in one line what differs, and never fails in any
other way, whatever a file holds."""

import ast
import time
from typing import Annotated

import pytest
from conftest import ROOT
from pydantic import Field

from ems.base.errors import Damaged
from ems.base.files import read_json
from ems.base.schema import Below, Count, NonBlank, Number, Percent, Record, fitting

SOURCES = sorted((ROOT / "ems").rglob("*.py"))
# Where text is parsed that is not a whole file: lines of .jsonl, a request, what a process prints.
PARSERS = {"own.py", "serve.py", "verify.py"}


def calls(path, name):
    """The calls of a function, or of a method of a module, by its source."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == name:
            yield node


def test_every_json_file_is_read_as_a_type():
    readers = [(path.name, call) for path in SOURCES for call in calls(path, "read_json")]
    assert len(readers) > 20
    for name, call in readers:
        types = [ast.unparse(argument) for argument in call.args[1:]]
        assert len(types) in (1, 2), (name, ast.unparse(call))
        assert types[0] != "Any", name
    parsers = {path.name for path in SOURCES for _ in calls(path, "json.loads")}
    assert parsers <= PARSERS
    assert not [path for path in SOURCES for _ in calls(path, "json.load")]


class OfAll(Record):
    name: NonBlank
    count: Count
    percent: Percent
    files: Annotated[dict[Below, NonBlank], Field(min_length=1)] = Field({})
    numbers: list[Number] = Field([])


def misfit(value, of):
    """What differs from a type first; "" if nothing does."""
    try:
        fitting(of, value)
    except ValueError as error:
        return str(error)
    return ""


RIGHT = {"name": "a", "count": 0, "percent": 100, "files": {"de/x-1.y": "1"}, "numbers": [1, 2.5]}
WRONG = [
    ([], "expected a JSON object, found []"),
    ({"name": "a", "percent": 1}, "expected a whole number of at least 0 under `count`, found n"),
    ({**RIGHT, "name": " "}, "expected text under `name`, found ' '"),
    ({**RIGHT, "count": 2.0}, "expected a whole number of at least 0 under `count`, found 2.0"),
    ({**RIGHT, "count": True}, "expected a whole number of at least 0 under `count`, found True"),
    ({**RIGHT, "percent": float("nan")}, "expected a percentage under `percent`, found nan"),
    ({**RIGHT, "numbers": [1, float("inf")]}, "expected a number under `numbers.1`, found inf"),
    ({**RIGHT, "files": {}}, "expected a JSON object that is not empty under `files`, found {}"),
    ({**RIGHT, "files": {"a": None}}, "expected text under `files.a`, found None"),
    ({**RIGHT, "name": ["x" * 10_000]}, "xxx..."),
]


@pytest.mark.parametrize(("value", "message"), WRONG)
def test_the_first_thing_that_differs_is_told_with_its_key(value, message):
    assert misfit(RIGHT, OfAll) == ""
    assert message in misfit(value, OfAll)
    assert len(misfit(value, OfAll)) < 200


OUTSIDE = ["..", "../x", "a/../../x", "a/..", "/etc/x", ".", "./x", "a/./b", "", "a\\b", "a\nb"]
INSIDE = ["a", "a/b", ".a", "..a", "a..b/c..", "Demo+train/v1/zh_tw-en"]


def test_the_name_of_a_file_never_leads_out_of_its_folder_but_may_hold_dots():
    of = dict[Below, NonBlank]
    for name in (*OUTSIDE, "a/..\n", "x\0"):
        assert "the name of a file in this folder" in misfit({name: "1"}, of), name
    assert [misfit({name: "1"}, of) for name in INSIDE] == [""] * len(INSIDE)


class Index(Record):
    train: NonBlank


def test_a_file_of_another_name_is_not_called_damaged(tmp_path):
    """A model that is given where a list of shards is expected must not be deleted."""
    path = tmp_path / "model.json"
    path.write_text("{}")
    with pytest.raises(
        Damaged, match=r"expected a file index\.json: is this the right file"
    ) as error:
        read_json(path, Index, "index.json")
    assert "delete" not in str(error.value)
    with pytest.raises(Damaged, match="found nothing; make or fetch it again"):
        read_json(path, Index, "*.json")


def test_thousands_of_values_are_looked_at_in_a_moment():
    of = dict[str, dict[str, Percent]]
    value = {str(one): {str(other): 50.5 for other in range(62)} for one in range(62)}
    files = {"train": {f"A/v1/de-en/{n:05}": "a" for n in range(5000)}}
    started = time.process_time()
    assert misfit(value, of) == ""
    assert misfit(files, dict[str, dict[Below, NonBlank]]) == ""
    assert time.process_time() - started < 1
