"""Laws of `snakemake --config NAME=VALUE`: a value of another kind is one line with its key."""

import pytest
from conftest import Project
from made.experiments import Settings
from snakemake.cli import parse_config

from ems.base.errors import EmsError
from ems.workflow.plan import plan

WRONG = {  # as typed -> the key and the value of the message
    **{f"gpus={text}": f"gpus: found {text}" for text in ("nan", "inf", "-inf", "1.5")},
    "gpus=1e400": "gpus: found inf",
    "gpus=1e0": "gpus: found 1.0",
    "gpus=two": "gpus: found 'two'",
    "gpus=": "gpus: found None",
    "gpus=-1": "gpus: -1 is less than the minimum of 0",
    "gpus=33": "gpus: 33 is greater than the maximum of 32",
    "gpus=" + "9" * 5000: "gpus: found inf",
    "gpus=" + "9" * 400: "gpus: 9999",
    "gpus=true": "gpus: found True",
    "gpus=[1]": "gpus: found ['1']",
    "afresh=1": "afresh: found 1",
    "afresh=yes": "afresh: found 'yes'",
    "embeddings_mb=nan": "embeddings_mb: found nan",
    "experiment=1": "experiment: found 1",
    "experiment=nan": "experiment: found nan",
    "experiment=true": "experiment: found True",
    "experiment=": "experiment: found None",
    "experiment=[tiny]": "experiment: found ['tiny']",
    "experiment={a: b}": "experiment: found {'a': 'b'}",
    "data=1": "data: found 1",
    "sources=x": "sources: found 'x'",
    "sources={opus: [x]}": "sources.opus: found ['x']",
    "sources={1: x}": "sources.1: unknown key",
    "downloads=5": "downloads: found 5",
    "downloads={per_host: 4}": "downloads.per_host: found '4'",
    "gpu=1": "gpu: unknown key (did you mean gpus?)",
}


@pytest.fixture
def settings(tmp_path):
    return Settings(tmp_path)


@pytest.mark.parametrize(("typed", "expected"), WRONG.items(), ids=[name[:30] for name in WRONG])
def test_a_value_of_another_kind_is_one_line_with_its_key(settings, typed, expected):
    with pytest.raises(EmsError) as error:
        plan(parse_config([typed]), settings.root)
    message = str(error.value)
    assert expected in message
    assert "\n" not in message
    assert len(message) < 1000


def test_a_key_that_is_no_text_is_one_line_too(settings):
    for overrides in ({1: 2}, {None: 1}, {"gpus": {1: 2}}, {"sources": {None: "x"}}):
        with pytest.raises(EmsError, match=r"config\.yaml: "):
            plan(overrides, settings.root)


def test_what_is_allowed_overrides_the_file(settings):
    site = plan(parse_config(["gpus=2", "data=elsewhere"]), settings.root).site
    assert (site.gpus, site.data) == (2, "elsewhere")
    for text, value in (("true", True), ("True", True), ("false", False), ("False", False)):
        assert plan(parse_config([f"afresh={text}"]), settings.root).site.afresh is value


def test_snakemake_and_ems_read_the_same_out_of_the_settings(fresh: Project) -> None:
    """Snakemake's own reader is of YAML 1.1: it takes 010 for 8 and the name `no` for false."""
    fresh.edit("config.yaml", "experiment: tiny\n", "experiment: no\n")
    fresh.edit("config.yaml", "gpus: 1 ", "gpus: 010 ")
    (fresh.folder / "configs/tiny.yaml").rename(fresh.folder / "configs/no.yaml")
    fresh.edit("configs/no.yaml", "device: cpu", "device: auto")
    shown = fresh.snakemake("-n", "-p", "results/no/models/ems/model.json")
    assert "--processes 10" in shown
    assert "--experiment no " in shown
