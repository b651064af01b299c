"""Laws of `ems eval`: the workflow's own scores of any encoder, by hand, or the way to the data."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import needs
from made.corpora import write_tatoeba
from made.experiments import MINIMAL, SITE, Settings, edited
from made.models import write_command, write_model, write_peer
from made.scores import means

from ems.base.errors import EmsError
from ems.bench.encoders import CACHE_FOLDER
from ems.bench.evaluate import evaluate, evaluate_by_hand
from ems.bench.scores import read_score_file
from ems.commands.cli import main
from ems.model.encode import SentenceEncoder

PAIRS = {
    "deu": [("der hund", "the dog"), ("die katze", "the cat"), ("ein haus", "a house")],
    "fra": [("le chien", "the dog"), ("le chat", "the cat")],
}
TEXT = [line for pairs in PAIRS.values() for pair in pairs for line in pair] * 4


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with an experiment, its Tatoeba in place, and a model of ours; we are in it."""
    settings = Settings(tmp_path)
    for code, pairs in PAIRS.items():
        write_tatoeba(tmp_path, code, pairs)
    place = tmp_path / "data" / "evalsets" / "tatoeba" / "toy"
    place.parent.mkdir(parents=True)
    (tmp_path / "tatoeba").rename(place)
    write_model(tmp_path / "ours", ["en", "de", "fr"], TEXT, pieces=60)
    monkeypatch.chdir(tmp_path)
    return settings


def run(capfd, *arguments, expect=0):
    """What `ems eval` printed, or its error."""
    assert main(["eval", *map(str, arguments)]) == expect
    printed = capfd.readouterr()
    return printed.err.splitlines()[-1] if expect else printed.out


OURS = ("--model", "ours", "--bench", "tatoeba", "--out", "scores/ours")


def test_the_scores_are_those_of_the_workflow_and_the_summary_has_their_mean(here, capfd):
    printed = run(capfd, *OURS, "--name", "mine").splitlines()
    written = json.loads(Path("scores/ours/tatoeba.json").read_text())
    names = {"system": "ems", "benchmark": "tatoeba"}
    folders = {"tatoeba": Path("data/evalsets/tatoeba/toy")}
    evaluate(SentenceEncoder(Path("ours")), here.load(), names, folders, Path("x.json"))
    expected = json.loads(Path("x.json").read_text())
    assert {key for key in expected if expected[key] != written[key]} == {"system", "system_hash"}
    assert set(written) == set(expected)
    scores = read_score_file(Path("scores/ours/tatoeba.json"))
    assert scores.system == "mine"
    mean = sum(means(scores).values()) / 2
    head, line = (line.split() for line in printed)
    assert head == ["benchmark", "metric", "mine"]
    assert line == ["tatoeba", "P@1", f"{mean:.1f}"]


def test_unseen_languages_have_a_row_and_a_mean_of_their_own(here, capfd):
    """`deu` and `fra` are trained on, `swh` and `tgl` are not, and the same as English here."""
    for code in ("swh", "tgl"):
        write_tatoeba(Path("unseen"), code, [(english, english) for _, english in PAIRS["deu"]])
    for path in Path("unseen/tatoeba").iterdir():
        path.rename(Path("data/evalsets/tatoeba/toy") / path.name)
    both = {"version": "toy", "languages": ["de", "fr", "sw", "tl"]}
    here.write(edited(here.base, "evalsets.tatoeba", both))
    printed = [line.split() for line in run(capfd, *OURS).splitlines()[1:]]
    rows = json.loads(Path("scores/ours/tatoeba.json").read_text())["rows"]

    def mean(*codes):
        values = [row["value"] for row in rows if {row["source"], row["target"]} & {*codes}]
        return f"{sum(values) / len(values):.1f}"

    assert printed == [
        ["tatoeba,", "2", "trained", "languages", "P@1", mean("deu", "fra")],
        ["tatoeba,", "2", "unseen", "languages", "P@1", mean("swh", "tgl")],
    ]
    assert mean("deu", "fra") != mean("swh", "tgl") == "100.0"


