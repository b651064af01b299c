"""Check an exported folder in a process of its own, as its users load it.

    python -m ems.export.verify FOLDER < EXPECTED.npz > FIGURES.json

EXPECTED has `lines`, their concatenated token `ids` with the `counts` per line, and `vectors`
float32[N, d] of length 1. Only sentence-transformers and onnxruntime read the folder, not ems.
"""

import io
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ems.base.errors import EmsError, mistake
from ems.base.processes import look_rarely
from ems.bench.retrieval import normalised
from ems.config.languages import UNSEEN
from ems.corpora.demo.grammar import read_free
from ems.model.encode import SentenceEncoder
from ems.text.segmenters.base import SPACE
from ems.text.subwords import UNK

LINES_AT_ONCE = 64  # lines of all lengths, so that shorter ones are padded
GRAPHS = {"onnx": "onnx/model.onnx", "int8": "onnx/model_qint8.onnx"}
LEAST_COSINES = {"float32": 0.99999, "onnx": 0.99999, "int8": 0.995}
Figures = dict[str, Any]  # counts, and cosines for each format of the weights
ODD = [
    "e\u0301te\u0301, 3 °C … ½ № ﬁ Å",
    "  two  spaces\tand\u00a0others\u3000here ",
    "ΟΔΥΣΣΕΥΣ ΚΑΙ ΣΟΦΟΣ",
    "İstanbul, STRASSE, ǅ",
    "<mask> <2en> [CLS]",
    "a_b-c/d@e.f #g $1,000.00 — «h» „i“ 100%",
    "🙂👍🏽 ♥ ™",
    "ＡＢＣ １２３ ｶﾀｶﾅ",
]


# --- in the process of the export


def sample(vocabulary: Any, seed: int = 0) -> list[str]:
    """Return lines of eight languages, unusual lines, and random pieces of the vocabulary."""
    lines = [text for sentence in read_free() for text in sentence.values()]
    draw = random.Random(seed)
    marks = (vocabulary.is_control, vocabulary.is_unknown, vocabulary.is_byte)
    texts = [id_ for id_ in range(len(vocabulary)) if not any(mark(id_) for mark in marks)]
    for _ in range(300):
        pieces = draw.choices(texts, k=draw.randint(1, 12))
        text = "".join(map(vocabulary.id_to_piece, pieces)).replace(SPACE, " ").strip()
        lines.append(text.capitalize())
    long = [" ".join(lines[start : start + 40]) for start in range(0, 200, 40)]
    return [*lines, *ODD, *long]


def verify_folder(folder: Path, expected: bytes) -> Figures:
    """Measure a folder. Raises `EmsError` unless its ids and vectors equal the expected ones."""
    result = _in_another_process(folder, expected)
    if result["ids_differ"]:
        shown = ", ".join(repr(line[:80]) for line in result["wrong"])
        counts = {"differ": result["ids_differ"], "lines": result["lines"]}
        raise mistake("other tokens", shown=shown, **counts)
    for name, least in LEAST_COSINES.items():
        comparison = result.get(name, {})
        cosine = comparison.get("mean_cosine" if name == "int8" else "least_cosine", 1.0)
        if "shape" in comparison or not cosine >= least:
            raise mistake(
                "other vectors", comparison=comparison, name=name, cosine=cosine, least=least
            )
    return result


def expected_of(ours: SentenceEncoder, dimensions: int, lines: Sequence[str]) -> bytes:
    """Return EXPECTED from our encoder, without lines that have no token."""
    limit = ours.encoder.settings.max_tokens
    tokens = ours.tokenise(list(lines), UNSEEN)
    pairs = [(line, ids[:limit]) for line, ids in zip(lines, tokens, strict=True)]
    pairs = [(line, ids) for line, ids in pairs if ids.tolist() != [UNK]]
    if not pairs:
        raise EmsError("--verify: expected lines of text, found none; name another file")
    kept = [line for line, _ in pairs]
    vectors = ours.encode(kept, UNSEEN, "expected")[:, :dimensions]
    return packed(kept, [ids for _, ids in pairs], vectors)


