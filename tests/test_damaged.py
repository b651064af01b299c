"""Laws of the advice for a damaged file: it names what to delete and a command that makes it again,
whatever the file is."""

import pickle
import re
import shlex

import pytest

from ems.base.errors import Damaged, advice


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with the experiment `tiny`, of which nothing has run."""
    (tmp_path / "configs").mkdir()
    for name in ("Snakefile", "configs/tiny.yaml"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def touched(*paths):
    """Empty files at those paths where nothing is."""
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.exists() or path.touch()


SHARD = "results/tiny/shards/shared/Demo/v1/de-en"
INDEX = "results/tiny/shards/shared/index.json"
MODEL = "results/tiny/models/ems"
TATOEBA = "data/evalsets/tatoeba/v1/tatoeba.deu-eng.deu"
ZIP = "data/opus/Demo/v1/moses/de-en.txt.zip"
TABLE = "results/tables/corpora.tex"
TINY = ["snakemake", "--config", "experiment=tiny", "--"]
ALONE = ["scores/ems/tatoeba.json", "reports/decontamination.json", "tables/tatoeba.tex"]
TEXT = ["text/evalkeys.tsv", "text/clean/Demo/v1/de-en.tsv", "text/segmented/Demo/v1/de-en.tsv"]
TEXT += ["vocab/shared/vocabulary.model"]
OF_RESULTS = [  # the damaged file, what to delete, what to ask Snakemake for
    (f"{SHARD}/00000/de.ids", SHARD, [SHARD, INDEX]),
    (f"{SHARD}/manifest.json", SHARD, [SHARD, INDEX]),
    (SHARD, SHARD, [SHARD, INDEX]),
    (INDEX, INDEX, [INDEX]),
    ("results/tiny/shards/shared", "results/tiny/shards/shared", [INDEX]),
    (f"{MODEL}/model.safetensors", MODEL, [f"{MODEL}/model.json"]),
    (f"{MODEL}/model.json", MODEL, [f"{MODEL}/model.json"]),
    ("results/tiny/costs/train/ems.times.jsonl", MODEL, [f"{MODEL}/model.json"]),
    *((path, path, [path, "&&", *TINY, "text"]) for path in (f"results/tiny/{p}" for p in TEXT)),
    *((path, path, [path]) for path in (f"results/tiny/{p}" for p in ALONE)),
]
OF_DOCUMENTS = ["data/documents/Own/v1/de.txt.gz", "data/dumps/Wikipedia/20260101/de.xml.bz2"]
OF_DOCUMENTS += ["data/wikipedia/20260101/de.txt.gz", "data/wikipedia/20260101/de.txt.json"]
OF_DATA = [
    (ZIP, ZIP, [ZIP]),
    (TATOEBA, TATOEBA, ["evalsets"]),
    ("data/embedded/opus/Demo/v1/x.zip", "data/embedded", ["data/embedded/manifest.json"]),
    *((path, path, [path]) for path in OF_DOCUMENTS),
    (TABLE, TABLE, [TABLE]),  # of the experiment that is selected
]
FOLLOWED = re.compile(r"delete (?P<path>.+) and make it again: `(?P<command>[^`]+)`")


def followed(text):
    """The path that an advice says to delete, and the words of its command."""
    match = FOLLOWED.fullmatch(text)
    assert match, text
    (path,) = shlex.split(match["path"])
    return path, shlex.split(match["command"])


@pytest.mark.parametrize(("path", "doomed", "targets"), [*OF_RESULTS, *OF_DATA])
def test_a_file_is_made_again_by_the_output_that_holds_it_and_its_experiment(
    project, path, doomed, targets
):
    """A download is no experiment's: by the one that is known, or the one that is selected."""
    touched(project / path, *[project / doomed] * path.startswith("results/tiny"))
    of_tiny = ["--config", "experiment=tiny"] * path.startswith("results/tiny")
    assert followed(advice(path)) == (doomed, ["snakemake", *of_tiny, "--", *targets])
    words = of_tiny or ["--config", "experiment=mine"]
    assert followed(advice(path, "mine")) == (doomed, ["snakemake", *words, "--", *targets])
    assert advice(project / path) == advice(f"results/../{path}") == advice(path)


def test_a_file_of_an_archive_is_made_again_by_its_manifest(project):
    """Snakemake waits for the manifest of a unit and knows none of the files in it."""
    folder = "data/evalsets/xnli/1.0"
    manifest = f"{folder}/xnli-1.0.manifest.json"
    touched(project / f"{folder}/de/dev.tsv", project / f"{folder}/other.manifest.json")
    (project / manifest).write_text('{"files": {"de/dev.tsv": {}}}')
    expected = (manifest, ["snakemake", "--", manifest])
    assert followed(advice(f"{folder}/de/dev.tsv")) == followed(advice(manifest)) == expected


def test_what_is_missing_is_made_without_deleting_anything(project):
    assert advice(INDEX) == f"make it: `snakemake --config experiment=tiny -- {INDEX}`"
    assert advice(ZIP) == f"make it: `snakemake -- {ZIP}`"
    touched(project / MODEL / "model.json")  # but one job makes all of a model's folder
    assert followed(advice(f"{MODEL}/model.safetensors"))[0] == MODEL


@pytest.mark.parametrize(
    "path",
    [
        "results/tiny/costs/train/ems.json",  # not worth it to do the job again
        "results/tiny/state/ems/1f/step-00000010/state.json",  # made by the run
        f"{ZIP}.lock.json",  # made by the download
    ],
)
def test_what_no_job_of_the_workflow_can_make_alone_goes_and_the_command_runs_again(project, path):
    touched(project / path)
    assert advice(path) == f"delete {path} and run the same command again"


def test_names_are_quoted_for_the_shell(project):
    for folder in ("big disk/it's", str(project.parent / "other disk")):
        path = f"{folder}/opus/Demo/v1/moses/de-en.txt.zip"
        touched(project / path)
        assert followed(advice(path, data=folder)) == (path, ["snakemake", "--", path])


def test_of_a_file_that_the_workflow_does_not_make_the_advice_says_so(project):
    for path in ("mine/model.json", "results/unknown/scores/x/tatoeba.json", "data", "datas/x"):
        assert advice(path) == "make or fetch it first"
        touched(project / path)
        assert advice(path) == "make or fetch it again"


def test_outside_of_a_project_nothing_is_said_of_snakemake(project):
    (project / "Snakefile").unlink()
    assert "snakemake" not in advice(INDEX)


def test_the_error_says_what_is_wrong_and_what_to_do_in_one_line_and_crosses_processes(project):
    touched(project / INDEX, project / ZIP)
    error = pickle.loads(pickle.dumps(Damaged(project / INDEX, "line 3: expected a number")))
    assert str(error) == f"{project / INDEX}: line 3: expected a number; {advice(INDEX)}"
    error = Damaged(project / ZIP, "cut short")
    assert error.finding == f"{project / ZIP}: cut short"
    assert error.message("tiny", "data") == f"{error.finding}; {advice(ZIP, 'tiny')}"
