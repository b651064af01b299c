"""Write an encoder as an ONNX graph: token ids and a mask in, sentence embeddings out.

`sentence_embedding` equals the result of `SentenceTransformer.encode` (zeros without tokens);
`token_embeddings` are the states before pooling. In a table (ems.model.table) the letters of a text
are made contiguous, so that each n-gram begins at its own position. Sums run over padded rows of
zeros, because ScatterND loses sums with several threads (onnxruntime 1.32).
"""

import logging
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from ems.base.files import atomic_path
from ems.config.model import EncoderSettings
from ems.model.table import BASE, GAP, MIX, MOST, SHIFT, WEIGHT

INPUTS = ("input_ids", "attention_mask")  # int64[batch, length] each
EMBEDDING = "sentence_embedding"
LEAST_LENGTH = 1e-12  # minimum divisor, as in torch.nn.functional.normalize
STATES = "token_embeddings"
FAR = -1e30  # added to the score of a padded token, so that its softmax is 0
PIECES, NGRAMS = "table.pieces.weight", "table.ngrams.table.weight"
LETTERS = "table.ngrams.letters"


class Graph:
    """A graph of nodes and weights. Methods return the name of a result unless stated otherwise."""

    def __init__(self, state: dict[str, Tensor]) -> None:
        import onnx

        self.onnx = onnx
        self.state = {name: value.detach().cpu().numpy() for name, value in state.items()}
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def add(self, kind: str, *inputs: str, count: int = 0, **attributes: Any) -> Any:
        """Add a node; return the name of its result, or a list of `count` names."""
        at = len(self.nodes)
        results = [f"{kind}_{at}_{number}" for number in range(count or 1)]
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, results, **attributes))
        return results if count else results[0]

    def cast(self, value: str, kind: str) -> str:
        """Cast a result to FLOAT, BOOL, INT64 or UINT64."""
        return self.add("Cast", value, to=getattr(self.onnx.TensorProto, kind))

    def slice(self, value: str, start: int, end: int, axis: int = 1) -> str:
        return self.add("Slice", value, *map(self.integers, (start, end, axis)))

    def name(self, result: str, name: str) -> None:
        """Declare a result as an output of the graph."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [result], [name]))

    def number(self, value: float) -> str:
        return self.constant(f"number_{value!r}", np.array(value, np.float32))

    def integers(self, value: int | list[int]) -> str:
        """Add a constant int64[n]; a single number becomes int64[1]."""
        return self.constant(f"integers_{value!r}", np.atleast_1d(np.array(value, np.int64)))

    def constant(self, name: str, value: np.ndarray) -> str:
        """Add a constant unless the graph has one of this name."""
        if all(weight.name != name for weight in self.weights):
            array = np.ascontiguousarray(value)
            self.weights.append(self.onnx.numpy_helper.from_array(array.reshape(value.shape), name))
        return name

    def unit(self, vectors: str) -> str:
        """Scale vectors (n, d) to length 1, except zeros."""
        length = self.add("ReduceL2", vectors, axes=[1], keepdims=1)
        return self.add("Div", vectors, self.add("Max", length, self.number(LEAST_LENGTH)))

    def write(self, out: Path, outputs: dict[str, list[Any]]) -> None:
        """Check and write the model; `outputs` maps names to shapes."""
        helper, types = self.onnx.helper, self.onnx.TensorProto
        info = helper.make_tensor_value_info
        inputs = [info(name, types.INT64, ["batch", "length"]) for name in INPUTS]
        results = [info(name, types.FLOAT, shape) for name, shape in outputs.items()]
        graph = helper.make_graph(self.nodes, "ems", inputs, results, self.weights)
        # LayerNormalization came with opset 17; onnxruntime 1.14 and later read it, and IR 8
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        model.producer_name = "ems"
        self.onnx.checker.check_model(model)
        with atomic_path(out) as temporary:
            temporary.write_bytes(model.SerializeToString())


# --- layers


def write_onnx(
    state: dict[str, Tensor], settings: EncoderSettings, dimensions: int, out: Path
) -> None:
    """Write the graph of an encoder with this `state_dict`."""
    graph = _Encoder(state, settings)
    states, mask = graph.states()
    graph.name(states, STATES)
    graph.name(graph.pooled(states, mask, dimensions), EMBEDDING)
    shapes = {STATES: ["batch", "length", settings.width], EMBEDDING: ["batch", "dimensions"]}
    graph.write(out, shapes)


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


class _Encoder(Graph):
    """The graph of an encoder with layers and pooling."""

    def __init__(self, state: dict[str, Tensor], settings: EncoderSettings) -> None:
        super().__init__(state)
        self.settings = settings

    def states(self) -> tuple[str, str]:
        """Return the states of all tokens (n, L, d) and the mask as numbers (n, L, 1)."""
        states = self.add("Gather", self.weight("tokens.weight"), "input_ids")
        if "positions.weight" in self.state:
            length = self.add("Gather", self.add("Shape", "input_ids"), self.integers(1))
            zero = self.integers([0])
            rows = self.add("Slice", self.weight("positions.weight"), zero, length, zero)
            states = self.add("Add", states, rows)  # (n, L, d)
        states = self.norm(states, "input_norm")
        mask = self.cast("attention_mask", "FLOAT")  # (n, L)
        hidden = self.add("Mul", self.add("Sub", self.number(1), mask), self.number(FAR))
        hidden = self.add("Unsqueeze", hidden, self.integers([1, 2]))  # (n, 1, 1, L)
        for number in range(self.settings.layers):
            states = self.layer(states, hidden, f"layers.{number}")
        return states, self.add("Unsqueeze", mask, self.integers([2]))

    def layer(self, states: str, hidden: str, name: str) -> str:
        """Apply a post-LN layer to the states."""
        mixed = self.linear(self.attention(states, hidden, name), f"{name}.attention.output")
        states = self.norm(self.add("Add", states, mixed), f"{name}.attention_norm")
        inner = self.linear(states, f"{name}.inner")
        if self.settings.activation == "silu":
            share = self.add("Sigmoid", inner)
        else:  # gelu
            share = self.add("Erf", self.add("Mul", inner, self.number(0.5**0.5)))
            share = self.add("Mul", self.add("Add", share, self.number(1)), self.number(0.5))
        outer = self.linear(self.add("Mul", inner, share), f"{name}.outer")
        return self.norm(self.add("Add", states, outer), f"{name}.output_norm")

    def attention(self, states: str, hidden: str, name: str) -> str:
        """Apply attention to the states, (n, L, d)."""
        heads = self.settings.heads
        size = self.settings.width // heads
        projected = self.linear(states, f"{name}.attention.input")  # (n, L, 3d)
        split = self.add("Split", projected, count=3, axis=2)
        shape = self.integers([0, 0, heads, size])
        query, key, value = (self.add("Reshape", part, shape) for part in split)
        query = self.add("Transpose", query, perm=[0, 2, 1, 3])  # (n, heads, L, size)
        key = self.add("Transpose", key, perm=[0, 2, 3, 1])  # (n, heads, size, L)
        value = self.add("Transpose", value, perm=[0, 2, 1, 3])
        scores = self.add("Mul", self.add("MatMul", query, key), self.number(size**-0.5))
        shares = self.add("Softmax", self.add("Add", scores, hidden), axis=-1)
        mixed = self.add("Transpose", self.add("MatMul", shares, value), perm=[0, 2, 1, 3])
        return self.add("Reshape", mixed, self.integers([0, 0, self.settings.width]))

    def pooled(self, states: str, mask: str, dimensions: int) -> str:
        """Pool the states to sentence embeddings of length 1, (n, dimensions)."""
        real = self.add("Mul", states, mask)  # (n, L, d)
        sums = self.add("ReduceSum", real, self.integers([1]), keepdims=0)  # (n, d)
        counts = self.add("ReduceSum", mask, self.integers([1]), keepdims=0)  # (n, 1)
        vectors = self.add("Div", sums, self.add("Max", counts, self.number(1)))
        if self.settings.pooling == "mean-max":
            hidden = self.add("Mul", self.add("Sub", self.number(1), mask), self.number(FAR))
            largest = self.add("ReduceMax", self.add("Add", real, hidden), axes=[1], keepdims=0)
            vectors = self.add("Concat", vectors, largest, axis=1)  # (n, 2d)
        if dimensions < self.settings.pooled_width:
            vectors = self.slice(vectors, 0, dimensions)
        return self.unit(vectors)

    def norm(self, states: str, name: str) -> str:
        gain, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        eps = self.settings.norm_eps
        return self.add("LayerNormalization", states, gain, bias, axis=-1, epsilon=eps)

    def linear(self, states: str, name: str) -> str:
        matrix = self.constant(f"{name}.matrix", self.state[f"{name}.weight"].T)
        return self.add("Add", self.add("MatMul", states, matrix), self.weight(f"{name}.bias"))

    def weight(self, name: str) -> str:
        return self.constant(name, self.state[name])


# --- tables


def write_table(state: dict[str, Tensor], out: Path) -> None:
    """Write the graph of a table with this `state_dict`; it has no states of tokens."""
    graph, (pieces, width) = Graph(state), state[PIECES].shape
    real = graph.cast("attention_mask", "BOOL")
    tokens = graph.add("Where", real, "input_ids", graph.integers(pieces))  # (n, L); pieces: none
    vectors = mean(graph, PIECES, [tokens])
    if LETTERS in state:
        rows = ngrams(graph, letters(graph, tokens), len(state[NGRAMS]))
        spelt = mean(graph, NGRAMS, rows)
        vectors = graph.add("Add", vectors, graph.add("Mul", spelt, graph.number(WEIGHT)))
    graph.name(graph.unit(vectors), EMBEDDING)
    graph.write(out, {EMBEDDING: ["batch", width]})


def mean(graph: Graph, name: str, parts: list[str]) -> str:
    """Average rows of a table over all `parts` (n, any) to (n, d), zero for no rows; an id equal to
    the number of rows stands for no row.
    """
    table, none = _with_zeros(graph, name), graph.integers(len(graph.state[name]))
    sums, counts = [], []
    for rows in parts:
        vectors = graph.add("Gather", table, rows)  # (n, any, d)
        sums.append(graph.add("ReduceSum", vectors, graph.integers(1), keepdims=0))
        valid = graph.cast(graph.add("Less", rows, none), "FLOAT")
        counts.append(graph.add("ReduceSum", valid, graph.integers(1), keepdims=1))
    count = graph.add("Max", graph.add("Sum", *counts), graph.number(1))  # (n, 1)
    return graph.add("Div", graph.add("Sum", *sums), count)


def letters(graph: Graph, tokens: str) -> str:
    """Return a gap, the letters and further gaps of each text, int64 (n, most + MOST)."""
    spelt = graph.add("Gather", _with_zeros(graph, LETTERS), tokens)
    count = graph.slice(graph.add("Shape", tokens), 0, 1, axis=0)
    ones = graph.add("Concat", count, graph.integers(1), axis=0)
    first = graph.add("Expand", graph.constant("gap", np.array([[GAP]], np.uint8)), ones)
    spelt = graph.add("Concat", first, graph.add("Flatten", spelt, axis=1), axis=1)  # (n, 1 + 32 L)
    real = graph.cast(spelt, "BOOL")
    axis = graph.constant("axis", np.array(1))
    after = graph.add("CumSum", graph.cast(real, "INT64"), axis)  # position, from 1
    chosen = graph.add("Reshape", real, graph.integers(-1))
    place = graph.add("Sub", graph.add("Compress", after, chosen), graph.integers(1))
    text = graph.slice(graph.add("NonZero", real), 0, 1, axis=0)
    pair = (graph.add("Reshape", part, graph.integers([-1, 1])) for part in (text, place))
    places = graph.add("Concat", *pair, axis=1)  # (letters, 2)
    most = graph.add("Add", graph.add("ReduceMax", after, keepdims=0), graph.integers(MOST))
    gap = graph.onnx.numpy_helper.from_array(np.array([GAP]))
    gaps = graph.add("ConstantOfShape", graph.add("Concat", count, most, axis=0), value=gap)
    values = graph.cast(graph.add("Compress", spelt, chosen), "INT64")
    return graph.add("ScatterND", gaps, places, values)


def ngrams(graph: Graph, row: str, buckets: int) -> list[str]:
    """Return the table row of the n-gram at each position (n, most), for each length."""

    def shifted(value: str, by: int) -> str:
        return graph.slice(value, by, by - MOST)

    filled = graph.add("Not", graph.add("Equal", row, graph.integers(GAP)))
    hashed, inside, rows = shifted(row, 0), "", []
    for offset in range(1, MOST):
        hashed = graph.add("Mul", hashed, graph.integers(BASE))
        hashed = graph.add("Add", hashed, shifted(row, offset))
        bits = graph.cast(graph.add("Mul", hashed, graph.integers(MIX)), "UINT64")
        for direction, by in (("LEFT", 1), ("RIGHT", 1 + SHIFT)):  # drops the sign
            places = graph.constant(f"unsigned_{by}", np.array([by], np.uint64))
            bits = graph.add("BitShift", bits, places, direction=direction)
        bucket = graph.add("Mod", graph.cast(bits, "INT64"), graph.integers(buckets))
        if offset == 1:
            kept = graph.add("Or", shifted(filled, 0), shifted(filled, 1))
        else:
            letter = shifted(filled, offset - 1)
            kept = inside = graph.add("And", inside, letter) if inside else letter
        rows.append(graph.add("Where", kept, bucket, graph.integers(buckets)))
    return rows


def _with_zeros(graph: Graph, name: str) -> str:
    return graph.constant(name, np.pad(graph.state[name], ((0, 1), (0, 0))))
