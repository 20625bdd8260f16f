"""The ONNX graph of a BERT-family encoder, made from its weights and configuration.

Attention, layer norm and GELU are ONNX Runtime's fused operators (domain ``com.microsoft``), which its own optimiser
finds in exported graphs; here they are written down at once, so that neither torch nor an exporter is needed.

Only attention computes padding: all other layers work on the word pieces of a batch in one row, without those that fill
up the shorter texts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from lamina.errors import Misconfigured
from lamina.models.onnx.folder import OTHERWISE

GRAPH_VERSION = 3
"""Part of the fingerprint of what was made: another layout is made anew."""
HIDDEN = "last_hidden_state"
IDS, MASK, POSITIONS = "input_ids", "attention_mask", "position_ids"
_PLACES, _SPREAD = "places", "spread"
"""Place of each word piece in its batch, padding included; number of the word piece at each place."""
_FUSED = "com.microsoft"
_OPSET, _IR_VERSION = 17, 8  # Old enough for every ONNX Runtime that reads them.
_BERT = {
    "embeddings": ("embeddings.word_embeddings", "embeddings.position_embeddings", "embeddings.token_type_embeddings"),
    "embeddings_norm": "embeddings.LayerNorm",
    "layer": "encoder.layer.",
    "attention": ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"),
    "feed_forward": ("intermediate.dense", "output.dense"),
    "norms": ("attention.output.LayerNorm", "output.LayerNorm"),
}
_DISTILBERT = {
    "embeddings": ("embeddings.word_embeddings", "embeddings.position_embeddings", ""),
    "embeddings_norm": "embeddings.LayerNorm",
    "layer": "transformer.layer.",
    "attention": ("attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin"),
    "feed_forward": ("ffn.lin1", "ffn.lin2"),
    "norms": ("sa_layer_norm", "output_layer_norm"),
}
_MPNET = {
    **_BERT,
    "embeddings": ("embeddings.word_embeddings", "embeddings.position_embeddings", ""),
    "attention": ("attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o"),
    "norms": ("attention.LayerNorm", "output.LayerNorm"),
    "distances": "encoder.relative_attention_bias.weight",
}
_NAMES: Mapping[str, Mapping[str, Any]] = {
    **dict.fromkeys(("bert", "electra", "roberta", "xlm-roberta", "camembert"), _BERT),
    "distilbert": _DISTILBERT,
    "mpnet": _MPNET,
}
_ACTIVATIONS = {
    "gelu": "BiasGelu",  # By the error function.
    **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_pytorch_tanh"), "FastGelu"),
    "relu": "Relu",
}

Weights = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Encoder:
    """Sizes of an encoder and how its weights are named."""

    heads: int
    layers: int
    positions: int
    epsilon: float
    activation: str
    names: Mapping[str, Any]


@dataclass(slots=True)
class _Graph:
    weights: Weights
    epsilon: float
    nodes: list[NodeProto] = field(default_factory=list)
    tensors: dict[str, NDArray[Any]] = field(default_factory=dict)

    def keep(self, name: str, array: NDArray[Any]) -> str:
        self.tensors[name] = np.ascontiguousarray(array, dtype=np.float32)
        return name

    def node(self, operator: str, inputs: Sequence[str], output: str, domain: str = _FUSED, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(operator, inputs, [output], domain=domain, **attributes))
        return output

    def norm(self, name: str) -> list[str]:
        # Models of 2019 call the scale gamma, and the shift beta.
        scale = name + (".weight" if f"{name}.weight" in self.weights else ".gamma")
        shift = name + (".bias" if f"{name}.bias" in self.weights else ".beta")
        return [self.keep(scale, self.weights[scale]), self.keep(shift, self.weights[shift])]

    def product(self, name: str, value: str) -> tuple[str, str]:
        """Multiply by a dense layer's weights; return the product and the bias, which the next operator adds."""
        weight = self.keep(f"{name}.weight", self.weights[f"{name}.weight"].T)
        bias = self.keep(f"{name}.bias", self.weights[f"{name}.bias"])
        return self.node("MatMul", [value, weight], f"{name}.product", domain=""), bias

    def packed(self, value: str, width: Sequence[int] = ()) -> str:
        """Drop the padding of a tensor of shape (batch, length, *width): shape (1, word pieces, *width)."""
        self.tensors[f"{value}.row_shape"] = np.array([1, -1, *width], dtype=np.int64)
        row = self.node("Reshape", [value, f"{value}.row_shape"], f"{value}.row", domain="")
        return self.node("Gather", [row, _PLACES], f"{value}.packed", domain="", axis=1)

    def spread(self, value: str, output: str) -> str:
        """Return a row's vectors at their places, (batch, length, width); padding repeats the piece before it."""
        placed = self.node("Gather", [value, _SPREAD], f"{value}.placed", domain="", axis=1)
        return self.node("Squeeze", [placed, "first.axis"], output, domain="")


