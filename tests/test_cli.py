"""Laws of the command line: an error is one line and exit status 1, and the log file tells the
story."""

import hashlib
import json
import random
import subprocess
import sys
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest
from cli_made import Cli
from conftest import ROOT

from ems.cli import main
from ems.text.evalkeys import write_keys
from ems.text.settings import VocabularySettings

PAIRS = [("Hallo Welt", "Hello world"), ("Guten Tag.", "Good day."), ("Der Test", "The test")]


@pytest.fixture
def ems(tmp_path):
    return Cli(tmp_path)


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "mirror" / "Demo" / "v1" / "moses" / "de-en.txt.zip"
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as whole:
        for at, code in enumerate(("de", "en")):
            whole.writestr(f"Demo.de-en.{code}", "".join(f"{pair[at]}\n" for pair in PAIRS))
    return path


CLEAN = ("clean", "--experiment", "tiny", "--corpus", "Demo", "--version", "v1", "--pair", "de-en")


def hash_of(lines):
    """The settings' hash that a stage logs."""
    return next(line for line in lines if "settings of stage" in line).split()[-1]


# --- what a stage was planned with


def test_a_stage_refuses_when_its_settings_are_no_longer_those_it_was_planned_with(ems, archive):
    keys = ems.folder / "keys.tsv"
    write_keys({"gutentag": ["tatoeba/de"]}, keys)
    out = ems.folder / "out.tsv"
    job = (*CLEAN, "--archives", archive, "--keys", keys, "--out", out)
    planned = hash_of(ems(*job))
    assert out.read_text() == "Hallo Welt\tHello world\t1\nDer Test\tThe test\t3\n"
    out.unlink()

    ems(*job, "--expect", planned)
    assert out.exists()
    out.unlink()

    tiny = ems.folder / "configs" / "tiny.yaml"
    text = tiny.read_text()
    assert "max_pairs: 1500" in text
    tiny.write_text(text.replace("max_pairs: 1500", "max_pairs: 2"))
    message = ems.error(*job, "--expect", planned)
    assert f"planned with settings {planned}" in message
    assert "stage clean" in message
    assert "configs/tiny.yaml" in message
    assert not out.exists()

    tiny.write_text(text.replace("steps: 60", "steps: 61"))  # another stage's business
    ems(*job, "--expect", planned)
    assert out.exists()


def test_a_mistake_in_an_experiment_is_one_line(ems):
    tiny = ems.folder / "configs" / "tiny.yaml"
    tiny.write_text(tiny.read_text().replace("width: 32", "widht: 32"))
    message = ems.error("check", "--experiment", "tiny")
    assert "model.widht: unknown key (did you mean width?)" in message
    assert "nope.yaml does not exist" in ems.error("check", "--experiment", "nope")


def test_check_says_what_is_going_to_run(ems):
    told = ems("check", "--experiment", "tiny")[-2]  # the last line says what it cost
    assert "experiment tiny is fine: 4 languages, train Demo/v1, validation DemoDev/v1" in told


