"""Text -> vectors with a trained encoder, from its model folder alone (folder.py).

A sentence without tokens is encoded as one <unk>: a finite vector, where the authors' code gives
NaN. Embeddings are not normalised; retrieval normalises (EMS v2 Eq. 9 and section V use cosine).
"""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from ems.base.errors import Damaged, EmsError, NotFinite
from ems.base.files import ENCODER, EXPORTED, SUMS, VOCABULARY, sha256_file
from ems.base.progress import Progress
from ems.base.provenance import digest, source_hash
from ems.model.devices import choose_device, read_tensors
from ems.model.encoder import Encoder, embed_tokens, shapes_of
from ems.model.folder import DESCRIPTION, STATIC, Description, describe
from ems.text import segmenters  # noqa: F401  puts all segmenters into the source hash of encoding
from ems.text.normalise import tidier, tidy_lines
from ems.text.segmenters.base import load, segmenter
from ems.text.subwords import UNK, by_characters, encode_lines, load_vocabulary

SHOWN = 200  # characters of PyTorch's message that ours quotes
# Maps our names to BERT's, whose query, key and value are three matrices.
EMBEDDINGS = {
    "tokens.weight": ["embeddings.word_embeddings.weight"],
    "positions.weight": ["embeddings.position_embeddings.weight"],
}
UNUSED = {"pooler.dense.weight", "pooler.dense.bias", *EMBEDDINGS["positions.weight"]}
UNUSED |= {"embeddings.token_type_embeddings.weight"}
QKV = ("query", "key", "value")
IN_LAYER = {
    "attention.output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "outer": "output.dense",
    "output_norm": "output.LayerNorm",
}


