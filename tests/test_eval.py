"""`ems eval` gives the workflow's scores for any encoder, or says where data are missing."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import needs
from made.corpora import write_tatoeba
from made.experiments import SITE, Settings, edited
from made.models import export, write_command, write_model, write_peer
from made.scores import means

from ems.bench.encoders import CACHE_FOLDER
from ems.bench.evaluate import Task, evaluate
from ems.bench.scores import read_score_file
from ems.commands.cli import main
from ems.model.encode import SentenceEncoder

PAIRS = {
    "deu": [("der hund", "the dog"), ("die katze", "the cat"), ("ein haus", "a house")],
    "fra": [("le chien", "the dog"), ("le chat", "the cat")],
}
TEXT = [line for pairs in PAIRS.values() for pair in pairs for line in pair] * 4
OURS = ("--model", "ours", "--bench", "tatoeba", "--out", "scores/ours")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with an experiment, its Tatoeba, and models of ours."""
    folder = tmp_path_factory.mktemp("eval")
    Settings(folder)
    for code, pairs in PAIRS.items():
        write_tatoeba(folder, code, pairs)
    (folder / "data/evalsets/tatoeba").mkdir(parents=True)
    (folder / "tatoeba").rename(folder / "data/evalsets/tatoeba/toy")
    languages = {"ours": ["en", "de", "fr"], "german": ["en", "de"], "chinese": ["zh", "ja"]}
    for name, known in languages.items():
        write_model(folder / name, known, TEXT, pieces=60)
    return folder


@pytest.fixture
def here(place, tmp_path, monkeypatch):
    """A copy of `place`, which is the working directory."""
    folder = shutil.copytree(place, tmp_path / "copy")
    monkeypatch.chdir(folder)
    return Settings(folder)


def run(capfd, *arguments, expect=0):
    """Return what `ems eval` prints, or the last line of its error."""
    assert main(["eval", *map(str, arguments)]) == expect
    printed = capfd.readouterr()
    return printed.err.splitlines()[-1] if expect else printed.out


def test_the_scores_are_those_of_the_workflow_and_the_summary_has_their_mean(here, capfd):
    printed = run(capfd, *OURS, "--name", "mine").splitlines()
    written = json.loads(Path("scores/ours/tatoeba.json").read_text())
    folders = {"tatoeba": Path("data/evalsets/tatoeba/toy")}
    task = Task(SentenceEncoder(Path("ours")), here.load(), "ems", "tatoeba", folders)
    evaluate(task, Path("x.json"))
    expected = json.loads(Path("x.json").read_text())
    assert {key for key in expected if expected[key] != written[key]} == {"system", "system_hash"}
    assert set(written) == set(expected)
    scores = read_score_file(Path("scores/ours/tatoeba.json"))
    assert scores.system == "mine"
    mean = sum(means(scores).values()) / 2
    head, line = (line.split() for line in printed)
    assert head == ["benchmark", "metric", "mine"]
    assert line == ["tatoeba,", "2", "trained", "languages", "P@1", f"{mean:.1f}"]


def test_unseen_languages_have_a_row_and_a_mean_of_their_own(here, capfd):
    for code in ("swh", "tgl"):
        write_tatoeba(Path("unseen"), code, [(english, english) for _, english in PAIRS["deu"]])
    for path in Path("unseen/tatoeba").iterdir():
        path.rename(Path("data/evalsets/tatoeba/toy") / path.name)
    both = {"version": "toy", "languages": ["de", "fr", "sw", "tl"]}
    here.write(edited(here.base, "evalsets.tatoeba", both))
    printed = [line.split() for line in run(capfd, *OURS).splitlines()[1:]]
    means = read_score_file(Path("scores/ours/tatoeba.json")).means()
    (trained, _, low), (unseen, _, high) = means
    assert (trained, unseen) == ("2 trained languages", "2 unseen languages")
    assert low < high == 100
    assert printed == [
        ["tatoeba,", *trained.split(), "P@1", f"{low:.1f}"],
        ["tatoeba,", *unseen.split(), "P@1", "100.0"],
    ]


