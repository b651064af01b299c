"""Laws of damaged files: a file of a finished run that has a flipped bit, is cut short, empty, lost
or replaced is one line of its reader, which ends in a command that makes it again.
"""

import os
import pickle
import shlex
import shutil
from pathlib import Path

import pytest
from conftest import Project, copied
from made import golden
from made.experiments import shipped
from made.places import (
    ARCHIVE,
    CLEAN,
    INDEX,
    KEYS,
    MODEL,
    REPORT,
    SAMPLE,
    SCORES,
    SEGMENTED,
    SHARD,
    TATOEBA,
    VOCABULARY,
    cut,
    cut_between_lines,
    empty,
    flip,
    replace_by_a_folder,
    replace_by_text,
)

from ems.base.errors import Damaged, EmsError, advice
from ems.corpora.content import check_downloads, check_file
from ems.corpora.moses import count_pairs
from ems.model.encode import SentenceEncoder
from ems.shards.index import read_index, shards_in
from ems.shards.reader import PairStore
from ems.shards.shard import Shard, verify_shards
from ems.shards.writer import write_shards
from ems.tables.corpora import read_report
from ems.tables.logs import read_losses
from ems.tables.models import write_models_table
from ems.tables.scores import read_scores
from ems.text.evalkeys import EvalKeys
from ems.text.subwords import train_vocabulary, write_sample
from ems.text.vocabulary_report import write_vocabulary_report
from ems.train.data import Data
from ems.train.job import _checked_vocabulary


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with the experiment `tiny`, of which nothing has run."""
    (tmp_path / "configs").mkdir()
    for name in ("Snakefile", "configs/tiny.yaml"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def touched(*paths):
    for path in map(Path, paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.exists() or path.touch()


def test_the_advice_for_a_missing_and_for_a_damaged_file_of_every_kind(project):
    """tests/golden/advice.txt: a path, and what to do if nothing is there, and if it is damaged."""

    def both(path):
        (project / "results").mkdir(exist_ok=True)
        missing = advice(path)
        touched(path)
        assert advice(project / path) == advice(f"results/../{path}") == advice(path)
        damaged = advice(path)
        for folder in ("results", "data"):
            shutil.rmtree(project / folder, ignore_errors=True)
        return f"missing: {missing}\ndamaged: {damaged}"

    golden.replay("advice.txt", both)


def again(*paths, words=""):
    return f"delete {shlex.join(map(str, paths))} and make it again: `snakemake {words}-- {{}}`"


def test_a_download_is_made_again_for_the_experiment_that_reads_it(project):
    """The lists of what experiments have fetched of the corpus go, too."""
    receipts = [f"results/{name}/fetched/opus/Demo/v1" for name in ("mine", "tiny")]
    touched(ARCHIVE, *(f"{folder}/moses.json" for folder in receipts))
    expected = again(ARCHIVE, *receipts, words="--config experiment=mine ").format("data")
    assert advice(ARCHIVE, "mine") == expected


def test_a_file_of_an_archive_is_made_again_by_its_manifest(project):
    """A job knows the manifests of units, and none of the files in them."""
    folder = "data/evalsets/xnli/1.0"
    manifest = f"{folder}/xnli-1.0.manifest.json"
    touched(f"{folder}/de/dev.tsv", f"{folder}/other.manifest.json")
    (project / manifest).write_text('{"files": {"de/dev.tsv": {}}}')
    for path in (f"{folder}/de/dev.tsv", manifest):
        assert advice(path) == again(manifest).format("evalsets")


def test_a_missing_file_of_a_model_folder_means_the_whole_folder(project):
    touched(MODEL / "model.json")
    assert advice(MODEL / "model.safetensors").startswith(f"delete {MODEL} and make it again")


def test_names_are_quoted_for_the_shell(project):
    for folder in ("big disk/it's", str(project.parent / "other disk")):
        touched(path := f"{folder}/opus/Demo/v1/moses/de-en.txt.zip")
        assert advice(path, data=folder) == again(path).format("data")


def test_outside_of_a_project_nothing_is_said_of_snakemake(project):
    (project / "Snakefile").unlink()
    assert "snakemake" not in advice(INDEX)


def test_the_error_is_one_line_and_crosses_processes(project):
    touched(INDEX, ARCHIVE)
    error = pickle.loads(pickle.dumps(Damaged(INDEX, "line 3: expected a number")))
    assert str(error) == f"{INDEX}: line 3: expected a number; {advice(INDEX)}"
    error = Damaged(ARCHIVE, "cut short")
    assert error.finding == f"{ARCHIVE}: cut short"
    assert error.message("tiny", "data") == f"{error.finding}; {advice(ARCHIVE, 'tiny')}"


# --- the files of a finished run

OUT = Path("out")
DAMAGES = [flip, cut, empty, replace_by_text, os.unlink, replace_by_a_folder]


def read_vocabulary():
    store = PairStore(read_index(INDEX)["train"], ["en", "de", "zh", "ja"], 60)
    _checked_vocabulary(Data(store, None, VOCABULARY))


OF_SHARD = ("de.ids", "en.offsets", "lines", "manifest.json")
OF_MODEL = ("model.json", "model.safetensors", "vocabulary.model")
READERS = {  # damaged file -> what reads it
    KEYS: lambda: EvalKeys([KEYS], "primary"),
    CLEAN: lambda: write_sample(shipped("tiny"), [CLEAN], OUT / "sample.txt"),
    SEGMENTED: lambda: write_shards(SEGMENTED, VOCABULARY, OUT / "shard"),
    SAMPLE: lambda: train_vocabulary(shipped("tiny"), SAMPLE, OUT / "v.model"),
    SAMPLE.with_suffix(".languages"): lambda: write_vocabulary_report(
        VOCABULARY, SAMPLE, OUT / "r.json"
    ),
    VOCABULARY: read_vocabulary,
    **dict.fromkeys((SHARD / name for name in OF_SHARD), lambda: verify_shards([Shard(SHARD)])),
    SHARD.parent / "manifest.json": lambda: shards_in(SHARD.parent),
    INDEX: lambda: read_index(INDEX),
    **dict.fromkeys((MODEL / name for name in OF_MODEL), lambda: SentenceEncoder(MODEL)),
    MODEL / "heads.safetensors": lambda: write_models_table(
        [MODEL / "model.json"], REPORT, [], OUT / "t.tex"
    ),
    MODEL / "losses.jsonl": lambda: read_losses(MODEL / "losses.jsonl"),
    SCORES: lambda: read_scores([SCORES], "tatoeba"),
    REPORT: lambda: read_report(REPORT),
    ARCHIVE: lambda: count_pairs(ARCHIVE, "Demo", "de-en"),
    TATOEBA: lambda: check_file(TATOEBA),
}
CASES = [(path, damage) for path in READERS for damage in DAMAGES]
CASES.remove((MODEL / "heads.safetensors", flip))  # of which a table reads the sizes only
# as a copy to a full disk may leave a file of lines: nothing is wrong but its length
CASES += [(path, cut_between_lines) for path in (KEYS, CLEAN, SEGMENTED, SAMPLE, TATOEBA)]


@pytest.fixture(scope="module")
def run(tiny_run: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of a finished run, in which each test mends what it spoils."""
    return copied(tiny_run, tmp_path_factory.mktemp("damaged") / "project").folder


