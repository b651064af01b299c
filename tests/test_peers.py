"""Laws of encoders that are not ours: their vectors as they are, checked, and a clear word else."""

import json
import re
import shutil
import sys
from dataclasses import replace
from importlib.util import find_spec
from typing import get_args

import numpy as np
import pytest
import torch
from conftest import ROOT, needs
from made.bench import scored
from made.corpora import write_tatoeba
from made.experiments import MINIMAL, Settings, edited, shipped
from made.models import write_command, write_model, write_peer
from made.scores import values

from ems.base.errors import EmsError
from ems.base.provenance import source_hash
from ems.bench import peers
from ems.bench.encoders import MODULES, make_encoder, model_files
from ems.bench.peers import CommandEncoder, SentenceTransformersEncoder
from ems.config.file import Kind
from ems.config.stages import stage_hash
from ems.config.systems import SystemSettings

LINES = ["ab  cab", "a\u2028b", "", "dad", "fe\u0301e"]
TIDY = ["ab cab", "a b", "", "dad", "f\u00e9e"]


def refusal(call, *arguments):
    with pytest.raises(EmsError) as error:
        call(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


# --- a command


def test_a_command_gets_tidied_lines_and_the_language_and_its_rows_come_back(tmp_path):
    source = """
import sys, numpy as np
lines, language, out = sys.argv[1:]
open(sys.argv[0] + ".saw", "ab").write(open(lines, "rb").read() + language.encode())
rows = open(lines, encoding="utf-8", newline="\\n").read().split("\\n")[:-1]
np.save(open(out, "wb"), np.array([[len(row), 1] for row in rows], np.float32))
"""
    vectors = CommandEncoder(write_command(tmp_path, source)).encode(LINES, "de")
    assert vectors.dtype == np.float32
    assert vectors[:, 0].tolist() == [len(line) for line in TIDY]
    saw = (tmp_path / "encode.py.saw").read_text()
    assert saw == "".join(f"{line}\n" for line in TIDY) + "de"


def test_many_lines_go_in_parts_and_come_back_in_order(tmp_path, monkeypatch):
    lines = [f"a{'b' * (at % 7)}" for at in range(23)]
    encoder = CommandEncoder(write_command(tmp_path))
    whole = encoder.encode(lines, "en")
    monkeypatch.setattr(peers, "CALL_LINES", 5)
    assert encoder.encode(lines, "en").tobytes() == whole.tobytes()
    assert whole.shape == (23, 16)
    assert encoder.encode([], "en").shape[0] == 0


def test_no_shell_runs_a_command_and_its_words_may_be_quoted(tmp_path):
    script = tmp_path / "a folder" / "x.py"
    write_command(script.parent)
    (script.parent / "encode.py").rename(script)
    command = f"'{sys.executable}' '{script}' {{lines}} ';' {{out}}"
    assert CommandEncoder(command).encode(["abc"], "en").shape == (1, 16)


FAILURES = [
    ("import sys; sys.exit('the model is not there')", "exit status 1.*the model is not there"),
    ("print('x' * 9000, file=sys.stderr); raise ValueError('at the end')", "NameError|at the end"),
    ("pass", "succeeded but did not write the file"),
    ("open(sys.argv[3], 'w').write('text')", "is not a valid .npy"),
    ("np.savez(open(sys.argv[3], 'wb'), np.ones((2, 3)))", "is not a valid .npy"),
    ("save(np.array([{}, {}], object))", "is not a valid .npy"),
    ("save(np.ones((2, 3)))", r"expected float32\[2, d\], found float64\[2, 3\]"),
    ("save(np.ones(2, np.float32))", r"expected float32\[2, d\], found float32\[2\]"),
    ("save(np.ones((3, 3), np.float32))", "a vector for each of 2 lines, found float32"),
    ("save(np.ones((2, 0), np.float32))", "a vector for each of 2 lines, found float32"),
    ("save(np.array([[1], [np.nan]], np.float32))", "the vector of line 2 is not finite"),
    ("save(np.array([[np.inf], [1]], np.float32))", "the vector of line 1 is not finite"),
]


@pytest.mark.parametrize(("source", "message"), FAILURES)
def test_a_bad_answer_of_a_command_is_told(tmp_path, source, message):
    head = "import sys, numpy as np\ndef save(x): np.save(open(sys.argv[3], 'wb'), x)\n"
    encoder = CommandEncoder(write_command(tmp_path, head + source))
    error = refusal(encoder.encode, ["one", "two"], "en")
    assert re.search(message, error), error
    assert len(error) < 1000


def test_vectors_that_change_their_width_are_told(tmp_path, monkeypatch):
    source = """
import sys, numpy as np
count = open(sys.argv[1]).read().count("\\n")
np.save(open(sys.argv[3], "wb"), np.ones((count, count), np.float32))
"""
    monkeypatch.setattr(peers, "CALL_LINES", 3)
    encoder = CommandEncoder(write_command(tmp_path, source))
    assert "vectors of width 2; earlier ones had 3" in refusal(encoder.encode, ["x"] * 5, "en")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("encode {lines}", "{out} is missing"),
        ("encode {out}", "{lines} is missing"),
        ("encode '{lines} {out}", "check its quotes"),
    ],
)
def test_a_command_without_its_files_is_told_before_it_runs(command, message):
    assert message in refusal(CommandEncoder, command)


