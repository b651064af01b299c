"""A table of pieces, with or without n-grams, as an ONNX graph: it computes what ems.model.table
does of padded texts.

The letters of a text are put side by side, so that all of its n-grams are at even places. Sums run
over padded rows of zeros. ScatterND and ScatterElements could add at any place, but with several
threads the former loses sums (onnxruntime 1.32), and the latter is 30 times slower. Products of
int64 wrap in onnxruntime as in PyTorch.
"""

from pathlib import Path

import numpy as np
from torch import Tensor

from ems.export.graph import EMBEDDING, Graph
from ems.model.table import BASE, GAP, MIX, MOST, SHIFT, WEIGHT

PIECES, NGRAMS = "table.pieces.weight", "table.ngrams.table.weight"
LETTERS = "table.ngrams.letters"


def write_table(state: dict[str, Tensor], out: Path) -> None:
    """Write the graph of the `state_dict` of an encoder that is a table; no token has a state."""
    weights = {name: value.detach().cpu().numpy() for name, value in state.items()}
    graph, none = Graph(), len(weights[PIECES])  # none: the id of no piece
    real = graph.cast("attention_mask", "BOOL")
    tokens = graph.add("Where", real, "input_ids", graph.integers(none))  # (n, L)
    vectors = mean(graph, PIECES, weights, [tokens])
    if LETTERS in weights:
        row = letters(graph, tokens, weights[LETTERS])
        rows = ngrams(graph, row, len(weights[NGRAMS]))
        spelt = mean(graph, NGRAMS, weights, rows)
        vectors = graph.add("Add", vectors, graph.add("Mul", spelt, graph.number(WEIGHT)))
    graph.name(graph.unit(vectors), EMBEDDING)
    graph.write(out, {EMBEDDING: ["batch", weights[PIECES].shape[1]]})


def mean(graph: Graph, name: str, weights: dict[str, np.ndarray], parts: list[str]) -> str:
    """Return the mean of the rows of a table (n, d), over all `parts` (n, any); zero of none.

    The number of the table's rows stands for no row.
    """
    table = _with_zeros(graph, name, weights[name])
    none = graph.integers(len(weights[name]))
    sums, counts = [], []
    for rows in parts:
        vectors = graph.add("Gather", table, rows)  # (n, any, d)
        sums.append(graph.add("ReduceSum", vectors, graph.integers(1), keepdims=0))
        there = graph.cast(graph.add("Less", rows, none), "FLOAT")
        counts.append(graph.add("ReduceSum", there, graph.integers(1), keepdims=1))
    count = graph.add("Max", graph.add("Sum", *counts), graph.number(1))  # (n, 1)
    return graph.add("Div", graph.add("Sum", *sums), count)


def letters(graph: Graph, tokens: str, spelling: np.ndarray) -> str:
    """Return the letters of each text after a gap, int64 (n, most + MOST), with gaps after them."""
    spelt = graph.add("Gather", _with_zeros(graph, LETTERS, spelling), tokens)
    count = graph.slice(graph.add("Shape", tokens), 0, 1, axis=0)
    ones = graph.add("Concat", count, graph.integers(1), axis=0)
    first = graph.add("Expand", graph.constant("gap", np.array([[GAP]], np.uint8)), ones)
    spelt = graph.add("Concat", first, graph.add("Flatten", spelt, axis=1), axis=1)  # (n, 1 + 32 L)
    real = graph.cast(spelt, "BOOL")
    axis = graph.constant("axis", np.array(1))
    after = graph.add("CumSum", graph.cast(real, "INT64"), axis)  # its place from 1
    chosen = graph.add("Reshape", real, graph.integers(-1))
    place = graph.add("Sub", graph.add("Compress", after, chosen), graph.integers(1))
    text = graph.slice(graph.add("NonZero", real), 0, 1, axis=0)
    pair = (graph.add("Reshape", each, graph.integers([-1, 1])) for each in (text, place))
    places = graph.add("Concat", *pair, axis=1)  # (letters, 2)
    most = graph.add("Add", graph.add("ReduceMax", after, keepdims=0), graph.integers(MOST))
    gap = graph.onnx.numpy_helper.from_array(np.array([GAP]))
    gaps = graph.add("ConstantOfShape", graph.add("Concat", count, most, axis=0), value=gap)
    values = graph.cast(graph.add("Compress", spelt, chosen), "INT64")
    return graph.add("ScatterND", gaps, places, values)


def ngrams(graph: Graph, row: str, buckets: int) -> list[str]:
    """Return the row of the table for the n-gram at each place (n, most), for each length."""

    def shifted(value: str, by: int) -> str:
        return graph.slice(value, by, by - MOST)

    filled = graph.add("Not", graph.add("Equal", row, graph.integers(GAP)))
    hashed, inside, found = shifted(row, 0), "", []
    for more in range(1, MOST):
        hashed = graph.add("Mul", hashed, graph.integers(BASE))
        hashed = graph.add("Add", hashed, shifted(row, more))
        bits = graph.cast(graph.add("Mul", hashed, graph.integers(MIX)), "UINT64")
        for direction, by in (("LEFT", 1), ("RIGHT", 1 + SHIFT)):  # without the sign
            bits = graph.add("BitShift", bits, _unsigned(graph, by), direction=direction)
        bucket = graph.add("Mod", graph.cast(bits, "INT64"), graph.integers(buckets))
        if more == 1:
            kept = graph.add("Or", shifted(filled, 0), shifted(filled, 1))
        else:
            letter = shifted(filled, more - 1)
            kept = inside = graph.add("And", inside, letter) if inside else letter
        found.append(graph.add("Where", kept, bucket, graph.integers(buckets)))
    return found


def _with_zeros(graph: Graph, name: str, table: np.ndarray) -> str:
    """Add a table with a row of zeros after the last."""
    return graph.constant(name, np.pad(table, ((0, 1), (0, 0))))


def _unsigned(graph: Graph, value: int) -> str:
    return graph.constant(f"unsigned_{value}", np.array([value], np.uint64))