def test_the_same_call_gives_the_same_bytes_with_and_without_the_cache(here, capfd):
    def scored(*flags):
        run(capfd, *OURS, *flags)
        return Path("scores/ours/tatoeba.json").read_bytes()

    kept = Path("results/mine") / CACHE_FOLDER
    first = scored("--no-cache")
    assert not kept.exists()
    assert scored() == first
    assert len(list(kept.glob("*.safetensors"))) == 4
    times = {path: path.stat().st_mtime_ns for path in kept.iterdir()}
    assert scored() == first
    assert {path: path.stat().st_mtime_ns for path in kept.iterdir()}.keys() == times.keys()
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


def test_an_export_with_n_grams_has_the_scores_of_its_model_and_no_code_of_it_is_run(here, capfd):
    needs(find_spec("sentence_transformers"), "sentence-transformers (pip install '.[peers]')")
    sizes = {"layers": 0, "table": 24, "ngrams": 1009}
    write_model(Path("spelt"), ["en", "de"], TEXT, pieces=60, sizes=sizes)
    Path("lines.txt").write_text("der hund\nthe dog\n", encoding="utf-8")
    export = ["export", "--model", "spelt", "--out", "exported", "--verify", "lines.txt"]
    assert main(export) == 0
    (Path("exported") / "ngram_embedding.py").write_text("raise SystemExit('run')")
    scores = []
    for name in ("spelt", "exported"):
        run(capfd, "--model", name, "--bench", "tatoeba", "--out", name + "-scores")
        scores.append(read_score_file(Path(name + "-scores/tatoeba.json")).labelled())
    assert scores[0] == scores[1]


def test_our_model_is_scored_on_the_languages_that_it_knows(here, capfd):
    write_model(Path("german"), ["en", "de"], TEXT, pieces=60)
    run(capfd, "--model", "german", "--bench", "tatoeba", "--out", "out")
    assert list(read_score_file(Path("out/tatoeba.json")).labelled()) == ["deu"]


def test_data_that_lie_elsewhere_are_named_by_their_folder(here, capfd):
    Path("data/evalsets/tatoeba/toy").rename("mine")
    run(capfd, *OURS, "--evalset", "tatoeba=mine")
    assert Path("scores/ours/tatoeba.json").is_file()


# --- what cannot be evaluated


def test_missing_data_are_told_with_the_target_that_fetches_them(here, capfd):
    Path("data/evalsets/tatoeba/toy/tatoeba.fra-eng.eng").unlink()
    message = run(capfd, *OURS, expect=1)
    assert "tatoeba: 1 files are missing: data/evalsets/tatoeba/toy/tatoeba.fra-eng.eng" in message
    assert "snakemake --config experiment=mine -- evalsets" in message
    assert not Path("scores").exists()
    message = run(capfd, *OURS, "--evalset", "tatoeba=nowhere", expect=1)
    assert "nowhere/tatoeba.deu-eng.deu" in message
    assert "check the folder" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--model", "ours", "--bench", "tatoba"),
            "--bench: unknown benchmark 'tatoba'; allowed: bucc2018, cls",
        ),
        (("--model", "ours", "--bench", "ntrex"), "configs/mine.yaml has no evalsets.ntrex"),
        (("--bench", "tatoeba"), "give either --model or --command"),
        (("--model", "x", "--command", "y", "--bench", "tatoeba"), "give either"),
        (("--command", "x", "--bench", "tatoeba"), "{lines} is missing"),
        (("--model", "ours", "--bench", "tatoeba", "--experiment", "no"), "no.yaml does not exist"),
    ],
)
def test_a_mistake_is_one_line(here, capfd, arguments, message):
    error = run(capfd, *arguments, "--out", "out", expect=1)
    assert message in error
    assert not Path("out").exists()


def test_a_model_without_a_language_of_the_experiment_is_told(here):
    write_model(Path("chinese"), ["zh", "ja"], TEXT, pieces=60)
    experiment = here.load(edited(MINIMAL, "seed", 2))
    with pytest.raises(
        EmsError,
        match="trained on ja, und, zh; fewer than two of them",
    ):
        evaluate_by_hand(experiment, ["tatoeba"], Path("out"), Path("data"), "chinese")
