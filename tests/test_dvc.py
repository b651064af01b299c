"""`dvc repro` on the tiny experiment with a local remote: what runs again and what comes back."""

import json
import shutil

import pytest
import yaml
from conftest import copied, copy_project
from made.experiments import NASTY, quoted

pytestmark = pytest.mark.slow
SCORES = "results/tiny/metrics/scores.json"


def _with_git(project):
    project.run("git", "init", "--quiet")
    project.run("git", "config", "user.email", "test@localhost")
    project.run("git", "config", "user.name", "test")
    return _committed(project)


def _committed(project):
    project.run("git", "add", "--all")
    project.run("git", "commit", "--quiet", "--message", "a commit")
    return project


@pytest.fixture(scope="module")
def tracked(tiny_run, tmp_path_factory):
    """A project in which `snakemake all` has run, then `dvc repro`; pushed to a remote."""
    project = _with_git(copied(tiny_run, tmp_path_factory.mktemp("dvc") / "project"))
    remote = project.folder.parent / "remote"
    project.run("dvc", "remote", "add", "--default", "local", str(remote))
    project.run("dvc", "repro")
    project.run("dvc", "push")
    return project


@pytest.fixture
def copy(tracked, tmp_path):
    """A copy of it to change, times and cache included."""
    return copied(tracked, tmp_path / "project")


@pytest.fixture(scope="module")
def experiment(tracked, tmp_path_factory):
    """A copy in which DVC has run an experiment with ten times the learning rate; tests must not
    change it. `ran`: the stages that ran.
    """
    project = _committed(copied(tracked, tmp_path_factory.mktemp("experiment") / "project"))
    done = project.run("dvc", "exp", "run", "-S", "configs/tiny.yaml:train.learning_rate=0.03")
    project.ran = _ran(done.stdout + done.stderr)
    return project


def _model(project):
    return project.folder / "results/tiny/models/ems/model.safetensors"


def _repro(project, *arguments):
    done = project.run("dvc", "repro", *arguments)
    return done.stdout + done.stderr


def _ran(output):
    return {
        line.split("'")[1].partition("@")[0]
        for line in output.splitlines()
        if line.startswith("Running stage")
    }


def test_after_repro_dvc_and_snakemake_have_nothing_to_do(tracked):
    output = _repro(tracked)
    assert _ran(output) == set()
    assert "Data and pipelines are up to date" in output
    assert "Nothing to be done" in tracked.snakemake("all")


def _shown(project, *words):
    return json.loads(project.run("dvc", *words, "--json").stdout)


def _own_tables(project):
    """Return the tables in the experiment's folder, of which `selected` makes copies."""
    folder = project.folder / "results/tiny/tables"
    return {path.name: path.read_bytes() for path in folder.glob("[!.]*")}


def _flip(project, old, new, *arguments):
    """Change the learning rate and reproduce; return the stages that ran."""
    project.edit("configs/tiny.yaml", f"learning_rate: {old}\n", f"learning_rate: {new}\n")
    return _ran(_repro(project, *arguments))


def test_a_setting_flipped_there_and_back_gives_the_first_table_again(copy, experiment):
    """There: by an experiment of DVC, and without its caches. Back: through the caches."""
    first, weights = copy.tables(), _model(copy).read_bytes()
    project = copied(experiment, copy.folder.parent / "flipped")
    other = _own_tables(project)
    assert _model(project).read_bytes() != weights
    assert project.tables() != first
    assert "from step 0" in (project.folder / "results/tiny/logs/train/ems.log").read_text()
    _flip(project, "0.03", "0.003")
    assert (project.tables(), _model(project).read_bytes()) == (first, weights)
    shutil.rmtree(project.folder / ".dvc/cache")
    assert _flip(project, "0.003", "0.03", "--no-run-cache", "tables@tiny") >= {"train", "tables"}
    assert _own_tables(project) == other != {}


