"""Laws of the plan: what is missing is said before any job starts, unless no job needs it here; and
what DVC puts in place counts only if it fits its inputs.
"""

import json
import os
import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import ROOT
from made.experiments import ON_SLURM, REAL, SHIPPED, SITE, Settings, edited, shipped

from ems.base.errors import EmsError
from ems.commands.cli import main
from ems.config.load import load_site
from ems.config.stages import differences
from ems.workflow import plan
from ems.workflow.made import EARLIEST, RECORDS, Made, _record_file, folder_of
from ems.workflow.parts import parts_of
from ems.workflow.trust import programs_of

# --- an experiment from elsewhere


def test_the_site_trusts_the_programs_of_the_shipped_experiments_and_no_others():
    programs = [text for name in SHIPPED for text in programs_of(shipped(name)).values()]
    assert {*programs} == {*load_site(ROOT / "config.yaml").trusted}


def test_check_lists_programs_and_places_outside_before_anything_runs(tmp_path, monkeypatch, capfd):
    command = "touch pwned {lines} {out}"
    value = edited(REAL, "systems.x", {"kind": "command", "command": command})
    project = Settings(tmp_path, edited(value, "sources.opus", "../mirror"))
    project.site({**SITE, "trusted": [command]})
    monkeypatch.chdir(tmp_path)
    assert main(["check"]) == 1  # files are missing
    said = capfd.readouterr().err
    assert f"it starts a program, which config.yaml trusts: {command}" in said
    assert "it reads outside of this folder: ../mirror" in said
    assert not list(tmp_path.rglob("pwned"))


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """An experiment that needs Juman++, on a machine where PATH has nothing."""
    Settings(tmp_path, edited(REAL, "segmenters.ja", "jumanpp"))
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


HERE = ["", "--cores 2 all", "--nolock all", "-sSnakefile -j2", "--profile default"]
ELSEWHERE = ["--profile slurm all", "--profile=slurm", "--executor slurm"]
ELSEWHERE += ["all slurm"]  # of the environment: SNAKEMAKE_PROFILE
NOWHERE = ["--dag", "--touch all"]


@pytest.mark.parametrize("line", [*HERE, *ELSEWHERE, *NOWHERE])
def test_a_command_line_says_where_text_is_segmented_and_whether_jobs_start(line):
    words = ["snakemake", *line.split()]
    elsewhere = plan.on_slurm(words) or not plan.plans_jobs(words)
    assert elsewhere == (line not in HERE)
    assert plan.plans_jobs(words) == (line not in NOWHERE)


def test_a_segmenter_that_is_missing_where_it_runs_is_an_error(bare):
    with pytest.raises(EmsError, match="segmenter jumanpp: the program `jumanpp` is not on PATH"):
        plan.plan(root=bare)


def test_one_that_runs_elsewhere_is_in_the_plan_but_a_mistake_is_an_error_everywhere(bare):
    (line,) = plan.plan(root=bare, elsewhere=True).missing
    assert "segmenter jumanpp: the program `jumanpp` is not on PATH" in line
    (bare / "configs/mine.yaml").write_text("seed: x\n")
    with pytest.raises(EmsError, match=r"mine\.yaml"):
        plan.plan(root=bare, elsewhere=True)


# --- times


DATES = [(-24, False), (0.05, False), (0.2, True), (24, True)]  # hours ahead, refused


@pytest.mark.parametrize(("hours", "refused"), DATES)
def test_results_from_the_future_are_refused_but_not_for_some_minutes(tmp_path, hours, refused):
    plan.check_times(str(tmp_path / "absent"))
    paths = dict(zip(("old", "a 'quoted'/earlier", "late"), (-1, hours - 0.01, hours), strict=True))
    for name, ahead in paths.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path, (time.time() + 3600 * ahead,) * 2)
    (tmp_path / "a link").symlink_to(tmp_path / "late")
    if not refused:
        plan.check_times(str(tmp_path))
        return
    with pytest.raises(EmsError, match=rf"late: written {hours:.1f} hours in the future") as error:
        plan.check_times(str(tmp_path))
    subprocess.run(["sh", "-c", re.search("back: `(.+)`$", str(error.value))[1]], check=True)
    plan.check_times(str(tmp_path))
    old, earlier, late = ((tmp_path / name).stat().st_mtime for name in paths)
    assert old < earlier < late <= time.time()
    assert late - earlier == pytest.approx(36, abs=0.1)


# --- Slurm


@pytest.fixture
def submitting(tmp_path, monkeypatch):
    """The working directory with settings, on a machine that has `sbatch`."""
    monkeypatch.setattr("ems.workflow.plan.shutil.which", lambda name: name)
    monkeypatch.chdir(tmp_path)
    return Settings(tmp_path, REAL)


