"""The encoder as an ONNX graph of our own: token ids and a mask in, sentence embeddings out.

The batch and the length are dynamic. Pooling, the first `dimensions` and the division by the length
of the vector are inside, so `sentence_embedding` is what `SentenceTransformer.encode` returns;
`token_embeddings` are the states before pooling. A text without tokens gives zeros.
"""

import logging
from pathlib import Path

from torch import Tensor

from ems.base.files import atomic_path
from ems.config.model import EncoderSettings
from ems.export.graph import EMBEDDING, Graph

STATES = "token_embeddings"
FAR = -1e30  # added to the score of a padded token: its share is 0


def write_onnx(
    state: dict[str, Tensor], settings: EncoderSettings, dimensions: int, out: Path
) -> None:
    """Write the graph of an encoder's `state_dict`."""
    graph = _Encoder(state, settings)
    states, mask = graph.states()
    graph.name(states, STATES)
    graph.name(graph.pooled(states, mask, dimensions), EMBEDDING)
    shapes = {STATES: ["batch", "length", settings.width], EMBEDDING: ["batch", "dimensions"]}
    graph.write(out, shapes)


def write_int8(source: Path, out: Path) -> None:
    """Write a graph with matrices of 8 bits, and with inputs of 8 bits as they come in."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load(source)
    # nothing to prepare; without the mark onnxruntime warns that it was not
    onnx.helper.set_model_props(model, {"onnx.quant.pre_process": "onnxruntime.quant"})
    handlers = list(logging.root.handlers)  # onnxruntime adds one, by which ours would print twice
    with atomic_path(out) as temporary:
        quantize_dynamic(model, temporary, weight_type=QuantType.QInt8)
    logging.root.handlers[:] = handlers


class _Encoder(Graph):
    """The layers and the pooling."""

    def __init__(self, state: dict[str, Tensor], settings: EncoderSettings) -> None:
        super().__init__()
        self.settings = settings
        self.state = {name: value.detach().cpu().numpy() for name, value in state.items()}

    def states(self) -> tuple[str, str]:
        """Return the states (n, L, d) of all tokens, and the mask (n, L, 1) as numbers."""
        states = self.add("Gather", self.weight("tokens.weight"), "input_ids")
        if "positions.weight" in self.state:
            length = self.add("Gather", self.add("Shape", "input_ids"), self.integers(1))
            of = self.weight("positions.weight"), self.integers([0]), length, self.integers([0])
            states = self.add("Add", states, self.add("Slice", *of))  # (n, L, d)
        states = self.norm(states, "input_norm")
        mask = self.cast("attention_mask", "FLOAT")  # (n, L)
        hidden = self.add("Mul", self.add("Sub", self.number(1), mask), self.number(FAR))
        hidden = self.add("Unsqueeze", hidden, self.integers([1, 2]))  # (n, 1, 1, L)
        for number in range(self.settings.layers):
            states = self.layer(states, hidden, f"layers.{number}")
        return states, self.add("Unsqueeze", mask, self.integers([2]))

    def layer(self, states: str, hidden: str, name: str) -> str:
        """Return the states after a post-LN layer."""
        mixed = self.linear(self.attention(states, hidden, name), f"{name}.attention.output")
        states = self.norm(self.add("Add", states, mixed), f"{name}.attention_norm")
        inner = self.activation(self.linear(states, f"{name}.inner"))
        outer = self.linear(inner, f"{name}.outer")
        return self.norm(self.add("Add", states, outer), f"{name}.output_norm")

    def attention(self, states: str, hidden: str, name: str) -> str:
        """Return what each token takes of the others, (n, L, d)."""
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

    def activation(self, states: str) -> str:
        """Return silu, or gelu by the error function."""
        if self.settings.activation == "silu":
            return self.add("Mul", states, self.add("Sigmoid", states))
        share = self.add("Erf", self.add("Mul", states, self.number(0.5**0.5)))
        share = self.add("Mul", self.add("Add", share, self.number(1)), self.number(0.5))
        return self.add("Mul", states, share)

    def pooled(self, states: str, mask: str, dimensions: int) -> str:
        """Return the sentence embeddings of length 1, (n, dimensions)."""
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
        """Return the states after a layer norm."""
        gain, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        eps = self.settings.norm_eps
        return self.add("LayerNormalization", states, gain, bias, axis=-1, epsilon=eps)

    def linear(self, states: str, name: str) -> str:
        """Return the states after a linear layer."""
        matrix = self.constant(f"{name}.matrix", self.state[f"{name}.weight"].T)
        return self.add("Add", self.add("MatMul", states, matrix), self.weight(f"{name}.bias"))

    def weight(self, name: str) -> str:
        """Return the name of a weight of the encoder."""
        return self.constant(name, self.state[name])
