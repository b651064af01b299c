"""Laws of mistakes in settings: one line with the key, what is there and what is allowed; and of
settings files: YAML 1.2, finite numbers, text as keys.

The tables are in tests/golden/settings/: `key: value` as in YAML, or GONE for a key that is taken
out, and below it the error, or `fine`.
"""

import ast
import re
from importlib.resources import files
from pathlib import Path

import pytest
import yaml
from conftest import Project
from made import experiments, golden
from made.experiments import GONE, MINIMAL, Settings, changed, edited, one_line
from snakemake.cli import parse_config

from ems.base.errors import EmsError
from ems.base.files import read_table
from ems.config.load import load_yaml
from ems.workflow.plan import plan

COMBINED = changed(MINIMAL, {"sources": {"paracrawl": "embedded"}})
BASES = {**experiments.BASES, "combined": COMBINED}  # the latter's mappings are laid over the base

EMS = Path(str(files("ems")))
LONG = re.compile(r"((?:allowed[a-z ]*|it has): (?:[^,()]+, ){3})(?:[^,()]+, ){3,}[^,()]+")


@pytest.fixture
def settings(tmp_path):
    return Settings(tmp_path)


@pytest.mark.parametrize("name", BASES)
def test_a_mistake_is_one_line_with_the_key_and_what_is_allowed(settings, name):
    def loaded(line):
        new = BASES[name]
        for key, value in yaml.safe_load(line).items():
            if name == "combined":
                new = changed(new, {key: value})
            else:
                new = edited(new, key, GONE if value == "GONE" else value)
        try:
            message = settings.load(new) and "fine"
        except EmsError as error:
            message = str(error).removeprefix(f"{settings.root}/configs/mine.yaml: ")
        assert "\n" not in message
        return LONG.sub(r"\1...", message)

    assert settings.load(BASES[name]).name == "mine"
    golden.replay(f"settings/{name}.txt", loaded)


def test_each_mistake_of_the_code_has_one_message_and_each_message_a_mistake():
    named = []
    for path in {*EMS.rglob("*.py")} - {EMS / "base/errors.py"}:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "mistake":
                named.append(ast.literal_eval(node.args[0]))
            made = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "mistakes"
            checked = isinstance(node, ast.Call) and ast.unparse(node.func) == "check"
            if made or (checked and node.args):
                given = node.value if made else node.args[0]
                named += map(ast.literal_eval, given.keys if isinstance(given, ast.Dict) else [])
    rows = [row["mistake"] for path in EMS.glob("*/mistakes.tsv") for row in read_table(path)]
    assert sorted(set(named)) == sorted(rows)


LARGE = {
    "text": ("seed", "x" * 500_000),
    "a list": ("benchmarks", [{}] * 20_000),
    "text for a list": ("benchmarks", "x" * 500_000),
    "a key": ("x" * 500_000, 1),
    "lines as a key": ("sed\n" * 100_000, 1),
}


@pytest.mark.parametrize(("path", "value"), LARGE.values(), ids=LARGE)
def test_a_large_mistake_is_no_longer_than_a_line(settings, path, value):
    message = settings.error(edited(MINIMAL, path, value))
    assert path[:3] in message
    assert len(message) < 1000


# --- snakemake --config NAME=VALUE


def test_an_override_of_another_kind_is_one_line_with_its_key(settings):
    def refused(typed):
        message = one_line(plan, parse_config([typed]), settings.root)
        return message.removeprefix(f"{settings.root}/")

    golden.replay("settings/overrides.txt", refused)
    assert "config.yaml: gpus: found inf" in refused("gpus=" + "9" * 5000)
    assert len(refused("gpus=" + "9" * 400)) < 1000


def test_a_key_that_is_no_text_is_one_line_too(settings):
    for overrides in ({1: 2}, {None: 1}, {"gpus": {1: 2}}, {"sources": {None: "x"}}):
        assert "config.yaml: " in one_line(plan, overrides, settings.root)


def test_an_allowed_override_replaces_the_value_of_the_file(settings):
    site = plan(parse_config(["gpus=2", "data=elsewhere"]), settings.root).site
    assert (site.gpus, site.data) == (2, "elsewhere")
    for text, value in (("true", True), ("True", True), ("false", False), ("False", False)):
        assert plan(parse_config([f"afresh={text}"]), settings.root).site.afresh is value


@pytest.mark.slow
def test_snakemake_and_ems_read_the_same_out_of_the_settings(fresh: Project) -> None:
    """Snakemake's own reader is of YAML 1.1: it takes 010 for 8 and the name `no` for false."""
    fresh.edit("config.yaml", "experiment: tiny\n", "experiment: no\n")
    fresh.edit("config.yaml", "gpus: 1 ", "gpus: 010 ")
    (fresh.folder / "configs/tiny.yaml").rename(fresh.folder / "configs/no.yaml")
    fresh.edit("configs/no.yaml", "device: cpu", "device: auto")
    shown = fresh.snakemake("-n", "-p", "results/no/models/ems/model.json")
    assert "--processes 10" in shown
    assert "--experiment no " in shown


# --- YAML


def loaded(folder, text):
    path = folder / "x.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_yaml(path)


def refused(folder, text):
    message = one_line(loaded, folder, text)
    assert message.startswith(f"{folder / 'x.yaml'}: ")
    assert len(message) < 500
    return message


def test_a_line_is_what_yamls_core_schema_makes_of_it(tmp_path):
    """YAML 1.1 reads booleans in `no`, 90 in `1:30`, 3 in `0b11`, 1000 in `1_000`, and dates."""

    def read(line):
        try:
            return repr(loaded(tmp_path, line))
        except EmsError:
            return refused(tmp_path, line).removeprefix(f"{tmp_path}/")

    golden.replay("settings/yaml.txt", read)
    assert loaded(tmp_path, "\ufeffa: 1\n") == {"a": 1}  # a byte order mark is no part of a key
    message = refused(tmp_path, f"a: 1\nb:\n  - {'9' * 5000}\n")
    assert "expected a finite number, found 9999" in message
    assert "line 3" in message


def test_a_key_that_is_there_twice_is_refused_however_many_there_are(tmp_path):
    keys = "".join(f"k{number}: 1\n" for number in range(5_000))
    assert len(loaded(tmp_path, keys)) == 5_000
    message = refused(tmp_path, keys + "k7: 2\n")
    assert "the key k7 is there twice" in message
    assert "line 5001" in message
