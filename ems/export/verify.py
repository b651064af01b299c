"""Check an exported folder in a process of its own, as its users load it.

    python -m ems.export.verify FOLDER < EXPECTED.npz > FIGURES.json

EXPECTED has `lines`, the token ids of each as `ids` one after the other with their `counts`, and
`vectors` float32[N, d] of length 1. Nothing of ems reads the folder: what is checked is what
sentence-transformers and onnxruntime make of the files alone.
"""

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ems.base.processes import look_rarely

BATCH = 64  # lines at once, of all lengths, so that shorter ones are padded
GRAPHS = {"onnx": "onnx/model.onnx", "int8": "onnx/model_qint8.onnx"}


def figures(folder: Path, expected: Any) -> dict[str, Any]:
    """Return how far the folder's token ids and vectors are from those expected."""
    from sentence_transformers import SentenceTransformer

    lines = expected["lines"].tolist()
    ids = np.split(expected["ids"], np.cumsum(expected["counts"])[:-1])
    code = any(folder.glob("*.py"))  # which ems wrote a moment ago
    model = SentenceTransformer(
        str(folder), device="cpu", local_files_only=True, trust_remote_code=code
    )
    own = _ids(model, lines)
    wrong = [at for at, one in enumerate(own) if one != ids[at].tolist()]
    result: dict[str, Any] = {"lines": len(lines), "wrong": [lines[at] for at in wrong[:3]]}
    result["ids_differ"] = len(wrong)
    vectors = model.encode(lines, batch_size=BATCH, show_progress_bar=False)
    result["float32"] = _compared(vectors, expected["vectors"])
    for name, path in GRAPHS.items():
        if (folder / path).exists():
            made = _of_graph(folder / path, own)
            result[name] = _compared(made, expected["vectors"])
    return result


def _ids(model: Any, lines: list[str]) -> list[list[int]]:
    """Return the token ids of each line, cut to the length that the model sees."""
    tokenizer = model.tokenizer
    if hasattr(tokenizer, "encode_batch"):  # of a table
        return [encoded.ids for encoded in tokenizer.encode_batch(lines)]
    return tokenizer(lines, truncation=True, max_length=model.max_seq_length)["input_ids"]


def _of_graph(path: Path, ids: list[list[int]]) -> np.ndarray:
    """Return what an ONNX graph makes of token ids, padded with 0 in batches."""
    from onnxruntime import InferenceSession

    session, parts = InferenceSession(path, providers=["CPUExecutionProvider"]), []
    for start in range(0, len(ids), BATCH):
        batch = ids[start : start + BATCH]
        padded = np.zeros((len(batch), max(map(len, batch))), np.int64)
        mask = np.zeros_like(padded)
        for row, one in enumerate(batch):
            padded[row, : len(one)], mask[row, : len(one)] = one, 1
        given = {"input_ids": padded, "attention_mask": mask}
        parts += session.run(["sentence_embedding"], given)
    return np.concatenate(parts)


def _compared(vectors: np.ndarray, expected: np.ndarray) -> dict[str, Any]:
    """Return the cosines, and the largest difference, of vectors of length 1."""
    if vectors.shape != expected.shape:
        return {"shape": list(vectors.shape), "expected": list(expected.shape)}
    cosines = (vectors.astype(np.float64) * expected).sum(1)
    cosines /= np.linalg.norm(vectors, axis=1) * np.linalg.norm(expected, axis=1)
    return {
        "least_cosine": float(cosines.min()),
        "mean_cosine": float(cosines.mean()),
        "largest_difference": float(np.abs(vectors - expected).max()),
    }


if __name__ == "__main__":
    look_rarely()
    with np.load(io.BytesIO(sys.stdin.buffer.read())) as given:
        print(json.dumps(figures(Path(sys.argv[1]), given)))