def read_encoder(config: Mapping[str, Any]) -> Encoder:
    """Return the sizes that a model's configuration tells.

    Raises:
        Misconfigured: If no graph can be made of such a model.
    """
    kind = str(config.get("model_type"))
    activation = str(config.get("hidden_act", config.get("activation")))
    if kind not in _NAMES:
        raise _unknown("model_type", kind, sorted(_NAMES))
    if activation not in _ACTIVATIONS:
        raise _unknown("hidden_act", activation, sorted(_ACTIVATIONS))
    if config.get("position_embedding_type", "absolute") != "absolute" or config.get("is_decoder"):
        raise _unknown("position_embedding_type or is_decoder", config.get("position_embedding_type"), ["absolute"])
    width = config.get("hidden_size")
    if config.get("embedding_size", width) != width:
        raise _unknown("embedding_size", config["embedding_size"], [str(width)])
    return Encoder(
        heads=int(config.get("num_attention_heads") or config["n_heads"]),
        layers=int(config.get("num_hidden_layers") or config["n_layers"]),
        positions=int(config["max_position_embeddings"]),
        epsilon=float(config.get("layer_norm_eps", 1e-12)),
        activation=activation,
        names=_NAMES[kind],
    )


def make_graph(encoder: Encoder, weights: Weights) -> ModelProto:
    """Return the graph: word pieces, mask and positions (int32, batch by length) to the last layer's vectors."""
    graph = _Graph(_without_prefix(weights, encoder), encoder.epsilon)
    _number(graph)
    value = _embeddings(graph, encoder)
    shared = [MASK, *_distances(graph, encoder)]
    for number in range(encoder.layers):
        value = _layer(graph, encoder, f"{encoder.names['layer']}{number}.", value, shared)
    graph.spread(value, HIDDEN)
    shape = ["batch", "length"]
    width = graph.weights[f"{encoder.names['embeddings'][0]}.weight"].shape[1]
    made = helper.make_graph(
        graph.nodes,
        "encoder",
        [helper.make_tensor_value_info(name, TensorProto.INT32, shape) for name in (IDS, MASK, POSITIONS)],
        [helper.make_tensor_value_info(HIDDEN, TensorProto.FLOAT, [*shape, width])],
        [numpy_helper.from_array(array, name) for name, array in graph.tensors.items()],
    )
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_FUSED, 1)]
    return helper.make_model(made, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="lamina")


def _number(graph: _Graph) -> None:
    """Number the word pieces of a batch, and find their places; each text begins with one."""
    graph.tensors |= {
        "row_shape": np.array([-1], dtype=np.int64),
        "first.axis": np.array([0], dtype=np.int64),
        "one": np.array(1, dtype=np.int32),
    }
    row = graph.node("Reshape", [MASK, "row_shape"], f"{MASK}.row", domain="")
    found = graph.node("NonZero", [row], f"{_PLACES}.found", domain="")
    graph.node("Reshape", [found, "row_shape"], _PLACES, domain="")
    counted = graph.node("CumSum", [row, "first.axis"], f"{_SPREAD}.counted", domain="")
    numbered = graph.node("Sub", [counted, "one"], f"{_SPREAD}.row", domain="")
    shape = graph.node("Shape", [MASK], f"{MASK}.shape", domain="")
    graph.node("Reshape", [numbered, shape], _SPREAD, domain="")


def _embeddings(graph: _Graph, encoder: Encoder) -> str:
    words, positions, kinds = encoder.names["embeddings"]
    table = graph.weights[f"{positions}.weight"].astype(np.float32)
    if kinds:
        # Every text is one segment: its kind's vector is added here, once, instead of to every word piece.
        table = table + graph.weights[f"{kinds}.weight"][0].astype(np.float32)
    tables = [
        graph.keep(f"{words}.weight", graph.weights[f"{words}.weight"]),
        graph.keep(f"{positions}.weight", table),
    ]
    norm = graph.norm(encoder.names["embeddings_norm"])
    inputs = [graph.packed(IDS), "", *tables, "", *norm, "", graph.packed(POSITIONS)]
    outputs = ["embeddings", "embeddings.mask"]
    node = helper.make_node("EmbedLayerNormalization", inputs, outputs, domain=_FUSED, epsilon=graph.epsilon)
    graph.nodes.append(node)
    return outputs[0]


