"""Laws of mistakes in settings: one line with the key, what is there and what is allowed.

The tables are in tests/golden/settings/: `key: value` as in YAML, or GONE for a key that is taken
out, and below it the error, or `fine`.
"""

import re

import pytest
import yaml
from conftest import Project
from made import golden
from made.experiments import DIVIDED, GONE, MINIMAL, REAL, Settings, changed, edited, one_line
from snakemake.cli import parse_config

from ems.base.errors import EmsError
from ems.workflow.plan import plan

NARROWED = REAL | {
    "vocabularies": {"de": {"languages": ["en", "de"]}},
    "systems": {
        "some": {"languages": ["en", "ja"]},
        "one": {"vocabulary": "de", "train": {"steps": 3}},
        "pair": {"each": ["de"]},
    },
}
SWEEP = {"base": "ems", "axes": {"model.layers": [2, 6]}, "train": {"steps": 7}}
SWEPT = MINIMAL | {"sweep": SWEEP}
SWEPT |= {"validation": {"name": "Toy", "version": "dev", "source": "nowhere"}}
PAIRS = REAL | {"languages": ["de", "fr", "ja"], "validation": None}
PAIRS |= {"evalsets": {"flores200": {"version": "v1"}}, "decontaminate": {"against": ["flores200"]}}
PAIRS |= {"corpora": [{"name": "WikiMatrix", "version": "v1"}], "benchmarks": ["flores200"]}
COMBINED = changed(MINIMAL, {"sources": {"paracrawl": "embedded"}})
BASES = {
    **{"real": REAL, "divided": DIVIDED, "narrowed": NARROWED, "swept": SWEPT},
    **{"pairs": PAIRS, "combined": COMBINED},  # of the latter whole mappings are laid over the base
}

LONG = re.compile(r"(allowed[a-z ]*: (?:[^,()]+, ){3})(?:[^,()]+, ){3,}[^,()]+")


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
