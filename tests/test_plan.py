"""Laws of the plan: what is missing is said before any job starts, unless no job needs it here."""

import os
import re
import subprocess
import sys
import time
from functools import partial

import pytest
from made.experiments import ON_SLURM, REAL, Settings, edited

from ems.base.errors import EmsError
from ems.text.segmenters.base import check_available
from ems.workflow.plan import (
    check_cluster,
    check_queue,
    check_times,
    plan,
    plans_jobs,
    segments_elsewhere,
)


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """An experiment that needs Juman++, on a machine where PATH has nothing."""
    settings = Settings(tmp_path, edited(REAL, "segmenters.ja", "jumanpp"))
    monkeypatch.setenv("PATH", str(tmp_path))
    check_available.cache_clear()
    yield tmp_path
    check_available.cache_clear()
    assert settings


HERE = ["", "--cores 2 all", "--nolock all", "-sSnakefile -j2", "--profile default"]
ELSEWHERE = ["--profile slurm all", "--profile=slurm", "--executor slurm"]
ELSEWHERE += ["all slurm"]  # of the environment: SNAKEMAKE_PROFILE
NOWHERE = ["--dag", "--touch all"]


@pytest.mark.parametrize("line", [*HERE, *ELSEWHERE, *NOWHERE])
def test_a_command_line_says_where_text_is_segmented_and_whether_jobs_start(line):
    words = ["snakemake", *line.split()]
    assert segments_elsewhere(words) == (line not in HERE)
    assert plans_jobs(words) == (line not in NOWHERE)


def test_a_segmenter_that_is_missing_where_it_runs_is_an_error(bare):
    with pytest.raises(EmsError, match="segmenter jumanpp: the program `jumanpp` is not on PATH"):
        plan(root=bare)


def test_one_that_runs_elsewhere_is_in_the_plan_but_a_mistake_is_an_error_everywhere(bare):
    (line,) = plan(root=bare, elsewhere=True).missing
    assert "segmenter jumanpp: the program `jumanpp` is not on PATH" in line
    (bare / "configs/mine.yaml").write_text("seed: x\n")
    with pytest.raises(EmsError, match=r"mine\.yaml"):
        plan(root=bare, elsewhere=True)


# --- times


DATES = [(-24, False), (0.05, False), (0.2, True), (24, True)]  # hours ahead, refused


@pytest.mark.parametrize(("hours", "refused"), DATES)
def test_results_from_the_future_are_refused_but_not_for_some_minutes(tmp_path, hours, refused):
    check_times(str(tmp_path / "absent"))
    paths = dict(zip(("old", "a 'quoted'/earlier", "late"), (-1, hours - 0.01, hours), strict=True))
    for name, ahead in paths.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path, (time.time() + 3600 * ahead,) * 2)
    (tmp_path / "a link").symlink_to(tmp_path / "late")
    if not refused:
        check_times(str(tmp_path))
        return
    with pytest.raises(EmsError, match=rf"late: written {hours:.1f} hours in the future") as error:
        check_times(str(tmp_path))
    subprocess.run(["sh", "-c", re.search("back: `(.+)`$", str(error.value))[1]], check=True)
    check_times(str(tmp_path))
    old, earlier, late = ((tmp_path / name).stat().st_mtime for name in paths)
    assert old < earlier < late <= time.time()
    assert late - earlier == pytest.approx(36, abs=0.1)


# --- Slurm


@pytest.fixture
def submitting(tmp_path, monkeypatch):
    """A folder of settings, on a machine that has `sbatch`."""
    monkeypatch.setattr("ems.workflow.plan.shutil.which", lambda name: name)
    return Settings(tmp_path, REAL)


def refused(**site):
    """The line with which a run is refused."""
    with pytest.raises(EmsError) as error:
        check_cluster(plan(site))
    return str(error.value)


@pytest.mark.parametrize("character", ["$", "`", "'", '"', "\\", "%"])
def test_what_the_executor_does_not_quote_is_refused(submitting, monkeypatch, character):
    name = f"a{character}b"
    folder = submitting.root / name
    folder.mkdir()
    Settings(folder, REAL)
    monkeypatch.chdir(submitting.root)
    expected = "with Slurm a path must not contain"
    assert f"data: {name!r}: {expected}" in refused(data=name)
    monkeypatch.chdir(folder)
    assert f"the project's folder: {str(folder)!r}: {expected}" in refused()
    submitting.write(edited(REAL, "systems.ngram", {"kind": "folder", "model": name}))
    monkeypatch.chdir(submitting.root)
    assert f"systems.ngram.model: {name!r}: {expected}" in refused()


def test_other_nasty_names_are_fine_with_slurm(submitting, monkeypatch):
    monkeypatch.chdir(submitting.root)
    check_cluster(plan({"data": ON_SLURM}))


def test_an_environment_that_a_job_cannot_start_is_refused_with_slurm(submitting, monkeypatch):
    monkeypatch.chdir(submitting.root)
    monkeypatch.setattr(sys, "executable", "/big disk/.venv/bin/python")
    assert "Slurm's jobs start '/big disk/.venv/bin/python'; its path may contain" in refused()


@pytest.fixture
def queue(command, tmp_path, monkeypatch):
    """Make `squeue` a script of these lines."""
    monkeypatch.chdir(tmp_path)
    return partial(command, "squeue")


def test_jobs_of_a_killed_snakemake_are_named_and_no_others(queue, tmp_path):
    own = [f"echo '{job}|{comment}|{tmp_path}'" for job, comment in ((31, "rule_a"), (4, "mine"))]
    queue("\n".join([*own, "echo '5|rule_train|/elsewhere'", "echo '7|rule_x|" + f"{tmp_path}'"]))
    with pytest.raises(EmsError, match=r"from this folder: 7 31\. .* scancel 7 31$"):
        check_queue()
    queue("\n".join(own[1:]))
    check_queue()


def test_a_queue_that_does_not_answer_is_not_taken_for_an_empty_one(queue):
    queue("echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(EmsError, match=r"squeue: .*Unable to contact slurm controller"):
        check_queue()


def test_a_machine_without_squeue_gets_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmsError, match=r"squeue: .*No such file"):
        check_queue()
