"""The encoder that comes with EMS: its files, what it finds, and its place in a wheel."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location

import numpy as np
import pytest
from conftest import ROOT
from made import golden
from made import scores as made
from made.bare import bare_python

from ems import Encoder, score
from ems.bench.retrieval import precision_at_1
from ems.corpora.demo.grammar import read_free
from ems.use.files import check_model

BOX = ROOT / "models/ems-62"
SENTENCES = read_free()  # each in eight languages
WHOLE = 30_000_000  # bytes, at most


def test_its_files_are_whole_and_small_and_say_where_they_come_from():
    sums = dict(line.split("  ")[::-1] for line in (BOX / "SHA256SUMS").read_text().splitlines())
    files = {path.name: path for path in BOX.iterdir() if path.name != "SHA256SUMS"}
    assert sums == {n: hashlib.sha256(p.read_bytes()).hexdigest() for n, p in files.items()}
    assert sum(path.stat().st_size for path in files.values()) < WHOLE
    check_model(BOX)
    about = json.loads(files["provenance.json"].read_text())
    assert about["identity"] == json.loads(files["ems.json"].read_text())["identity"]
    assert all(corpus["sha256"] and corpus["files"] for corpus in about["corpora"].values())
    assert len(Encoder().languages) == 62


def test_a_sentence_finds_its_translation():
    encoder, codes = Encoder(), list(SENTENCES[0])
    assert len(codes) == 8
    vectors = {c: encoder.encode([s[c] for s in SENTENCES], normalise=True) for c in codes}
    shares = [precision_at_1(vectors[a], vectors[b]) for a in codes for b in codes if a != b]
    assert min(shares) > 70
    assert np.mean(shares) > 92


def test_the_cosines_of_twenty_pairs_are_as_recorded():
    pairs = [
        (each["en"], each[code])
        for each, code in zip(SENTENCES[:20], 10 * ["de", "ja"], strict=True)
    ]
    scores = score(Encoder(), *zip(*pairs, strict=True))
    lines = [
        f"{value:.3f}\t{one}\t{other}\n" for value, (one, other) in zip(scores, pairs, strict=True)
    ]
    golden.check("box.txt", "".join(lines))


def test_make_release_tells_trained_languages_from_others_and_english_from_all(tmp_path):
    spec = spec_from_file_location("release", ROOT / "models/release.py")
    release = module_from_spec(spec)
    spec.loader.exec_module(release)
    kinds = {"en": "en", "de": "de", "is": "und"}
    pairs = {"de-en": 80, "en-de": 60, "is-en": 20, "en-is": 10, "de-is": 5, "is-de": 1}
    rows = [made.row(*pair.split("-"), value) for pair, value in pairs.items()]
    made.write_scores(tmp_path, "s", {"de": 50, "is": (30, 10)}, {"is": "und"})
    made.write_scores(tmp_path, "s", {"de": (40, 20)}, benchmark="ntrex")
    made.write_flores(tmp_path, "s", ["en", "de", "fr"], lambda one, other: 10 * len(one + other))
    made.write_file(tmp_path, "s", "wmt24pp", "P@1", rows, kinds, label="source")
    assert release.measured(tmp_path) == {
        "tatoeba, with English, trained": 50,
        "tatoeba, with English, untrained": 20,
        "tatoeba, with English, all languages": 35,
        "ntrex, with English, trained": 30,
        "flores200, with English, trained": 40,
        "flores200, all directions, trained": 40,
        "wmt24pp, with English, trained": 70,
        "wmt24pp, with English, untrained": 15,
        "wmt24pp, with English, all languages": 42.5,
        "wmt24pp, all directions, trained": 70,
        "wmt24pp, all directions, untrained": 9,
        "wmt24pp, all directions, all languages": round(176 / 6, 3),
    }


@pytest.mark.slow
def test_after_pip_install_of_the_wheel_alone_it_encodes_offline(tmp_path):
    source = tmp_path / "source"
    for name in ("ems", "models"):
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    wheel = [*pip, "wheel", "-q", "--no-build-isolation", "--no-deps", "-w", tmp_path, source]
    subprocess.run(wheel, check=True)
    (built,) = tmp_path.glob("ems_embeddings-*.whl")
    python = bare_python(tmp_path / "env", {"numpy", "safetensors", "sentencepiece"})
    install = [*pip, "--python", python, "install", "-q", "--no-index", "--no-deps", built]
    subprocess.run(install, check=True)
    ems = [python.with_name("ems"), "encode", "-"]
    environment = {"PATH": os.environ["PATH"]}
    options = {"cwd": tmp_path, "env": environment, "capture_output": True, "check": True}
    done = subprocess.run(ems, input=b"Guten Tag\n", **options)
    vector = np.frombuffer(done.stdout, "<f4")
    np.testing.assert_array_equal(vector, Encoder().encode("Guten Tag"))
    assert "model: ems-62, which comes with EMS" in done.stderr.decode()
    shown = subprocess.run([ems[0], "--version"], **options).stdout.decode()
    assert shown.startswith("ems 0.")
    assert "model ems-62 (" in shown
