"""The encoder that comes with EMS: its files, what it finds, and its place in a wheel."""

import hashlib
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT
from made import golden
from made.bare import bare_python

from ems import Encoder, score
from ems.bench.retrieval import precision_at_1
from ems.corpora.demo.grammar import read_free
from ems.use.check import check_model

BOX = ROOT / "models/ems-62"
SENTENCES = read_free()  # each in eight languages
WHOLE = 30_000_000  # bytes, at most


def test_its_files_are_whole_and_small_and_say_where_they_come_from():
    sums = dict(line.split("  ")[::-1] for line in (BOX / "SHA256SUMS").read_text().splitlines())
    files = {path.name: path for path in BOX.iterdir() if path.name != "SHA256SUMS"}
    assert sums == {n: hashlib.sha256(p.read_bytes()).hexdigest() for n, p in files.items()}
    assert sum(path.stat().st_size for path in files.values()) < WHOLE
    check_model(BOX)
    made = json.loads(files["provenance.json"].read_text())
    assert made["identity"] == json.loads(files["ems.json"].read_text())["identity"]
    assert all(corpus["sha256"] and corpus["files"] for corpus in made["corpora"].values())
    assert len(Encoder().languages) == 62


def test_a_sentence_finds_its_translation():
    encoder, codes = Encoder(), list(SENTENCES[0])
    assert len(codes) == 8
    vectors = {c: encoder.encode([s[c] for s in SENTENCES], normalise=True) for c in codes}
    shares = [precision_at_1(vectors[a], vectors[b]) for a in codes for b in codes if a != b]
    assert min(shares) > 90
    assert np.mean(shares) > 97


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
