"""External encoders: sentence-transformers, commands and envs/vectors.py, checked or refused."""

import gzip
import json
import runpy
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from conftest import ROOT, needs
from made.experiments import (
    MINIMAL,
    SITE,
    Settings,
    changed_jobs,
    edited,
    hashes,
    one_line,
    shipped,
)
from made.models import write_command, write_peer

from ems.base.errors import EmsError
from ems.base.provenance import source_hash
from ems.bench import peers
from ems.bench.encoders import MODULES, model_files
from ems.bench.peers import CommandEncoder, SentenceTransformersEncoder
from ems.config.file import Kind
from ems.config.systems import SystemSettings
from ems.use.encoder import Encoder

LINES = ["ab  cab", "a\u2028b", "", "dad", "fe\u0301e"]
TIDY = ["ab cab", "a b", "", "dad", "f\u00e9e"]


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


def test_vectors_of_changing_width_are_an_error(tmp_path, monkeypatch):
    source = """
import sys, numpy as np
count = open(sys.argv[1]).read().count("\\n")
np.save(open(sys.argv[3], "wb"), np.ones((count, count), np.float32))
"""
    monkeypatch.setattr(peers, "CALL_LINES", 3)
    encoder = CommandEncoder(write_command(tmp_path, source))
    assert "vectors of width 2; earlier ones had 3" in one_line(encoder.encode, ["x"] * 5, "en")


def test_a_command_has_another_identity_if_its_words_or_files_change(tmp_path):
    template = tmp_path / "[x] {language}.vec"
    command = f"{write_command(tmp_path)} '{template}'"
    seen = [CommandEncoder(command).identity, CommandEncoder(f"{command} --fast").identity]
    for code in ("de", "zh-Hans"):
        (tmp_path / f"[x] {code}.vec").write_text("1 1")
        seen.append(CommandEncoder(command).identity)
    (tmp_path / "x de.vec").write_text("not of the command")
    assert len(set(seen)) == 4
    assert CommandEncoder(command).identity == seen[-1]
    (tmp_path / "encode.py").write_text("another")
    assert CommandEncoder(command).identity not in seen
    bare = SystemSettings("command", place=f"run {tmp_path}/{{language}}.vec {{lines}} {{out}}")
    assert model_files(bare) == sorted(map(str, tmp_path.glob("*.vec")))


# --- sentence-transformers


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    message = one_line(SentenceTransformersEncoder, "sentence-transformers/LaBSE")
    assert "pip install '.[peers]'" in message
    assert message.startswith("sentence-transformers/LaBSE: ")


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    needs(find_spec("sentence_transformers"), "sentence-transformers (pip install '.[peers]')")
    words = [word for line in TIDY for word in line.split()]
    return write_peer(tmp_path_factory.mktemp("peer") / "model", [*words, "eins", "one", "zwei"])


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["", "-bert"])
def test_vectors_are_the_mean_of_the_last_states_without_padding(peer, suffix):
    """A plain BERT folder has no files of sentence-transformers, like google-bert's models."""
    from transformers import AutoModel, AutoTokenizer

    folder = peer.with_name(peer.name + suffix)
    assert (folder / "modules.json").exists() == (not suffix)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    pairs = [(line, tidy) for line, tidy in zip(LINES, TIDY, strict=True) if line]
    pairs.append(("ab cab dad one zwei eins",) * 2)  # the others are padded to its length
    vectors = SentenceTransformersEncoder(str(folder), "cpu").encode([a for a, _ in pairs] * 20)
    assert (vectors.dtype, vectors.shape) == (np.float32, (100, 16))
    for vector, (_, line) in zip(vectors, pairs, strict=False):
        with torch.inference_mode():
            states = model(**tokenizer(line, return_tensors="pt")).last_hidden_state[0]
        np.testing.assert_allclose(vector, states.mean(0).numpy(), rtol=0, atol=1e-5)
    assert len({row.round(4).tobytes() for row in vectors}) == 5
    if not suffix:
        encoder = Encoder(folder, "cpu")
        assert (encoder.encode([a for a, _ in pairs] * 20) == vectors).all()
        assert encoder.encode("ab").shape == (encoder.dimension,) == encoder.encode([]).shape[1:]
        assert not encoder.encode(["", " "]).any()
        with pytest.raises(EmsError, match="language: expected one, or 2, found 1"):
            encoder.encode(["ab", "cab"], ["de"])


