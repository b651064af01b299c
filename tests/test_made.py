"""Laws of the records beside files: what DVC puts in place counts only if it fits its inputs."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from ems.workflow.made import EARLIEST, RECORDS, Made, _record_file, differences, folder_of

CLEAN, MODEL, TABLE = (
    f"results/mine/{path}" for path in ("text/clean.tsv", "models/a/model.json", "tables/t.tex")
)
HASH = 15 * "a"  # and a digit: of the settings
SOURCE = "0123456789abcdef"
LARGE = 2_000_000  # bytes: Snakemake keeps no checksum of such an input


class Project:
    """Results of three rules in a row, of which the first output is large."""

    def make(self, path, inputs, at, content="x", rate=1):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as handle:
            handle.write(content)
        os.utime(path, (at, at))
        checksums = {name: Made("mine")._identity(name, checksum=True) for name in inputs}
        record = {
            **{"rule": "train", "code": "ems", "conda_env": None, "container_img_url": None},
            **{"software_stack_hash": "", "record_format_version": 6},
            "params": [
                f"['--experiment', 'mine', '--expect', '{HASH}{rate}']",
                "'0123456789abcdef'",
            ],
            **{"input": sorted(inputs), "starttime": at - 0.5, "endtime": at},
            "input_checksums": {name: of for name, of in checksums.items() if name != CLEAN},
        }
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
            with open(path, "wb") as handle:
                handle.write(content)


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
    assert times() == sorted(times())
    assert times()[0] > 3000
    record = json.loads(_record_file(MODEL, RECORDS).read_text())
    assert f"{HASH}1" in record["params"][0]
    made = Made("mine")
    made.save({})
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
        with open(f"results/mine/{folder}/.made", "w") as handle:
            handle.write("{")
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
    (line,) = Made("mine").changes(jobs, {})
    assert line == "the source of `train` changed: a, b, c, 3 more train again"


def test_settings_are_named_as_in_the_file_of_the_experiment():
    old = {"system": {"system": {"train": {"steps": 1}, "of": "a"}, "seed": 1}}
    new = {"system": {"system": {"train": {"steps": 1}}, "seed": 2}, "languages": ["en", "de"]}
    assert differences(old, new) == [
        'languages: none -> ["en", "de"]',
        "of: a -> none",
        "seed: 1 -> 2",
    ]


def test_what_dvc_tracks_as_a_whole_has_records_of_its_own():
    assert str(folder_of("results/a/costs/train/b.times.jsonl")) == "results/a/costs/train"
    assert str(folder_of("results/a/scores/ems/xsim.json")) == "results/a/scores"
    assert str(folder_of("results/tables/xsim.tex")) == "results/tables"
    assert folder_of("results/a/tables.pdf") is folder_of("data/opus/x.zip") is None