def packed(lines: list[str], ids: list[np.ndarray], vectors: np.ndarray) -> bytes:
    """Return EXPECTED of lines, the ids of each, and vectors[N, d] of any length."""
    buffer = io.BytesIO()
    texts = {"lines": lines, "ids": np.concatenate(ids), "counts": [len(row) for row in ids]}
    np.savez(buffer, vectors=normalised(vectors, "the expected vectors"), **texts)
    return buffer.getvalue()


def _in_another_process(folder: Path, expected: bytes) -> Figures:
    """Run `ems.export.verify`. Raises `EmsError` with the end of its error."""
    command = [sys.executable, "-m", "ems.export.verify", str(folder.resolve())]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    with tempfile.TemporaryDirectory(prefix="ems-verify-") as copies:
        environment["HF_MODULES_CACHE"] = copies  # transformers copies code before it runs it
        done = subprocess.run(command, input=expected, capture_output=True, env=environment)
    if done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split())[-800:]
        raise mistake("folder cannot be loaded", said=said)
    return json.loads(done.stdout.decode().splitlines()[-1])


# --- in a process of its own


def figures(folder: Path, expected: Any) -> dict[str, Any]:
    """Compare the token ids and vectors of the folder with the expected ones."""
    from sentence_transformers import SentenceTransformer

    lines = expected["lines"].tolist()
    ids = np.split(expected["ids"], np.cumsum(expected["counts"])[:-1])
    code = any(folder.glob("*.py"))  # written by ems a moment ago
    options = {"device": "cpu", "local_files_only": True, "trust_remote_code": code}
    model = SentenceTransformer(str(folder), **options)
    if hasattr(model.tokenizer, "encode_batch"):  # the tokenizer of a table
        own = [encoded.ids for encoded in model.tokenizer.encode_batch(lines)]
    else:
        cut = {"truncation": True, "max_length": model.max_seq_length}
        own = model.tokenizer(lines, **cut)["input_ids"]
    wrong = [row for row, line in enumerate(own) if line != ids[row].tolist()]
    vectors = {"float32": model.encode(lines, batch_size=LINES_AT_ONCE, show_progress_bar=False)}
    for name, path in GRAPHS.items():
        if (folder / path).exists():
            vectors[name] = _of_graph(folder / path, own)
    return {
        "lines": len(lines),
        "wrong": [lines[row] for row in wrong[:3]],
        "ids_differ": len(wrong),
        **{name: compared(rows, expected["vectors"]) for name, rows in vectors.items()},
    }


def _of_graph(path: Path, ids: list[list[int]]) -> np.ndarray:
    from onnxruntime import InferenceSession

    session, parts = InferenceSession(path, providers=["CPUExecutionProvider"]), []
    for start in range(0, len(ids), LINES_AT_ONCE):
        batch = ids[start : start + LINES_AT_ONCE]
        padded = np.zeros((len(batch), max(map(len, batch))), np.int64)
        mask = np.zeros_like(padded)
        for row, line in enumerate(batch):
            padded[row, : len(line)], mask[row, : len(line)] = line, 1
        inputs = {"input_ids": padded, "attention_mask": mask}
        parts += session.run(["sentence_embedding"], inputs)
    return np.concatenate(parts)


def compared(vectors: np.ndarray, expected: np.ndarray) -> dict[str, Any]:
    """Return the cosines and the largest difference of vectors of length 1."""
    if vectors.shape != expected.shape:
        return {"shape": list(vectors.shape), "expected": list(expected.shape)}
    vectors = vectors.astype(np.float64)  # a plain table has float16
    cosines = (vectors * expected).sum(1)
    cosines /= np.linalg.norm(vectors, axis=1) * np.linalg.norm(expected, axis=1)
    return {
        "least_cosine": float(cosines.min()),
        "mean_cosine": float(cosines.mean()),
        "largest_difference": float(np.abs(vectors - expected).max()),
    }


if __name__ == "__main__":
    look_rarely()
    with np.load(io.BytesIO(sys.stdin.buffer.read())) as expected:
        print(json.dumps(figures(Path(sys.argv[1]), expected)))
