"""An encoder's graph in int8: weights a column, activations a word piece.

ONNX Runtime's own dynamic quantisation has one scale for all that is in a batch, so that a text's vector depends on its
neighbours: a cosine of 0.995 between a text alone and in a batch. Here each word piece has its own scale. The packaged
model's vectors have a cosine of 0.996 with float32's instead of 0.995, and are the same in every batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper, numpy_helper

_FUSED = "com.microsoft"
_OPSET, _IR_VERSION = 18, 8  # Reductions take their axes as an input from 18 on.
_MOST_WEIGHT = 64
"""Weights of 7 bits: processors without VNNI add two products in 16 bits, which those of 8 bits overflow.

Vectors are the same on every processor so.
"""
_MOST_ACTIVATION, _ZERO = 127, 128
_LEAST_SCALE = 1e-12


@dataclass(slots=True)
class _Int8:
    tensors: dict[str, NDArray[Any]]
    nodes: list[NodeProto] = field(default_factory=list)
    scales: dict[str, str] = field(default_factory=dict)

    def node(self, operator: str, inputs: Sequence[str], output: str, domain: str = "", **attributes: Any) -> str:
        self.nodes.append(helper.make_node(operator, inputs, [output], domain=domain, **attributes))
        return output

    def product(self, value: str, name: str, weight: NDArray[np.float32], output: str) -> str:
        """Multiply a value by weights in int8."""
        scale = self._scale_of(value)
        column = np.maximum(np.abs(weight).max(axis=0) / _MOST_WEIGHT, _LEAST_SCALE)
        self.tensors[f"{name}.int8"] = np.rint(weight / column).astype(np.int8)
        self.tensors[f"{name}.scale"] = column.astype(np.float32)
        inputs = [f"{value}.int8", f"{name}.int8", "int8.one", f"{name}.scale", "int8.zero"]
        whole = self.node("MatMulIntegerToFloat", inputs, f"{output}.whole", _FUSED)
        return self.node("Mul", [whole, scale], output)

    def _scale_of(self, value: str) -> str:
        """Quantise a value once for all its products; return the scale of each of its word pieces."""
        if value not in self.scales:
            greatest = self.node(
                "ReduceMax", [self.node("Abs", [value], f"{value}.abs"), "int8.axes"], f"{value}.greatest"
            )
            scale = self.node("Mul", [greatest, "int8.step"], f"{value}.step")
            self.scales[value] = self.node("Max", [scale, "int8.least"], f"{value}.scale")
            spread = self.node("Div", [value, self.scales[value]], f"{value}.spread")
            self.node("QuantizeLinear", [spread, "int8.one", "int8.zero"], f"{value}.int8")
        return self.scales[value]


def quantise(model: ModelProto) -> ModelProto:
    """Return a made graph with its products in int8; attention, layer norm and GELU stay in float32."""
    graph = _Int8(
        {
            **{tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer},
            "int8.one": np.array(1, np.float32),
            "int8.zero": np.array(_ZERO, np.uint8),
            "int8.step": np.array(1 / _MOST_ACTIVATION, np.float32),
            "int8.least": np.array(_LEAST_SCALE, np.float32),
            "int8.axes": np.array([-1], np.int64),
        }
    )
    for node in model.graph.node:
        match node.op_type:
            case "MatMul":
                value, name = node.input
                graph.product(value, name, graph.tensors.pop(name), node.output[0])
            case "Attention":
                _attention(graph, node)
            case _:
                graph.nodes.append(node)
    made = helper.make_graph(
        graph.nodes,
        model.graph.name,
        model.graph.input,
        model.graph.output,
        [numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in graph.tensors.items()],
    )
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_FUSED, 1)]
    return helper.make_model(made, opset_imports=opsets, ir_version=_IR_VERSION, producer_name=model.producer_name)


def _attention(graph: _Int8, node: NodeProto) -> None:
    value, name, bias, mask, *past_and_distances = node.input
    (output,) = node.output
    parts = zip(("query", "key", "value"), np.split(graph.tensors.pop(name), 3, axis=1), strict=True)
    products = [graph.product(value, f"{name}.{part}", weight, f"{output}.{part}") for part, weight in parts]
    inputs = [*products, bias, mask, *past_and_distances[1:]]
    heads = helper.get_node_attr_value(node, "num_heads")
    graph.node("MultiHeadAttention", inputs, output, _FUSED, num_heads=heads)
