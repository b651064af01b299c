"""Write an encoder as an ONNX graph: token ids and a mask in, sentence embeddings out.

`sentence_embedding` equals the result of `SentenceTransformer.encode` (zeros without tokens);
`token_embeddings` are the states before pooling. PyTorch traces modules that read padded rows of
ids. In a table (ems.model.table) the letters of a text are made contiguous, so that each n-gram
begins at its own position. Sums run over padded rows of zeros, because ScatterND loses sums with
several threads (onnxruntime 1.32).
"""

import logging
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from ems.base.files import atomic_path
from ems.model.encoder import Attention, Encoder
from ems.model.table import BASE, GAP, MIX, MOST, POSITIVE, SHIFT, WEIGHT, EmbeddingTable

INPUTS = ["input_ids", "attention_mask"]  # int64[batch, length] each
EMBEDDING, STATES = "sentence_embedding", "token_embeddings"
AXES = {0: "batch", 1: "length"}
OPSET = 18  # with LayerNormalization and BitwiseAnd; onnxruntime 1.14 and later read it
FAR = -1e30  # added to the score of a padded token, so that its softmax is 0


def write_onnx(encoder: Encoder, dimensions: int, out: Path) -> None:
    """Write the graph of an encoder; the graph of a table has no `token_embeddings`."""
    padded = PaddedEncoder(encoder, dimensions)
    if encoder.table is not None:
        padded = PaddedTable(encoder.table, dimensions)
    with atomic_path(out) as temporary, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter without `dynamo`, which needs onnxscript
        torch.onnx.export(
            padded.eval(),
            (torch.ones(2, 3, dtype=torch.int64),) * 2,
            str(temporary),
            dynamo=False,
            opset_version=OPSET,
            input_names=INPUTS,
            output_names=[STATES, EMBEDDING] if encoder.table is None else [EMBEDDING],
            dynamic_axes={**dict.fromkeys([*INPUTS, STATES], AXES), EMBEDDING: {0: "batch"}},
        )


def write_int8(source: Path, out: Path) -> None:
    """Quantise the matrices of a graph to 8 bits, and their inputs at run time."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load(source)
    # there is nothing to pre-process; without this mark onnxruntime warns
    onnx.helper.set_model_props(model, {"onnx.quant.pre_process": "onnxruntime.quant"})
    handlers = list(logging.root.handlers)  # onnxruntime adds one, and lines would print twice
    with atomic_path(out) as temporary:
        # 7 bits for weights: CPUs without VNNI add two products in 16 bits, which 8 bits overflow
        # https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html
        quantize_dynamic(model, temporary, weight_type=QuantType.QInt8, reduce_range=True)
    logging.root.handlers[:] = handlers


class PaddedEncoder(nn.Module):
    """An encoder with layers or a layer norm, and pooling to length 1."""

    def __init__(self, encoder: Encoder, dimensions: int) -> None:
        super().__init__()
        self.encoder, self.dimensions = encoder, dimensions

    def forward(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return states [n, L, d] and embeddings [n, dimensions] of ids[n, L]."""
        encoder, real = self.encoder, mask.float()[:, :, None]  # (n, L, 1)
        far = (1 - real) * FAR
        states = encoder.tokens(ids)  # (n, L, d)
        if encoder.positions is not None:
            states = states + encoder.positions.weight[: ids.shape[1]]
        states = encoder.input_norm(states)
        for layer in encoder.layers:
            states = layer.by_token(states, attended(layer.attention, states, far))
        count = real.sum(1)  # (n, 1)
        vectors = (states * real).sum(1) / count.clamp(min=1)  # (n, d)
        if encoder.settings.pooling == "mean-max":  # zeros without tokens
            largest = (states * real + far).amax(1) * count.clamp(max=1)
            vectors = torch.cat([vectors, largest], 1)  # (n, 2d)
        return states, functional.normalize(vectors[:, : self.dimensions])


def attended(attention: Attention, states: Tensor, far: Tensor) -> Tensor:
    """Apply attention to states[n, L, d], without the tokens whose far[n, L, 1] is not 0."""
    split = attention.input(states).unflatten(2, (3, attention.heads, -1))
    query, key, value = split.permute(2, 0, 3, 1, 4)  # each (n, heads, L, d / heads)
    scores = query @ key.transpose(2, 3) * query.shape[-1] ** -0.5 + far[:, None, None, :, 0]
    return attention.output((scores.softmax(-1) @ value).transpose(1, 2).flatten(2))


class PaddedTable(nn.Module):
    """A table of pieces and n-grams; a row of zeros, the last one, stands for none."""

    def __init__(self, table: EmbeddingTable, dimensions: int) -> None:
        super().__init__()
        one_more = (0, 0, 0, 1)
        self.pieces = functional.pad(table.pieces.weight[:, :dimensions], one_more)
        self.ngrams = None
        if table.ngrams:
            self.ngrams = functional.pad(table.ngrams.table.weight[:, :dimensions], one_more)
            self.letters = functional.pad(table.ngrams.letters, one_more)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return embeddings [n, dimensions] of ids[n, L]."""
        tokens = torch.where(mask > 0, ids, len(self.pieces) - 1)
        vectors = mean(self.pieces, [tokens])
        if self.ngrams is not None:
            rows = ngrams(letters(self.letters[tokens]), len(self.ngrams) - 1)
            vectors = vectors + WEIGHT * mean(self.ngrams, rows)
        return functional.normalize(vectors)


def mean(table: Tensor, parts: list[Tensor]) -> Tensor:
    """Average rows of a table over all `parts` (n, any) to (n, d); zeros without any row."""
    sums = sum(functional.embedding(rows, table).sum(1) for rows in parts)
    counts = sum((rows < len(table) - 1).sum(1, keepdim=True) for rows in parts)
    return sums / counts.clamp(min=1)


def letters(spelt: Tensor) -> Tensor:
    """Return a gap, the letters and further gaps of each text, int64[n, most + MOST], from the
    letters of its pieces, uint8[n, L, LONGEST].
    """
    spelt = functional.pad(spelt.flatten(1).long(), (1, 0), value=GAP)  # (n, 1 + LONGEST * L)
    real = spelt > 0
    ends = real.long().cumsum(1)  # number of letters so far
    gaps = torch.full_like(functional.pad(spelt, (0, MOST)), GAP)
    text, _ = places = real.nonzero(as_tuple=True)
    gaps = gaps.index_put((text, ends[places] - 1), spelt[places])
    return gaps[:, : ends.amax() + MOST]


def ngrams(row: Tensor, buckets: int) -> list[Tensor]:
    """Return the table row of the n-gram at each position [n, most], for each length: the steps of
    `ems.model.table.Ngrams.rows`.
    """

    def shifted(values: Tensor, by: int) -> Tensor:
        return values[:, by : by - MOST]

    filled, hashed, rows = row != GAP, shifted(row, 0), []
    inside = torch.ones_like(hashed).bool()
    for more in range(1, MOST):
        hashed = hashed * BASE + shifted(row, more)
        bucket = ((hashed * MIX & POSITIVE) >> SHIFT) % buckets
        kept = inside if more > 1 else shifted(filled, 0) | shifted(filled, 1)
        rows.append(torch.where(kept, bucket, buckets))
        inside = inside & shifted(filled, more)
    return rows
