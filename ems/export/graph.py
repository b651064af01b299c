"""An ONNX graph in the making: nodes and weights are added one by one, by the names of results."""

from pathlib import Path
from typing import Any

import numpy as np

from ems.base.files import atomic_path

OPSET, IR = 17, 8  # LayerNormalization came with 17; onnxruntime 1.14 and later read both
INPUTS = ("input_ids", "attention_mask")  # int64[batch, length] each
EMBEDDING = "sentence_embedding"
LEAST = 1e-12  # of a length, as torch.nn.functional.normalize has it


class Graph:
    """Nodes and weights; each method returns the name of a result, unless it says otherwise."""

    def __init__(self) -> None:
        import onnx

        self.onnx = onnx
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def add(self, kind: str, *inputs: str, count: int = 0, **attributes: Any) -> Any:
        """Add a node; return the name of its result, or a list of names if it has a `count`."""
        at = len(self.nodes)
        results = [f"{kind}_{at}_{number}" for number in range(count or 1)]
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, results, **attributes))
        return results if count else results[0]

    def cast(self, value: str, kind: str) -> str:
        """Return a result as numbers of another kind: FLOAT, BOOL, INT64, UINT64."""
        return self.add("Cast", value, to=getattr(self.onnx.TensorProto, kind))

    def slice(self, value: str, start: int, end: int, axis: int = 1) -> str:
        """Return a part of a result along an axis."""
        return self.add("Slice", value, *map(self.integers, (start, end, axis)))

    def name(self, result: str, name: str) -> None:
        """Make a result an output of the graph."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [result], [name]))

    def number(self, value: float) -> str:
        """Add a constant."""
        return self.constant(f"number_{value!r}", np.array(value, np.float32))

    def integers(self, value: int | list[int]) -> str:
        """Add a constant of whole numbers; of one number, a list of it."""
        return self.constant(f"integers_{value!r}", np.atleast_1d(np.array(value, np.int64)))

    def constant(self, name: str, value: np.ndarray) -> str:
        """Add a constant, once for each name."""
        if all(weight.name != name for weight in self.weights):
            array = np.ascontiguousarray(value)
            self.weights.append(self.onnx.numpy_helper.from_array(array.reshape(value.shape), name))
        return name

    def unit(self, vectors: str) -> str:
        """Return vectors (n, d) of length 1; zeros stay."""
        length = self.add("ReduceL2", vectors, axes=[1], keepdims=1)
        return self.add("Div", vectors, self.add("Max", length, self.number(LEAST)))

    def write(self, out: Path, outputs: dict[str, list[Any]]) -> None:
        """Write the model with these outputs, a name and a shape each; raise an error of onnx's
        checker for a graph that is not one.
        """
        helper, types = self.onnx.helper, self.onnx.TensorProto
        info = helper.make_tensor_value_info
        given = [info(name, types.INT64, ["batch", "length"]) for name in INPUTS]
        made = [info(name, types.FLOAT, shape) for name, shape in outputs.items()]
        graph = helper.make_graph(self.nodes, "ems", given, made, self.weights)
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR)
        model.producer_name = "ems"
        self.onnx.checker.check_model(model)
        with atomic_path(out) as temporary:
            temporary.write_bytes(model.SerializeToString())