def refused(**site):
    with pytest.raises(EmsError) as error:
        plan.check_cluster(plan.plan(site))
    return str(error.value)


@pytest.mark.parametrize("character", ["$", "`", "'", '"', "\\", "%"])
def test_what_the_executor_does_not_quote_is_refused(submitting, monkeypatch, character):
    name = f"a{character}b"
    folder = submitting.root / name
    folder.mkdir()
    Settings(folder, REAL)
    (folder / "model.json").touch()
    expected = "with Slurm a path must not contain"
    assert f"data: {name!r}: {expected}" in refused(data=name)
    submitting.write(edited(REAL, "systems.ngram", {"kind": "folder", "model": name}))
    assert f"systems.ngram.model: {name!r}: {expected}" in refused()
    monkeypatch.chdir(folder)
    assert f"the project's folder: {str(folder)!r}: {expected}" in refused()


@pytest.mark.usefixtures("submitting")
def test_other_nasty_names_are_fine_with_slurm():
    plan.check_cluster(plan.plan({"data": ON_SLURM}))


@pytest.mark.usefixtures("submitting")
def test_an_environment_that_a_job_cannot_start_is_refused_with_slurm(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/big disk/.venv/bin/python")
    assert "Slurm's jobs start '/big disk/.venv/bin/python'; its path may contain" in refused()


@pytest.fixture
def queue(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return partial(command, "squeue")


def test_jobs_of_a_killed_snakemake_are_named_and_no_others(queue, tmp_path):
    mine = f"echo '4|mine|{tmp_path}'"
    jobs = [f"echo '{job}|rule_a|{tmp_path}'" for job in (31, 7)]
    queue("\n".join([*jobs, mine, "echo '5|rule_train|/elsewhere'"]))
    with pytest.raises(EmsError, match=r"from this folder: 7 31\. .* scancel 7 31$"):
        plan.check_queue()
    queue(mine)
    plan.check_queue()


def test_a_queue_that_does_not_answer_is_not_taken_for_an_empty_one(queue):
    queue("echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(EmsError, match=r"squeue: .*Unable to contact slurm controller"):
        plan.check_queue()


def test_a_machine_without_squeue_gets_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmsError, match=r"squeue: .*No such file"):
        plan.check_queue()


# --- what DVC puts in place

CLEAN, MODEL, TABLE = (
    f"results/mine/{path}" for path in ("text/clean.tsv", "models/a/model.json", "tables/t.tex")
)
HASH = 15 * "a"  # and a digit: of the settings
SOURCE = "0123456789abcdef"
LARGE = 2_000_000  # bytes: Snakemake keeps no checksum of such an input


class Project:
    """Results of three rules in a row, of which the first output is large."""

    def make(self, path, inputs, at, content="x", rate=1):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(content)
        os.utime(path, (at, at))
        checksums = {name: Made("mine")._identity(name, checksum=True) for name in inputs}
        record = {"rule": "train", "code": "ems", "conda_env": None, "container_img_url": None}
        record |= {"software_stack_hash": "", "record_format_version": 6, "input": sorted(inputs)}
        params = [f"['--experiment', 'mine', '--expect', '{HASH}{rate}']", repr(SOURCE)]
        record |= {"params": params, "starttime": at - 0.5, "endtime": at}
        record["input_checksums"] = {name: checksums[name] for name in inputs if name != CLEAN}
        _record_file(path, RECORDS).write_text(json.dumps(record))

    def all(self, start, rate=1):
        self.make(CLEAN, [], start, f"{rate}" * LARGE, rate)
        self.make(MODEL, [CLEAN], start + 1, f"model {rate}", rate)
        self.make(TABLE, [MODEL], start + 2, f"table {rate}")
        settings = {"stage": "train", "system": {"train": {"rate": rate}}}
        Made("mine").save({f"{HASH}{rate}": settings})

    def kept(self):
        """The content of all files, as DVC would put it into its cache."""
        files = (path for path in Path("results/mine").rglob("*") if path.is_file())
        return {str(path): path.read_bytes() for path in files}

    def put(self, files):
        for path, content in files.items():
            os.remove(path)
            Path(path).write_bytes(content)


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    project = Project()
    project.all(1000)
    project.first = project.kept()
    project.all(2000, rate=2)
    return project


def times():
    return [os.stat(path).st_mtime for path in (CLEAN, MODEL, TABLE)]


def test_nothing_changes_for_what_snakemake_made(project):
    before = project.kept(), times()
    made = Made("mine")
    assert made.restore() == []
    made.save({})
    assert (project.kept(), times()) == before


def test_another_revision_as_a_whole_gets_its_own_records_in_the_order_of_the_data(project):
    project.put(project.first)
    assert Made("mine").restore() == []
    assert 3000 < times()[0] <= times()[1] <= times()[2]
    record = json.loads(_record_file(MODEL, RECORDS).read_text())
    assert f"{HASH}1" in record["params"][0]
    Made("mine").save({})
    assert project.kept() == project.first


def test_it_is_made_again_where_its_inputs_are_of_a_third_one_large_or_small(project):
    project.put({path: data for path, data in project.first.items() if "/text/" not in path})
    assert Made("mine").restore() == [MODEL, TABLE]
    assert times()[1:] == [EARLIEST, EARLIEST]
    assert not _record_file(MODEL, RECORDS).exists()
    project.put({path: data for path, data in project.first.items() if "/models/" not in path})
    project.make(MODEL, [CLEAN], 3000, "another model")
    assert Made("mine").restore() == [TABLE]


def test_files_without_records_and_damaged_records_are_left_to_snakemake(project):
    for folder in ("text", "models", "tables"):
        Path(f"results/mine/{folder}/.made").write_text("{")
    project.put({path: data for path, data in project.first.items() if not path.endswith(".made")})
    before = times()
    assert Made("mine").restore() == []
    assert times() == before


def test_a_changed_setting_and_a_changed_source_are_said_with_what_runs_again(project):
    def job(name, expect, source):
        params = {"settings": ["--experiment", "mine", "--expect", expect], "code": source}
        rule, wildcards = SimpleNamespace(name="train"), {"system": name}
        return SimpleNamespace(output=[MODEL], rule=rule, wildcards=wildcards, params=params)

    new = {f"{HASH}3": {"stage": "train", "system": {"train": {"rate": 3}}}}
    jobs = [job(name, f"{HASH}3", SOURCE) for name in ("a", "b")]
    assert Made("mine").changes(jobs, new) == ["train.rate: 2 -> 3: a, b train again"]
    jobs = [job(name, f"{HASH}2", "fedcba9876543210") for name in "abcdef"]
    changed = "the source of `train` changed: a, b, c, 3 more train again"
    assert Made("mine").changes(jobs, {}) == [changed]


def test_settings_are_named_as_in_the_file_of_the_experiment():
    old = {"system": {"system": {"train": {"steps": 1}, "of": "a"}, "seed": 1}}
    new = {"system": {"system": {"train": {"steps": 1}}, "seed": 2}, "languages": ["en", "de"]}
    changes = ['languages: none -> ["en", "de"]', "of: a -> none", "seed: 1 -> 2"]
    assert differences(old, new) == changes


def test_what_dvc_tracks_as_a_whole_has_records_of_its_own():
    assert str(folder_of("results/a/costs/train/b.times.jsonl")) == "results/a/costs/train"
    assert str(folder_of("results/a/scores/ems/xsim.json")) == "results/a/scores"
    assert str(folder_of("results/tables/xsim.tex")) == "results/tables"
    assert folder_of("results/a/tables.pdf") is folder_of("data/opus/x.zip") is None


# --- the language pairs that share a job
def test_parts_follow_the_sizes_at_the_source_before_and_after_it_is_fetched(tmp_path):
    codes = ["cs", "de", "es", "fr", "nl"]
    own = {
        "name": "Own",
        "version": "v1",
        "source": f"{tmp_path}/mirror",
        "languages": codes,
    }
    value = edited(REAL, "languages", ["en", *codes]) | {"corpora": [own]}
    experiment = Settings(tmp_path, value).load(value)
    names = [f"{'-'.join(sorted(['en', code]))}.txt.zip" for code in codes]
    source, fetched = (tmp_path / name / "Own/v1/moses" for name in ("mirror", "data/opus"))
    source.mkdir(parents=True)
    for name, size in zip(names, (300_000, 800_000, 100_000, 100_000, 2_000_000), strict=True):
        (source / name).write_bytes(bytes(size))

    def parts(mb=50):
        own = parts_of(experiment, tmp_path / "data", mb)["Own", "v1"]
        assert list(own) == [name.partition(".")[0] for name in names]
        return list(dict.fromkeys(own.values()))

    assert parts() == ["cs-en..de-en", "en-es..en-nl"]  # at least a megabyte
    assert len(parts(mb=0)) == len(codes)
    fetched.parent.mkdir(parents=True)
    source.rename(fetched)
    assert parts() == ["cs-en..de-en", "en-es..en-nl"]
