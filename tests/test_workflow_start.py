"""Laws of what `ems init` writes: it runs from a server with OPUS's names to the token shards."""

import json
from functools import partial

import pytest
import yaml
from conftest import SHARED
from made.corpora import write_flores, write_sib, write_tatoeba
from made.web import BENCHMARKS, CERTIFICATES, made_up, served, shared_text, sources, write_served

from ems.config.load import load_experiment, load_site

TEXT = 60  # lines of an evaluation set


def write_benchmarks(mirror, experiment):
    """The three open benchmarks of an experiment, as published, of made-up sentences."""
    for name in BENCHMARKS:
        for code in experiment.evalsets[name].languages:
            lines = made_up(TEXT, f"{name} {code}", "en", "de")
            if name == "tatoeba":
                write_tatoeba(mirror, code, lines)
            elif name == "flores200":
                write_flores(mirror, code, [own for own, _ in lines])
            else:
                examples = [("travel", own) for own, _ in lines]
                write_sib(mirror, code, dict.fromkeys(("train", "dev", "test"), examples))


@pytest.fixture
def project(fresh):
    """A project that takes everything from an https server, which serves its folder mirror."""
    with served(fresh.folder / "mirror") as (address, trusted):
        fresh.environment |= {CERTIFICATES: str(trusted), "NO_PROXY": "127.0.0.1"}
        path = fresh.folder / "config.yaml"
        site = yaml.safe_load(path.read_text())
        path.write_text(yaml.safe_dump({**site, "sources": sources(address)}))
        yield fresh


def load(project, name):
    site = load_site(project.folder / "config.yaml", {"experiment": name})
    return load_experiment(name, site, project.folder / "configs")


def to_shards(project, name):
    """Run an experiment up to its shards; what each pair of each corpus kept."""
    project.snakemake("-j2", "--config", f"experiment={name}", "--", "text")
    index = project.folder / f"results/{name}/shards/shared/index.json"
    return json.loads(index.read_text())


@pytest.mark.slow
def test_what_init_writes_runs_from_a_server_of_opuss_names(project):
    project.run("ems", "init", "--languages", "en,gd", "--budget", "20k")
    path = project.folder / "configs/mine.yaml"
    value = yaml.safe_load(path.read_text())
    value["vocabulary"] |= {"size": 400, "sample_lines": 2000}  # of made-up words there are few
    path.write_text(yaml.safe_dump(value, sort_keys=False))
    experiment = load(project, "mine")
    write_served(project.folder / "mirror", experiment, partial(made_up, 2600))
    write_benchmarks(project.folder / "mirror", experiment)
    assert to_shards(project, "mine")
    report = json.loads((project.folder / "results/mine/reports/decontamination.json").read_text())
    assert report


@pytest.mark.slow
def test_starter_runs_from_a_server_of_opuss_names(project):
    """With the text of ../shared where a developer has it; of the 236 files of evaluation sentences
    only those of its own languages.
    """
    real = SHARED.is_dir()
    path = project.folder / "configs/starter.yaml"
    value = yaml.safe_load(path.read_text())
    value["vocabulary"] |= {"size": 4000 if real else 400, "sample_lines": 9000}
    for name in ("tatoeba", "flores200"):
        del value["evalsets"][name]["languages"]
    path.write_text(yaml.safe_dump(value, sort_keys=False))
    experiment = load(project, "starter")
    text = shared_text(experiment, 3000) if real else partial(made_up, 3000)
    write_served(project.folder / "mirror", experiment, text)
    write_benchmarks(project.folder / "mirror", experiment)
    assert to_shards(project, "starter")