@pytest.mark.slow
def test_tokens_of_long_lines_are_counted_without_truncation(peer):
    encoder = SentenceTransformersEncoder(str(peer), "cpu")
    assert encoder.token_counts(["ab cab", "", "dad " * 50], "xx") == [2, 0, 50]
    assert encoder.token_counts([], "xx") == []
    assert encoder.encode([], "xx").shape[0] == 0


@pytest.mark.slow
def test_a_folder_has_another_identity_if_a_file_changes(peer, tmp_path):
    copy = shutil.copytree(peer, tmp_path / "copy")
    first = SentenceTransformersEncoder(str(copy), "cpu").identity
    assert SentenceTransformersEncoder(str(copy), "cpu").identity == first
    config = copy / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "layer_norm_eps": 1e-3}))
    assert SentenceTransformersEncoder(str(copy), "cpu").identity != first


# --- systems of an experiment


LOCATED = {
    "a": {"kind": "folder", "model": "results/mine/x"},
    "b": {"kind": "sentence-transformers", "model": "some/name"},
    "c": {"kind": "command", "command": "x {lines} {out}"},
}


def test_another_model_or_command_runs_its_system_again(tmp_path):
    settings, base = Settings(tmp_path), edited(MINIMAL, "systems", {"ems": {}, **LOCATED})
    settings.site({**SITE, "trusted": ["x {lines} {out}", "x {lines} {out}2"]})
    by_job = hashes(settings.load(base))
    assert len({by_job[f"bench {name} tatoeba"] for name in ("ems", *LOCATED)}) == 4
    for name, key in (("a", "model"), ("b", "model"), ("c", "command")):
        other = edited(base, f"systems.{name}.{key}", f"{LOCATED[name][key]}2")
        assert changed_jobs(settings, base, other) == {f"bench {name} tatoeba"}
        trained = edited(base, f"systems.{name}.train", {"learning_rate": 1})
        assert changed_jobs(settings, base, trained) == set()