def test_a_program_that_is_not_there_is_told():
    message = refusal(CommandEncoder("no-such-program {lines} {out}").encode, ["x"], "en")
    assert re.search("no-such-program.*install it", message)


def test_a_command_is_another_one_when_its_words_or_its_files_change(tmp_path):
    command = write_command(tmp_path)
    first = CommandEncoder(command).identity
    assert CommandEncoder(command).identity == first
    assert CommandEncoder(f"{command} --fast").identity != first
    (tmp_path / "encode.py").write_text("another")
    assert CommandEncoder(command).identity != first


def test_files_of_any_language_in_a_command_are_files_of_its(tmp_path):
    template = tmp_path / "[x] {language}.vec"
    command = f"{write_command(tmp_path)} '{template}'"
    seen = [CommandEncoder(command).identity]
    for code in ("de", "zh-Hans"):
        (tmp_path / f"[x] {code}.vec").write_text("1 1")
        seen.append(CommandEncoder(command).identity)
    (tmp_path / "x de.vec").write_text("not of the command")
    assert len(set(seen)) == 3
    assert CommandEncoder(command).identity == seen[-1]
    bare = SystemSettings("command", place=f"run {tmp_path}/{{language}}.vec {{lines}} {{out}}")
    assert model_files(bare) == sorted(map(str, tmp_path.glob("*.vec")))


# --- sentence-transformers


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    message = refusal(SentenceTransformersEncoder, "sentence-transformers/LaBSE")
    assert "pip install '.[peers]'" in message
    assert message.startswith("sentence-transformers/LaBSE: ")


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    """The folder of a small sentence-transformers model."""
    needs(find_spec("sentence_transformers"), "sentence-transformers (pip install '.[peers]')")
    words = [word for line in TIDY for word in line.split()]
    return write_peer(tmp_path_factory.mktemp("peer") / "model", [*words, "eins", "one", "zwei"])


def test_its_vectors_are_the_mean_of_its_states_line_by_line(peer):
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(peer), AutoModel.from_pretrained(peer).eval()
    lines = [line for line in LINES if line]
    vectors = SentenceTransformersEncoder(str(peer), "cpu").encode(lines * 20, "xx")
    assert vectors.dtype == np.float32
    assert vectors.shape == (80, 16)
    for at, line in enumerate([line for line in TIDY if line]):
        with torch.inference_mode():
            states = model(**tokenizer(line, return_tensors="pt")).last_hidden_state[0]
        np.testing.assert_allclose(vectors[at], states.mean(0).numpy(), rtol=0, atol=1e-5)
    assert len({row.round(4).tobytes() for row in vectors}) == 4


def test_a_plain_bert_folder_is_the_mean_of_its_last_states_without_padding(peer):
    """As google-bert/bert-base-multilingual-cased is: no files of sentence-transformers in it."""
    bert = str(peer.with_name(f"{peer.name}-bert"))
    assert not (peer.with_name(f"{peer.name}-bert") / "modules.json").exists()
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(bert), AutoModel.from_pretrained(bert).eval()
    lines = ["ab", "ab cab dad one zwei eins"]  # the first is padded beside the second
    vectors = SentenceTransformersEncoder(bert, "cpu").encode(lines, "xx")
    for line, vector in zip(lines, vectors, strict=True):
        with torch.inference_mode():
            states = model(**tokenizer(line, return_tensors="pt")).last_hidden_state[0]
        np.testing.assert_allclose(vector, states.mean(0).numpy(), rtol=0, atol=1e-5)


def test_its_tokens_are_counted_whole_however_long_a_line_is(peer):
    encoder = SentenceTransformersEncoder(str(peer), "cpu")
    assert encoder.token_counts(["ab cab", "", "dad " * 50], "xx") == [2, 0, 50]
    assert encoder.token_counts([], "xx") == []
    assert encoder.encode([], "xx").shape[0] == 0


def test_a_folder_is_another_model_when_one_of_its_files_changes(peer, tmp_path):
    copy = shutil.copytree(peer, tmp_path / "copy")
    first = SentenceTransformersEncoder(str(copy), "cpu").identity
    assert SentenceTransformersEncoder(str(copy), "cpu").identity == first
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "layer_norm_eps": 1e-3}))
    assert SentenceTransformersEncoder(str(copy), "cpu").identity != first


def test_a_folder_that_is_not_there_or_holds_no_model_is_told(peer, tmp_path):
    assert "no such folder" in refusal(SentenceTransformersEncoder, str(tmp_path / "none"))
    (tmp_path / "config.json").write_text("{}")
    assert "cannot load it" in refusal(SentenceTransformersEncoder, str(tmp_path))


# --- as systems of an experiment