def _distances(graph: _Graph, encoder: Encoder) -> Sequence[str]:
    """Return the inputs of attention behind the mask: MPNet's addition for the distance of two word pieces."""
    if (name := encoder.names.get("distances")) is None:
        return []
    buckets = distance_buckets(encoder.positions, len(graph.weights[name]))
    graph.keep(name, graph.weights[name].astype(np.float32)[buckets].transpose(2, 0, 1)[None])
    for constant, value in (("zero", [0, 0]), ("axes", [2, 3]), ("length_at", [1, 1])):
        graph.tensors[f"distances.{constant}"] = np.array(value, dtype=np.int64)
    shape = graph.node("Shape", [IDS], "distances.shape", domain="")
    lengths = graph.node("Gather", [shape, "distances.length_at"], "distances.lengths", domain="")
    inputs = [name, "distances.zero", lengths, "distances.axes"]
    return ["", graph.node("Slice", inputs, "distances", domain="")]


def distance_buckets(length: int, buckets: int) -> NDArray[np.int64]:
    """Return the bucket of each pair of places, (length, length), as MPNet and T5 have them.

    Half of the buckets are for what comes after a word piece; near places have one each, farther ones share one by
    the logarithm of the distance, up to 128.
    """
    ahead = np.arange(length)[None, :] - np.arange(length)[:, None]
    near = buckets // 4
    far = np.log(np.maximum(np.abs(ahead), 1).astype(np.float32) / near) / math.log(128 / near) * (buckets // 2 - near)
    shared = np.minimum(near + far.astype(np.int64), buckets // 2 - 1)
    found: NDArray[np.int64] = np.where(np.abs(ahead) < near, np.abs(ahead), shared) + (ahead > 0) * (buckets // 2)
    return found


def _layer(graph: _Graph, encoder: Encoder, prefix: str, value: str, shared: Sequence[str]) -> str:
    names: dict[str, Sequence[str]] = {
        key: [prefix + name for name in encoder.names[key]] for key in ("attention", "feed_forward", "norms")
    }
    *parts, dense = names["attention"]
    joined = {
        kind: graph.keep(
            f"{prefix}attention.{kind}", np.concatenate([graph.weights[f"{part}.{kind}"].T for part in parts], axis=-1)
        )
        for kind in ("weight", "bias")
    }
    inputs = [graph.spread(value, f"{prefix}attention.spread"), joined["weight"], joined["bias"], *shared]
    attention = graph.node("Attention", inputs, f"{prefix}attention", num_heads=encoder.heads)
    product, bias = graph.product(dense, graph.packed(attention, [len(graph.weights[f"{dense}.weight"])]))
    value = _add_and_norm(graph, product, value, names["norms"][0], bias)
    inner, outer = names["feed_forward"]
    active = _activation(graph, encoder, *graph.product(inner, value), f"{inner}.active")
    product, bias = graph.product(outer, active)
    return _add_and_norm(graph, product, value, names["norms"][1], bias)


def _add_and_norm(graph: _Graph, value: str, skipped: str, norm: str, bias: str) -> str:
    inputs = [value, skipped, *graph.norm(norm), bias]
    return graph.node("SkipLayerNormalization", inputs, f"{norm}.output", epsilon=graph.epsilon)


def _activation(graph: _Graph, encoder: Encoder, value: str, bias: str, output: str) -> str:
    operator = _ACTIVATIONS[encoder.activation]
    if operator == "Relu":
        return graph.node("Relu", [graph.node("Add", [value, bias], f"{output}.sum", domain="")], output, domain="")
    return graph.node(operator, [value, bias], output)


def _without_prefix(weights: Weights, encoder: Encoder) -> Weights:
    """Return the weights named from the encoder on: a model with a head calls it `bert.` or `roberta.`."""
    word_weights = f"{encoder.names['embeddings'][0]}.weight"
    found = next((name for name in weights if name.endswith(word_weights)), None)
    if found is None:
        raise Misconfigured(f"the model's weights have no {word_weights}", OTHERWISE)
    prefix = found.removesuffix(word_weights)
    return {name.removeprefix(prefix): array for name, array in weights.items() if name.startswith(prefix)}


def _unknown(name: str, value: object, known: Sequence[str]) -> Misconfigured:
    return Misconfigured(
        f"no ONNX graph can be made of the model: {name} is {value}, not one of {', '.join(known)}",
        f"add an ONNX file to its folder, or {OTHERWISE}",
    )