def _loaded(folder: Path, description: Description, pieces: int) -> nn.Module:
    """Load the encoder of a folder. Raises `Damaged` for weights that do not fit its sizes."""
    sizes, path = description.model, folder / (description.weights or ENCODER)
    names: dict[str, list[str]] = {}  # ours -> theirs, of a folder for other libraries
    if description.weights == STATIC:  # an exported table
        table = description.dimensions or sizes.pooled_width
        sizes = replace(sizes, layers=0, table=table, ngrams=0)
        names = {"table.pieces.weight": ["embedding.weight"]}
    elif description.weights and sizes.attends:
        names = bert_names(sizes.layers)
    shapes, expected = shapes_of(sizes, pieces), {}
    for ours, (rows, *rest) in shapes.items():
        theirs = names.get(ours, [ours])
        expected |= dict.fromkeys(theirs, (rows // len(theirs), *rest))
    tensors = read_tensors(path, expected, UNUSED - expected.keys() if names else set())
    for ours, theirs in names.items():
        if ours in shapes:
            parts = [tensors.pop(name) for name in theirs]
            tensors[ours] = torch.cat(parts) if len(parts) > 1 else parts[0]
    encoder = Encoder(sizes, pieces)
    encoder.load_state_dict(tensors)
    return encoder


def bert_names(
    layers: int, norm: str = "embeddings.LayerNorm", attention: str = "attention.self"
) -> dict[str, list[str]]:
    """Map each of our encoder's weights to the weights of a BertModel that it concatenates."""
    modules = {"input_norm": [norm]}
    for number in range(layers):
        ours, theirs = f"layers.{number}.", f"encoder.layer.{number}."
        modules[f"{ours}attention.input"] = [f"{theirs}{attention}.{name}" for name in QKV]
        modules |= {ours + one: [theirs + other] for one, other in IN_LAYER.items()}
    return EMBEDDINGS | {
        f"{ours}.{kind}": [f"{name}.{kind}" for name in theirs]
        for ours, theirs in modules.items()
        for kind in ("weight", "bias")
    }


class SentenceEncoder:
    """A trained encoder with its segmenters and its vocabulary.

    `precision` is float32, bfloat16 or int8. Raises `EmsError` for a missing or damaged file, and
    for int8 on a GPU.
    """

    def __init__(self, folder: Path, device: str = "auto", precision: str = "float32") -> None:
        self._description = description = describe(folder)
        self.folder = folder
        about, sums = (EXPORTED, SUMS) if description.weights else (DESCRIPTION, DESCRIPTION)
        for name, sha256 in description.sha256.items():
            if sha256_file(folder / name) != sha256:
                problem = f"its SHA-256 is not the one in {sums}"
                raise Damaged(folder / name, f"{problem}; it is damaged, or of another model")
        if (description.dimensions or 0) > description.model.pooled_width:
            most = description.model.pooled_width
            problem = f"expected at most {most} under `dimensions`, found {description.dimensions}"
            raise Damaged(folder / about, problem)
        self.segmenters: dict[str, str] = description.segmenters
        self.tidy = tidier(description.format_characters)
        self.vocabulary = load_vocabulary(folder / VOCABULARY)
        try:
            self.encoder = _loaded(folder, description, self.vocabulary.get_piece_size())
            check_finite(embed_tokens(self.encoder, [np.array([UNK])]), folder)
        except (IndexError, RuntimeError) as error:
            problem = f"cannot encode with these sizes ({' '.join(str(error).split())[:SHOWN]})"
            raise Damaged(folder / about, problem) from None
        self.encoder.to(choose_device(device)).eval()
        self.device, self.precision = self.encoder.device, precision
        if precision == "int8":
            if self.device.type == "cuda":
                raise EmsError(
                    "precision int8 runs on a CPU only, found a GPU; say cpu, or bfloat16"
                )
            with warnings.catch_warnings():  # PyTorch announces that torchao will replace it
                warnings.simplefilter("ignore")
                quantised = torch.ao.quantization.quantize_dynamic
                self.encoder = quantised(self.encoder, {nn.Linear}, torch.qint8)

    @property
    def identity(self) -> str:
        """Hash of all that vectors depend on: weights, vocabulary, settings, device and source."""
        parts = [self._description.written, str(self.device), torch.__version__]
        parts.append(source_hash("ems.model.encode"))
        return digest([*parts, self.precision] if self.precision != "float32" else parts)

    def tokenise(self, lines: list[str], language: str | None) -> list[np.ndarray]:
        """Tidy, segment, lower-case lines and cut them into pieces; return ids, int64[T] each."""
        if language is None:
            self._check_alike()
        elif language not in self.segmenters:
            known = ", ".join(sorted(self.segmenters))
            raise EmsError(f"language {language!r}: {self.folder} was trained for {known}")
        name = self.segmenters[language] if language else next(iter(self.segmenters.values()))
        segment = segmenter(name, language or "")
        words = [line.lower() for line in segment(tidy_lines(lines, self.tidy))]
        encoded = encode_lines(self.vocabulary, words, language or "", torch.get_num_threads())
        return [np.array(ids or [UNK], np.int64) for ids in encoded]

    def _check_alike(self) -> None:
        """Raise `EmsError` if the tokens of a line depend on its language."""
        tools = sorted(set(self.segmenters.values()))
        cut = [code for code in self.segmenters if by_characters(self.vocabulary, code)]
        if len(tools) > 1 or any(load(name).by_language for name in tools):
            reason = f"segments by {', '.join(tools)}"
        elif cut:
            reason = f"cuts {', '.join(cut)} into characters"
        else:
            return
        raise EmsError(
            f"{self.folder}: expected the language of the lines, since this model {reason}; give "
            f"one of {', '.join(sorted(self.segmenters))}"
        )

    def token_counts(self, lines: list[str], language: str) -> list[int]:
        """Count the tokens of each line; `encode` sees the first `max_tokens` only."""
        return [len(tokens) for tokens in self.tokenise(lines, language)]

    def encode(
        self,
        lines: list[str],
        language: str | None = None,
        what: str = "encode",
        progress: Progress | None = None,
    ) -> np.ndarray:
        """Return embeddings float32[len(lines), d].

        Progress is logged as `what`, or added to `progress`. Raises `EmsError` for an unknown
        language, and if `language` is None but the tokens depend on it.
        """
        own = Progress(what and f"{what} {language or ''}".rstrip(), len(lines), "sentences")
        vectors = self.embed(self.tokenise(lines, language), progress or own)
        own.close()
        return vectors

    def embed(self, tokens: list[np.ndarray], progress: Progress | None = None) -> np.ndarray:
        """Return embeddings float32[N, d] of N arrays of token ids. Raises `EmsError` for others
        than finite ones.
        """
        with torch.autocast(self.device.type, torch.bfloat16, self.precision == "bfloat16"):
            vectors = embed_tokens(self.encoder, tokens, progress)
        vectors = vectors[:, : self._description.dimensions]
        check_finite(vectors, self.folder)
        return vectors


def check_finite(vectors: np.ndarray, model: Any) -> None:
    """Raise `NotFinite` unless all of vectors[N, d], and their lengths, are finite."""
    with np.errstate(all="ignore"):
        squares = np.einsum("nd,nd->n", vectors, vectors)
    if bad := np.flatnonzero(~np.isfinite(squares)).tolist():
        raise NotFinite(
            f"{model}: the vectors of {len(bad):,} of {len(vectors):,} sentences are not finite; "
            "the model is damaged: train, export or fetch it again"
        )


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Scale the rows of vectors[N, d] to length 1; rows of zeros stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)
