"""Small models of random weights, in sentence-transformers' layout; made without torch."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from lamina.models.onnx.graph import _NAMES
from lamina.models.packaged import model_path
from lamina.settings.models import PACKAGED_MODEL

CONFIG = {"vocab_size": 30522, "pad_token_id": 0, "max_position_embeddings": 80, "type_vocab_size": 2}
WIDTH, INNER = 24, 40
FEED_FORWARD = ((INNER, WIDTH), (WIDTH, INNER))
SIZES = {
    "hidden_size": WIDTH,
    "num_attention_heads": 3,
    "num_hidden_layers": 2,
    "intermediate_size": INNER,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
}
DISTILBERT_SIZES = {"dim": WIDTH, "n_heads": 3, "n_layers": 2, "hidden_dim": INNER, "activation": "gelu"}
TOKENIZER_FILES = ("tokenizer.json", "special_tokens_map.json", "vocab.txt")


def make_small_model(folder: Path, kind: str = "bert", pooling: Mapping[str, Any] | None = None, **config: Any) -> Path:
    """Write a model's files into a new folder.

    Args:
        folder: The folder.
        kind: Its ``model_type``.
        pooling: Its ways of pooling; the mean if not given.
        config: Further fields of its configuration.
    """
    folder.mkdir()
    given = CONFIG | (DISTILBERT_SIZES if kind == "distilbert" else SIZES) | {"model_type": kind} | config
    write(folder / "config.json", given)
    save_file(random_weights(given), folder / "model.safetensors", metadata={"format": "pt"})
    for name in TOKENIZER_FILES:
        shutil.copy(Path(model_path(PACKAGED_MODEL)) / name, folder / name)
    write(folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]"})
    write(folder / "modules.json", [module(0, "", "Transformer"), module(1, "1_Pooling", "Pooling")])
    write(folder / "sentence_bert_config.json", {"max_seq_length": 60})
    flags = pooling or {"pooling_mode_mean_tokens": True}
    write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 24, **flags})
    return folder


def add_dense(folder: Path, activation: str, *, inner: bool = False) -> Path:
    """Put a dense layer of 24 to 16 behind a model's pooling, between two normalisations if ``inner``."""
    random = np.random.default_rng(7)
    write(
        folder / "2_Dense" / "config.json",
        {
            "in_features": 24,
            "out_features": 16,
            "bias": True,
            "activation_function": f"torch.nn.modules.{activation}",
        },
    )
    weights = {"linear.weight": random.normal(0, 0.5, (16, 24)), "linear.bias": random.normal(0, 0.5, 16)}
    save_file({name: array.astype(np.float32) for name, array in weights.items()}, folder / "2_Dense/model.safetensors")
    kinds = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "2_Dense")]
    if inner:
        kinds[2:2] = [("Normalize", "3_Normalize")]
    write(folder / "modules.json", [module(number, path, kind) for number, (kind, path) in enumerate(kinds)])
    return folder


def random_weights(config: Mapping[str, Any]) -> dict[str, NDArray[np.float32]]:
    """Weights of every part of an encoder, its norms included."""
    random = np.random.default_rng(len(config["model_type"]))
    names = _NAMES[config["model_type"]]
    rows = (config["vocab_size"], config["max_position_embeddings"], config["type_vocab_size"])
    tables = {name: (count, WIDTH) for name, count in zip(names["embeddings"], rows, strict=True) if name}
    dense, norms = {}, [names["embeddings_norm"]]
    for number in range(2):
        prefix = f"{names['layer']}{number}."
        dense |= {prefix + name: (WIDTH, WIDTH) for name in names["attention"]}
        dense |= {prefix + name: shape for name, shape in zip(names["feed_forward"], FEED_FORWARD, strict=True)}
        norms += [prefix + name for name in names["norms"]]
    tables |= {name.removesuffix(".weight"): (32, 3) for name in [names.get("distances", "")] if name}
    weights = {f"{name}.weight": random.normal(0, 0.5, shape) for name, shape in (tables | dense).items()}
    weights |= {f"{name}.bias": random.normal(0, 0.5, shape[0]) for name, shape in dense.items()}
    weights |= {f"{name}.weight": random.uniform(0.5, 1.5, WIDTH) for name in norms}
    weights |= {f"{name}.bias": random.normal(0, 0.2, WIDTH) for name in norms}
    return {name: array.astype(np.float32) for name, array in weights.items()}


def module(number: int, path: str, kind: str) -> dict[str, Any]:
    """Return an entry of modules.json."""
    return {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}


def write(path: Path, content: Any) -> None:
    """Write JSON."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))