def test_the_same_call_gives_the_same_bytes_with_and_without_the_cache(here, capfd):
    def scored(*flags):
        run(capfd, *OURS, *flags)
        return Path("scores/ours/tatoeba.json").read_bytes()

    kept = Path("results/mine") / CACHE_FOLDER
    first = scored("--no-cache")
    assert not kept.exists()
    assert scored() == first
    entries = set(kept.glob("*.safetensors"))
    assert len(entries) == 4
    assert scored() == first
    assert set(kept.iterdir()) == entries
    here.site({**SITE, "embeddings_mb": 0})
    for path in kept.iterdir():
        path.unlink()
    assert scored() == first
    assert not list(kept.iterdir())


def test_another_model_at_the_same_place_has_another_hash(here, capfd):
    def system_hash(model):
        run(capfd, "--model", model, "--bench", "tatoeba", "--out", "out", "--name", "x")
        return json.loads(Path("out/tatoeba.json").read_text())["system_hash"]

    first = system_hash("ours")
    assert system_hash("ours") == first
    write_model(Path("new"), ["en", "de", "fr"], TEXT, pieces=60, seed=1)
    Path("ours").rename("old")
    Path("new").rename("ours")
    assert system_hash("ours") != first


@pytest.mark.slow
def test_a_command_and_a_sentence_transformers_folder_are_evaluated(here, capfd):
    command = write_command(Path("tool"))
    printed = run(capfd, "--command", command, "--bench", "tatoeba", "--out", "out")
    assert "python" in printed.splitlines()[0]  # its program names it
    assert read_score_file(Path("out/tatoeba.json")).metric == "P@1"
    needs(find_spec("sentence_transformers"), "sentence-transformers (pip install '.[peers]')")
    write_peer(Path("peer").resolve(), [word for line in TEXT for word in line.split()])
    printed = run(capfd, "--model", "peer", "--bench", "tatoeba", "--out", "out")
    assert printed.splitlines()[0].split()[-1] == "peer"
    assert len(read_score_file(Path("out/tatoeba.json")).labelled()) == 2


@pytest.mark.slow
def test_an_export_with_ngrams_has_the_scores_of_its_model_and_its_code_is_not_run(here, capfd):
    needs(find_spec("sentence_transformers"), "sentence-transformers (pip install '.[peers]')")
    sizes = {"layers": 0, "table": 24, "ngrams": 1009}
    write_model(Path("spelt"), ["en", "de"], TEXT, pieces=60, sizes=sizes)
    export("spelt", "exported")
    (Path("exported") / "ngram_embedding.py").write_text("raise SystemExit('run')")
    scores = []
    for name in ("spelt", "exported"):
        run(capfd, "--model", name, "--bench", "tatoeba", "--out", name + "-scores")
        scores.append(read_score_file(Path(name + "-scores/tatoeba.json")).labelled())
    assert scores[0] == scores[1]


def test_a_model_is_scored_on_its_languages_and_data_may_lie_elsewhere(here, capfd):
    Path("data/evalsets/tatoeba/toy").rename("mine")
    words = ("--bench", "tatoeba", "--out", "out", "--evalset", "tatoeba=mine")
    run(capfd, "--model", "german", *words)
    assert list(read_score_file(Path("out/tatoeba.json")).labelled()) == ["deu"]


# --- errors


def test_an_error_names_missing_data_and_the_command_that_fetches_them(here, capfd):
    Path("data/evalsets/tatoeba/toy/tatoeba.fra-eng.eng").unlink()
    message = run(capfd, *OURS, expect=1)
    assert "tatoeba: 1 files are missing: data/evalsets/tatoeba/toy/tatoeba.fra-eng.eng" in message
    assert "snakemake --config experiment=mine -- evalsets" in message
    assert not Path("scores").exists()
    message = run(capfd, *OURS, "--evalset", "tatoeba=nowhere", expect=1)
    assert "nowhere: no such file (--evalset tatoeba: " in message


def test_a_model_without_two_languages_of_the_experiment_is_an_error(here, capfd):
    words = ("--model", "chinese", "--bench", "tatoeba", "--out", "out")
    message = run(capfd, *words, expect=1)
    assert "trained on ja, und, zh; fewer than two of them are in experiment mine" in message
