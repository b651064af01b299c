"""Experiments of `ems init` and the starter run from a server to the token shards."""

import json
from functools import partial

import pytest
import yaml
from conftest import SHARED
from made.corpora import write_flores, write_sib, write_tatoeba
from made.web import BENCHMARKS, CERTIFICATES, made_up, served, shared_text, sources, write_served

from ems.config.load import load_experiment, load_site

pytestmark = pytest.mark.slow
TEXT = 60  # lines of an evaluation set


def write_benchmarks(mirror, experiment):
    """Write the three open benchmarks in their published form, with made-up sentences."""
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
    """A project whose sources are an https server of its folder `mirror`."""
    with served(fresh.folder / "mirror") as (address, trusted):
        fresh.environment |= {CERTIFICATES: str(trusted), "NO_PROXY": "127.0.0.1"}
        path = fresh.folder / "config.yaml"
        site = yaml.safe_load(path.read_text())
        path.write_text(yaml.safe_dump({**site, "sources": sources(address)}))
        yield fresh


@pytest.mark.parametrize("name", ["mine", "starter"])
def test_experiments_run_from_a_server_with_the_names_of_opus(project, name):
    """`ems init` writes `mine`; `starter` uses the text of ../shared if it is there. Both fetch the
    evaluation files of their own languages only.
    """
    real = name == "starter" and SHARED.is_dir()
    if name == "mine":
        project.run("ems", "init", "--languages", "en,gd", "--budget", "20k")
    path = project.folder / f"configs/{name}.yaml"
    value = yaml.safe_load(path.read_text())
    value["vocabulary"] |= {"size": 4000 if real else 400, "sample_lines": 9000 if real else 2000}
    for benchmark in ("tatoeba", "flores200") if name == "starter" else ():
        del value["evalsets"][benchmark]["languages"]
    path.write_text(yaml.safe_dump(value, sort_keys=False))
    site = load_site(project.folder / "config.yaml", {"experiment": name})
    experiment = load_experiment(name, site, project.folder / "configs")
    text = shared_text(experiment, 3000) if real else partial(made_up, 3000)
    write_served(project.folder / "mirror", experiment, text)
    write_benchmarks(project.folder / "mirror", experiment)
    project.snakemake("-j2", "--config", f"experiment={name}", "--", "text")
    results = project.folder / "results" / name
    for made in ("shards/shared/index.json", "reports/decontamination.json"):
        assert json.loads((results / made).read_text())
