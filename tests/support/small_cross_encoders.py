"""A cross-encoder as an ONNX file, made by hand: it counts the word pieces that question and text share."""

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from lamina.models.packaged import model_path
from lamina.settings.models import PACKAGED_MODEL

CLS, SEP = 101, 102


def make_cross_encoder(folder: Path, *, classes: int = 1, offset: float = -1.0, name: str = "onnx/model.onnx") -> Path:
    """Write the graph with the packaged model's tokenizer into a new folder.

    Args:
        folder: The folder.
        classes: Columns of the answer: the first of two is 0, so that the difference is the score of one.
        offset: Of the logit of a pair that shares nothing.
        name: Of the graph's file.
    """
    file = folder / name
    file.parent.mkdir(parents=True)
    shutil.copy(Path(model_path(PACKAGED_MODEL)) / "tokenizer.json", folder)
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0, "max_position_embeddings": 64}))
    onnx.save(_model(classes, offset), file)
    return folder


def _model(classes: int, offset: float) -> onnx.ModelProto:
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["pairs", "pieces"]) for name in names]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["pairs", classes])
    constants = {
        "one": np.int64(1),
        "least": np.int64(1000),  # Special pieces of the vocabulary have lower numbers.
        "offset": np.float32(offset),
        "across": np.asarray([1], dtype=np.int64),
        "down": np.asarray([2], dtype=np.int64),
        "both": np.asarray([1, 2], dtype=np.int64),
        "flat": np.asarray([-1, 1], dtype=np.int64),
        "columns": np.asarray([[0.0] * (classes - 1) + [1.0]], dtype=np.float32),
    }
    made = helper.make_node
    nodes = [
        made("Sub", ["one", "token_type_ids"], ["of_question"]),
        made("Less", ["input_ids", "least"], ["is_special"]),
        made("Not", ["is_special"], ["is_word"]),
        made("Cast", ["is_word"], ["word"], to=TensorProto.INT64),
        made("Mul", ["word", "attention_mask"], ["seen"]),
        made("Mul", ["seen", "of_question"], ["asked"]),
        made("Mul", ["seen", "token_type_ids"], ["written"]),
        made("Unsqueeze", ["input_ids", "down"], ["rows"]),
        made("Unsqueeze", ["input_ids", "across"], ["columns_of_ids"]),
        made("Equal", ["rows", "columns_of_ids"], ["is_same"]),
        made("Cast", ["is_same"], ["same"], to=TensorProto.INT64),
        made("Unsqueeze", ["asked", "down"], ["asked_rows"]),
        made("Unsqueeze", ["written", "across"], ["written_columns"]),
        made("Mul", ["asked_rows", "written_columns"], ["compared"]),
        made("Mul", ["same", "compared"], ["shared"]),
        made("ReduceSum", ["shared", "both"], ["count"], keepdims=0),
        made("Cast", ["count"], ["count_f"], to=TensorProto.FLOAT),
        made("Add", ["count_f", "offset"], ["logit"]),
        made("Reshape", ["logit", "flat"], ["column"]),
        made("MatMul", ["column", "columns"], ["logits"]),
    ]
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "cross_encoder", inputs, [output], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