@pytest.mark.parametrize(
    ("kind", "place", "files"),
    [
        ("sentence-transformers", "a/b", []),  # of the hub
        ("sentence-transformers", "m", ["m/1_Pooling/config.json", "m/config.json"]),
        ("folder", "x", ["x/model.json", "x/model.safetensors", "x/vocabulary.model"]),
        ("folder", "exported", ["exported/ems.json", "exported/SHA256SUMS"]),
        ("command", "python run.py {lines} {out}", ["run.py"]),
        ("char-ngram", "", []),
    ],
)
def test_model_files_are_the_files_that_encoding_reads(kind, place, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    there = (
        "m/config.json",
        "m/1_Pooling/config.json",
        "m/.cache/x",
        "run.py",
        "exported/ems.json",
    )
    for path in map(Path, there):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    assert model_files(SystemSettings(kind, place=place)) == files


def test_every_kind_has_an_encoder_and_ems62_has_the_papers_peers_without_tabling_them():
    assert set(get_args(Kind)) == set(MODULES)
    assert source_hash("ems.bench.peers") != source_hash("ems.model.encode")
    experiment = shipped("ems62")
    external = ("sentence-transformers", "command")
    named = {name for name, system in experiment.systems.items() if system.kind in external}
    assert named == {"labse", "sbert-distill", "laser", "laser2"}
    assert not named & set(experiment.shown)
    assert experiment.systems["labse"].place == "sentence-transformers/LaBSE"
    for name in ("laser", "laser2"):
        assert model_files(experiment.systems[name]) == [] or (ROOT / f"envs/{name}.py").is_file()
        assert f"envs/{name}.py" in experiment.systems[name].place


# --- envs/vectors.py: the mean or the sum of the vectors of a line's known words

SCRIPT = ROOT / "envs/vectors.py"
TABLE = {"über": [1.5, -2, 0.25], "ab": [3, 4, 5], "3": [0.1, 0.2, 0.3], "苹果": [7, 0, -7]}


def text_of(table, width=3):
    rows = [" ".join([word, *map(repr, numbers)]) for word, numbers in table.items()]
    return "\n".join([f"{len(table)} {width}", *rows]) + "\n"


def encoded(folder, lines, pooling="mean", language="de", suffix=".vec"):
    (folder / "lines").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    table, out = folder / f"{language}{suffix}", folder / "out.npy"
    words = [pooling, str(table), str(folder / "lines"), language, str(out)]
    runpy.run_path(str(SCRIPT))["main"](words)
    return np.load(out)


LINES_OF_WORDS = ["Über AB, ab!", "3.3 ab_xyz", "none known", "", "(ÜBER)"]
WORDS = [["über", "ab", "ab"], ["3", "3", "ab"], [], [], ["über"]]


@pytest.mark.parametrize("suffix", [".vec", ".vec.gz"])
@pytest.mark.parametrize("pooling", ["mean", "sum"])
def test_a_row_is_the_mean_or_sum_of_known_words_or_zero(tmp_path, pooling, suffix):
    content = text_of(TABLE).encode()
    path = tmp_path / f"de{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    vectors = encoded(tmp_path, LINES_OF_WORDS, pooling, suffix=suffix)
    assert vectors.dtype == np.float32
    for row, words in zip(vectors, WORDS, strict=True):
        share = len(words) if pooling == "mean" and words else 1
        expected = np.sum([TABLE[word] for word in words] or [[0] * 3], axis=0) / share
        np.testing.assert_allclose(row, expected, rtol=1e-6)
    assert encoded(tmp_path, [], pooling, suffix=suffix).shape == (0, 3)


def test_chinese_is_split_into_words(tmp_path):
    needs(find_spec("jieba"), "jieba")
    (tmp_path / "zh.vec").write_text(text_of(TABLE), encoding="utf-8")
    vectors = encoded(tmp_path, ["我喜欢吃苹果。"], "sum", "zh")
    assert vectors.tolist() == [TABLE["苹果"]]


def test_words_splits_the_text_of_a_table_like_the_lines():
    lines = "".join(f"{line}\n" for line in ["Über AB, ab!", "e\u0301 हिन्दी l'été", "", "a\u2028b"])
    done = subprocess.run(
        [sys.executable, SCRIPT, "words", "de"], input=lines.encode(), capture_output=True
    )
    words = done.stdout.decode().split("\n")
    assert words == ["über ab ab", "e\u0301 हिन्दी l été", "", "a b", ""]


def test_phrases_repeated_words_and_trailing_blanks_in_a_table_change_nothing(tmp_path):
    head, *rows = text_of(TABLE).splitlines()
    odd = [head, "ab cd 9 9 9", *(f"{row} " for row in rows), "ab 8 8 8", "\ufffd 1 2 3"]
    vectors = []
    for content in ([head, *rows], odd):
        (tmp_path / "de.vec").write_text("\n".join(content), encoding="utf-8")
        vectors.append(encoded(tmp_path, LINES_OF_WORDS).tobytes())
    assert vectors[0] == vectors[1]


def test_as_a_command_it_reads_the_table_of_the_language(tmp_path):
    (tmp_path / "de.vec").write_text(text_of(TABLE), encoding="utf-8")
    files = f"{tmp_path}/{{language}}.vec {{lines}} {{language}} {{out}}"
    encoder = CommandEncoder(f"{sys.executable} {SCRIPT} sum {files}")
    assert encoder.encode(["3 unknown"], "de").tolist() == np.float32([TABLE["3"]]).tolist()