def test_after_make_pull_snakemake_has_nothing_to_do(copy):
    tables = copy.tables()
    for name in ("results", "data", ".dvc/cache", ".snakemake"):
        shutil.rmtree(copy.folder / name)
    copy.run("dvc", "pull")
    copy.snakemake("--touch", "all")
    assert copy.tables() == tables
    assert "Nothing to be done" in copy.snakemake("all")
    assert _ran(_repro(copy)) == set()


def test_after_a_direct_run_repro_destroys_and_retrains_nothing(tiny_run, tracked):
    kept = list((tiny_run.folder / "results/tiny/logs/train").glob("*.log"))
    kept += (tiny_run.folder / "results").rglob("*.model")
    kept.append(_model(tiny_run))
    assert len(kept) == 2 + 3 + 1
    for path in kept:
        copy = tracked.folder / path.relative_to(tiny_run.folder)
        assert copy.read_bytes() == path.read_bytes(), path
    assert tracked.tables() == tiny_run.tables()


def test_each_experiment_has_entries_in_the_lock_and_one_repro_makes_all_of_it(copy):
    shutil.copy(copy.folder / "configs/tiny.yaml", copy.folder / "configs/other.yaml")
    copy.edit("configs/other.yaml", "[en, de, zh, ja]", "[en, de]")
    copy.edit("configs/other.yaml", "  ems: {}\n", "")
    copy.edit("configs/other.yaml", "  base: ems\n", "  base: untrained\n")
    before = copy.tables()
    copy.edit("config.yaml", "experiment: tiny\n", "experiment: other\n")
    _repro(copy)
    assert copy.tables() != before
    stages = yaml.safe_load((copy.folder / "dvc.lock").read_text())["stages"]
    assert {"train@tiny", "train@other"} <= set(stages)
    assert "Data and pipelines are up to date" in _repro(copy)  # no stage writes to an earlier one
    assert "Nothing to be done" in copy.snakemake("all")
    copy.edit("config.yaml", "experiment: other\n", "experiment: tiny\n")
    assert _ran(_repro(copy)) <= {"selected"}  # or its copies come back from the cache
    assert copy.tables() == before


def test_metrics_parameters_and_plots_of_an_experiment_of_dvc_are_compared(tracked, experiment):
    assert experiment.ran == {"train", "tables", "selected", "export"}
    before = _shown(tracked, "metrics", "show")[""]["data"][SCORES]["data"]
    assert set(before["ems"]) == {"tatoeba", "validation"}
    (changed,) = _shown(experiment, "params", "diff")["configs/tiny.yaml"].items()
    assert changed[0] == "train.learning_rate"
    assert (changed[1]["old"], changed[1]["new"]) == (0.003, 0.03)
    loss = _shown(experiment, "metrics", "diff")[SCORES]["ems.validation.total"]
    assert loss["old"] == before["ems"]["validation"]["total"] != loss["new"]
    plots = _shown(experiment, "plots", "diff", "HEAD")
    assert plots.get("errors", []) == []
    curves = {name: plot for name, plot in plots["data"].items() if plot}
    names = ("training/ems", "validation/ems", "validation/untrained")
    assert set(curves) == {f"results/tiny/metrics/{name}.csv" for name in names}
    assert {rev for plot in curves.values() for of in plot for rev in of["revisions"]} == {
        *("HEAD", "workspace")
    }


def test_a_nasty_data_folder_is_tracked_and_no_name_is_run_as_a_command(tmp_path):
    """`experiment` is in a command of dvc.yaml before anything of ours can look at it."""
    project = _with_git(copy_project(tmp_path))
    project.edit("config.yaml", "data: data #", f"data: {quoted(NASTY[1:])} #")
    assert _ran(_repro(project, "data@tiny")) == {"data"}
    assert (project.folder / NASTY[1:] / "opus/Demo").is_dir()
    name = "tiny; touch pwned"
    shutil.copy(project.folder / "configs/tiny.yaml", project.folder / f"configs/{name}.yaml")
    project.edit("config.yaml", "experiment: tiny\n", f"experiment: {name}\n")
    done = project.run("dvc", "repro", f"data@{name}", expect=None)
    assert f"experiment: found '{name}', expected letters" in done.stdout + done.stderr
    assert list(tmp_path.rglob("pwned")) == []