@pytest.fixture
def spoil(run, monkeypatch):
    """A function that spoils a file of the run until the test is over."""
    monkeypatch.chdir(run)
    kept = []

    def act(path, damage):
        kept.append((path, path.read_bytes()))
        damage(path)

    yield act
    for path, content in kept:
        if path.is_dir():
            path.rmdir()
        path.write_bytes(content)
    shutil.rmtree(OUT, ignore_errors=True)


def check(read):
    with pytest.raises(Damaged) as error:
        read()
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(advice(error.value.path))
    assert "snakemake" in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "damage"), CASES, ids=[f"{p} {d.__name__}" for p, d in CASES])
def test_a_damaged_file_is_one_line_that_says_what_makes_it_again(path, damage, spoil):
    spoil(path, damage)
    check(READERS[path])


@pytest.mark.slow
def test_every_download_that_changed_is_found_and_one_that_was_deleted_is_none(spoil):
    count, damaged = check_downloads(Path("data"))
    assert count > 10
    assert damaged == []
    spoil(ARCHIVE, cut)
    spoil(TATOEBA, flip)
    spoil(ARCHIVE.with_name("en-zh.txt.zip"), os.unlink)
    assert [error.path for error in check_downloads(Path("data"))[1]] == [TATOEBA, ARCHIVE]
    with pytest.raises(EmsError, match="absent: no such folder; name the folder `data`"):
        check_downloads(Path("absent"))


@pytest.mark.slow
def test_the_sample_of_a_vocabulary_is_drawn_of_whole_files_only(spoil):
    spoil(SEGMENTED, cut_between_lines)
    check(lambda: write_sample(shipped("tiny"), [SEGMENTED], OUT / "sample.txt"))
