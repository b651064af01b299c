"""The advice for a damaged file works: it is followed word by word on a finished run, and then
everything is as it was, without training again.
"""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from conftest import copied
from made.damaged import (
    ARCHIVE,
    CLEAN,
    INDEX,
    KEYS,
    MODEL,
    REPORT,
    RUN,
    SCORES,
    SEGMENTED,
    SHARD,
    TATOEBA,
    VOCABULARY,
    cut,
    cut_between_lines,
    empty,
    flip,
)

FOLLOWED = re.compile(r"delete (.+) and make it again: `([^`]+)`|make it: `([^`]+)`")
AGAIN = re.compile(r"delete (.+) and run the same command again")
MIRRORED = "data/embedded/opus/Demo/v1/moses/de-en.txt.zip"
PAIR = "--corpus Demo --version v1 --pair de-en"
TINY = "--experiment tiny"
EVERY = " ".join(f"{RUN}/scores/{name}/tatoeba.json" for name in ("ems", "untrained", "char-ngram"))
CLEANING = f"clean {TINY} {PAIR} --archives {ARCHIVE} --keys {KEYS} --out out.tsv"
FETCHING = f"fetch --source data/embedded/opus {PAIR} --out {ARCHIVE}"
TRAINING = f"train {TINY} --system untrained --shards {INDEX} --vocabulary {VOCABULARY}"
EVALKEYS = f"evalkeys {TINY} --evalset tatoeba={TATOEBA.parent} --out out/keys.tsv"


def no_json(path):
    path.write_text("[]")


DAMAGES = {  # what is damaged -> (file, damage, the command of ems that finds it)
    "shard": (SHARD / "de.ids", flip, f"verify --index {INDEX}"),
    "index": (INDEX, no_json, f"verify --index {INDEX}"),
    "vocabulary": (VOCABULARY, flip, f"{TRAINING} --state out/state --out out/model"),
    "weights": (
        *(MODEL / "model.safetensors", cut),
        f"encode --model {MODEL} --language de --source README.md --out out.npy",
    ),
    "scores": (SCORES, no_json, f"table tatoeba {TINY} --sources {EVERY} --out out/t.tex"),
    "evaluation keys": (KEYS, cut_between_lines, CLEANING),
    "clean text": (CLEAN, empty, f"segment {TINY} --source {CLEAN} --out out/de-en.tsv"),
    "segmented text": (
        *(SEGMENTED, Path.unlink),
        f"shards --source {SEGMENTED} --vocabulary {VOCABULARY} --out out/shard",
    ),
    "report": (REPORT, flip, f"table corpora {TINY} --sources {REPORT} --out out/c.tex"),
    "archive": (ARCHIVE, cut, CLEANING),
    "download": (ARCHIVE, flip, f"verify --data data {TINY}"),
    "unit of an evaluation set": (TATOEBA, flip, f"verify --data data {TINY}"),
    "evaluation set": (TATOEBA, cut_between_lines, EVALKEYS),
    "lock": (ARCHIVE.with_name(f"{ARCHIVE.name}.lock.json"), no_json, FETCHING),
    "mirror": (MIRRORED, cut, FETCHING),
    "costs": (
        *(RUN / "costs/train/ems.json", cut),
        f"costs {TINY} --folder {RUN / 'costs'} --out out/costs.tex",
    ),
}


@pytest.fixture(scope="module")
def run(tiny_run, tmp_path_factory):
    """A copy of a finished run, in which each test mends what it spoils."""
    return copied(tiny_run, tmp_path_factory.mktemp("damaged") / "project")


def follow(run, message):
    """Delete what the message names, and run the command that it names."""
    again = AGAIN.search(message)
    deleted, *commands = (again[1],) if again else FOLLOWED.search(message).groups()
    for name in shlex.split(deleted or ""):
        path = run.folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for command in filter(None, commands):
        run.run("sh", "-c", command)


@pytest.mark.parametrize("what", DAMAGES)
def test_the_advice_for_a_damaged_file_works_word_by_word(what, run):
    path, damage, command = DAMAGES[what]
    damage(run.folder / path)
    lines = run.run("ems", *command.split(), expect=1).stderr.splitlines()
    assert "Traceback" not in "".join(lines)
    follow(run, lines[-1])
    run.run("ems", *command.split())


def contents(project):
    """Every byte of what is made, without what differs from run to run."""
    files = [path for path in (project.folder / "results").rglob("*") if path.is_file()]
    files += (project.folder / "data").rglob("*.zip")
    names = {path: path.relative_to(project.folder).as_posix() for path in files}
    return {
        name: path.read_bytes()
        for path, name in names.items()
        if not name.startswith(("results/tiny/costs", "results/tiny/logs"))
        and not name.endswith((".snakemake_timestamp", ".svg", ".png", "figures/.made"))
    }


def test_after_all_advice_everything_is_as_it_was_and_only_times_are_drawn_again(tiny_run, run):
    """A model that was trained again took another time, which one figure shows."""
    made = re.findall(r"^ *(?:local)?rule (\w+):", run.snakemake("all"), re.MULTILINE)
    assert set(made) <= {"timed_figure", "all"}
    assert "Nothing to be done" in run.snakemake("all")
    assert contents(run) == contents(tiny_run)