def with_systems(tmp_path, **systems):
    value = edited(MINIMAL, "systems", {"ems": {}, **systems})
    return Settings(tmp_path / "settings").load(value)


@pytest.mark.parametrize("kind", ["command", "folder", "sentence-transformers"])
def test_each_kind_of_encoder_is_scored_as_a_system(kind, tmp_path, request):
    text = ["eins zwei drei", "one two three", "ab cab dad"] * 5
    entry = {"kind": kind}
    if kind == "command":
        entry["command"] = write_command(tmp_path)
    elif kind == "folder":
        entry["model"] = str(write_model(tmp_path / "model", ["en", "de", "fr"], text, pieces=40))
    else:
        entry["model"] = str(request.getfixturevalue("peer"))
    for code, pairs in {"deu": [("eins", "one"), ("zwei", "dad")], "fra": [("ab", "a b")]}.items():
        write_tatoeba(tmp_path, code, pairs)
    systems = {"ems": {}, "mine": entry}
    encoder = make_encoder(with_systems(tmp_path, mine=entry).systems["mine"])
    base = edited(MINIMAL, "systems", systems)
    file = scored(tmp_path, "tatoeba", tmp_path / "tatoeba", encoder, "mine", base)
    assert set(values(file)) == {"deu", "fra"}
    assert file.system == "mine"
    assert values(file)["fra"]["to_english"] == 100


LOCATED = {
    "a": {"kind": "folder", "model": "models/x"},
    "b": {"kind": "sentence-transformers", "model": "some/name"},
    "c": {"kind": "command", "command": "x {lines} {out}"},
}


def test_another_model_or_command_is_another_job_and_training_settings_are_none(tmp_path):
    def hashes(**systems):
        experiment = with_systems(tmp_path, **LOCATED | systems)
        return {
            name: stage_hash(experiment, "bench", system=name, benchmark="tatoeba")
            for name in experiment.systems
        }

    first = hashes()
    assert len(set(first.values())) == 4
    for name, key in (("a", "model"), ("b", "model"), ("c", "command")):
        changed = hashes(**{name: {**LOCATED[name], key: f"{LOCATED[name][key]}2"}})
        assert {k for k in first if changed[k] != first[k]} == {name}
        trained = hashes(**{name: {**LOCATED[name], "train": {"learning_rate": 1}}})
        assert trained == first


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ({"kind": "folder"}, "systems.x.model: expected text, as kind: folder needs it"),
        ({"kind": "sentence-transformers"}, "systems.x.model: expected text"),
        ({"kind": "command"}, "systems.x.command: expected text"),
        ({"kind": "command", "command": "a {lines}"}, "{out} is missing, found none"),
        ({"model": "a/b"}, "systems.x.model: found text, but kind: encoder takes none"),
        ({"kind": "char-ngram", "command": "a"}, "systems.x.command: found text, but kind: char-n"),
        ({"model": 3}, "systems.x.model: found 3, expected object"),
        ({"model": {"layer": 3}}, "systems.x.model.layer: unknown key (did you mean layers?)"),
    ],
)
def test_a_system_that_does_not_say_where_its_encoder_is_from_is_told(tmp_path, system, message):
    value = edited(MINIMAL, "systems", {"ems": {}, "x": system})
    assert message in Settings(tmp_path).error(value)


def test_the_files_of_a_system_are_those_whose_change_makes_it_stale(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("m/config.json", "m/1_Pooling/config.json", "m/.cache/x", "run.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    hub = SystemSettings("sentence-transformers", place="a/b")
    assert model_files(hub) == []
    assert model_files(replace(hub, place="m")) == ["m/1_Pooling/config.json", "m/config.json"]
    ours = ["x/model.json", "x/model.safetensors", "x/vocabulary.model"]
    assert model_files(SystemSettings("folder", place="x")) == ours
    (tmp_path / "m/ems.json").write_text("")
    sums = ["m/ems.json", "m/SHA256SUMS"]
    assert model_files(SystemSettings("folder", place="m")) == sums
    assert model_files(SystemSettings("command", place="python run.py {lines} {out}")) == ["run.py"]
    assert model_files(SystemSettings("char-ngram")) == []


def test_every_kind_has_an_encoder_and_its_source_a_hash():
    assert set(get_args(Kind)) == set(MODULES)
    assert source_hash("ems.bench.peers") != source_hash("ems.model.encode")


def test_ems62_has_the_papers_peers_and_no_table_asks_for_them():
    experiment = shipped("ems62")
    external = ("sentence-transformers", "command")
    peers = {name for name, system in experiment.systems.items() if system.kind in external}
    assert peers == {"labse", "sbert-distill", "laser", "laser2"}
    assert not peers & set(experiment.shown)
    assert experiment.systems["labse"].place == "sentence-transformers/LaBSE"
    for name in ("laser", "laser2"):
        assert model_files(experiment.systems[name]) == [] or (ROOT / f"envs/{name}.py").is_file()
        assert f"envs/{name}.py" in experiment.systems[name].place