# --- missing and broken inputs


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        (
            ("fetch", "--source", "gone", "--corpus", "C", "--version", "v", "--pair", "de-en"),
            "gone",
        ),
        (
            ("fetch-documents", "--source", "gone", "--corpus", "C", "--version", "v"),
            "gone/C/v/out: no such file",
        ),
        *(
            (("fetch-evalset", "--evalset", name, "--source", "gone", "--code", "deu"), file)
            for name, file in (
                ("tatoeba", "gone/tatoeba.deu-eng.deu"),
                ("flores200", "gone/devtest/deu.devtest"),
                ("sib200", "gone/deu/train.tsv"),
            )
        ),
        (("evalkeys", "--experiment", "tiny", "--evalset", "tatoeba=gone"), "gone/tatoeba.deu-eng"),
        ((*CLEAN, "--archives", "gone.zip", "--keys", "gone.tsv"), "gone.zip: no such file"),
        (("segment", "--experiment", "tiny", "--source", "gone/de-en.tsv"), "gone/de-en.tsv"),
        (("sample", "--experiment", "tiny", "--sources", "gone/de-en.tsv"), "gone/de-en.tsv"),
        (("vocabulary", "--experiment", "tiny", "--sample", "gone.txt"), "gone.txt"),
        (
            ("vocabulary-report", "--experiment", "tiny", "--vocabulary", "v", "--sample", "s.txt"),
            "v: no such file",
        ),
        (("shards", "--source", "gone/de-en.tsv", "--vocabulary", "gone.model"), "gone.model"),
        (("report", "--experiment", "tiny", "--entries", "gone.json"), "gone.json: no such file"),
        (("encode", "--language", "en", "--model", "gone", "--source", "gone.txt"), "gone"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_missing_input_is_one_line_that_names_it(ems, stage, message):
    assert message in ems.error(*stage, "--out", "out")
    assert not (ems.folder / "out").is_file()


def test_an_unfetched_set_of_keys_is_told_too(ems, archive):
    job = (*CLEAN, "--archives", archive, "--keys", "gone.tsv", "--out", "out.tsv")
    assert "gone.tsv" in ems.error(*job)
    assert not (ems.folder / "out.tsv").exists()


def test_a_wrong_flag_is_the_usage_and_status_two(ems):
    lines = ems("fetch", "--sauce", "x", expect=2)
    assert lines[0].startswith("usage: ems fetch")


# --- the log file


def test_the_log_file_holds_the_command_what_went_in_and_what_came_out(ems, archive):
    log = ems.folder / "deep" / "job.log"
    mirror = archive.parents[3]
    fetch = ("fetch", "--source", mirror, "--corpus", "Demo", "--version", "v1", "--pair", "de-en")
    lines = ems(*fetch, "--out", ems.folder / "x.zip", "--log", log)
    assert log.read_text(encoding="utf-8").splitlines() == lines
    assert f"ems fetch --source {mirror}" in lines[0]
    assert "'pairs': 3" in lines[-2]
    assert " s CPU, " in lines[-1]
    ems(*fetch, "--out", ems.folder / "x.zip", "--log", log)
    assert len(log.read_text(encoding="utf-8").splitlines()) == len(lines)  # of the last run only


def test_an_error_is_the_last_line_of_the_log_after_what_went_in(ems, archive):
    log = ems.folder / "job.log"
    keys = ems.folder / "keys.tsv"
    write_keys({key: ["tatoeba/de"] for key in ("hallowelt", "gutentag", "dertest")}, keys)
    job = (*CLEAN, "--archives", archive, "--keys", keys, "--out", ems.folder / "out.tsv")
    ems(*job, "--log", log, expect=1)
    lines = log.read_text(encoding="utf-8").splitlines()
    assert "ems clean --experiment tiny --corpus Demo" in lines[0]
    assert "decontaminate Demo de-en: start, 3 pairs" in lines[-3]
    assert "decontaminate Demo de-en: 3/3 pairs" in lines[-2]
    assert "error: " in lines[-1]
    assert (
        "none of its 3 pairs is left: {'cap': 0, 'both_empty': 0, 'one_empty': 0, 'evaluation': 3}"
        in lines[-1]
    )


def test_an_unforeseen_error_is_in_the_log_with_where_it_happened(tmp_path, monkeypatch):
    def fail(*_):
        raise ValueError("of a library")

    monkeypatch.setattr("ems.shards.index.write_index", fail)
    log = tmp_path / "job.log"
    job = ["index", "--training", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main([*job, "--log", str(log)]) == 1
    text = log.read_text(encoding="utf-8")
    assert "error: ValueError" in text
    assert "Traceback" in text


def test_the_command_line_loads_no_heavy_library_before_a_stage_needs_it():
    heavy = ["torch", "sentencepiece", "sacremoses", "jieba", "pandas", "matplotlib", "sklearn"]
    program = f"import sys, ems.cli; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


# --- encoding


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model folder with random weights, for English and German."""
    import torch
    from safetensors.torch import save_file

    from ems.model.encoder import Encoder, EncoderSettings
    from ems.text.subwords import train_vocabulary

    folder, draw = tmp_path_factory.mktemp("model"), random.Random(1)
    sample = folder / "sample.txt"
    lines = ["".join(draw.choices("abcdefgh ", k=30)) for _ in range(200)]
    sample.write_text("".join(f"{line}\n" for line in lines))
    wanted = SimpleNamespace(
        vocabulary=VocabularySettings(size=100, character_coverage=1.0), languages=["en", "de"]
    )
    train_vocabulary(wanted, sample, folder / "vocabulary.model")
    sizes = {"layers": 1, "width": 8, "heads": 2, "feed_forward": 8}
    sizes |= {"dropout": 0.0, "attention_dropout": 0.0, "max_tokens": 20}
    torch.manual_seed(1)
    save_file(Encoder(EncoderSettings(**sizes), 100).state_dict(), folder / "model.safetensors")
    files = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in ("model.safetensors", "vocabulary.model")
    }
    segmenters = {"en": "none", "de": "none"}
    description = {"model": sizes, "segmenters": segmenters, "sha256": files}
    (folder / "model.json").write_text(json.dumps(description))
    return folder


def test_an_unknown_language_is_one_line_with_the_known_ones(ems, model):
    (ems.folder / "lines.txt").write_text("abc\n")
    job = ("--model", model, "--source", "lines.txt", "--out", "out.npy")
    message = ems.error("encode", "--language", "fr", *job)
    assert message == f"language 'fr': {model} was trained for de, en"
    assert not (ems.folder / "out.npy").exists()


def test_each_line_becomes_one_row_whatever_it_holds(ems, model):
    lines = ["abc", "", "a\u2028b", "c\rd", "abc", "e\x85f"]
    (ems.folder / "lines.txt").write_bytes("".join(f"{line}\n" for line in lines).encode())
    job = ("--model", model, "--source", "lines.txt", "--out", "out.npy")
    ems("encode", "--language", "en", *job)
    rows = np.load(ems.folder / "out.npy")
    assert rows.shape == (6, 8)
    assert rows.dtype == np.float32
    assert np.isfinite(rows).all()
    assert np.allclose(rows[0], rows[4], atol=1e-5)  # its place in the batch may cost a last bit
    assert not np.allclose(rows[0], rows[3])


def test_lines_that_are_not_utf8_are_one_line_with_the_place(ems, model):
    (ems.folder / "lines.txt").write_bytes(b"abc\n\xff\n")
    job = ("--model", model, "--source", "lines.txt", "--out", "out.npy")
    message = ems.error("encode", "--language", "en", *job)
    assert message == "lines.txt: not UTF-8 at byte 4; give UTF-8 text, a sentence a line"
