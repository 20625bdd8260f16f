"""A model's folder, read as sentence-transformers lays it out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lamina.core.ports import ModelIdentity
from lamina.errors import Misconfigured
from lamina.models.onnx.pooling import WAYS
from lamina.models.packaged import model_folder
from lamina.models.prefixes import identity
from lamina.settings.models import SentenceTransformersSettings

OTHERWISE = "set embedding.runtime to torch, which the extra gpu installs"
_GRAPH_FOLDERS = ("", "onnx")
_ROBERTA = ("roberta", "xlm-roberta", "camembert", "mpnet")
_TRANSFORMER, _POOLING = "Transformer", "Pooling"
DENSE, NORMALIZE = "Dense", "Normalize"
_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""Older configurations have a switch for each way of pooling, in the order in which their vectors are joined."""


@dataclass(frozen=True, slots=True)
class EncoderFolder:
    """A model's own description, by its files.

    Args:
        transformer: Folder of the encoder itself.
        config: Its configuration.
        max_length: Most word pieces of a text, with those that the model adds.
        pooling: Ways of pooling; the vectors of several are joined.
        pools_prompt: Whether the prompt's word pieces are pooled with those of the text.
        prompt: Stands before each text.
        lowers: Whether texts are lowered before they are cut into word pieces.
        heads: What follows pooling, in order: the kind of a module and its folder.
    """

    transformer: Path
    config: Mapping[str, Any]
    max_length: int
    pooling: Sequence[str]
    pools_prompt: bool
    prompt: str
    lowers: bool
    heads: Sequence[tuple[str, Path]] = ()

    @property
    def dimension(self) -> int:
        """Length of a text's vector."""
        if dense := [path for kind, path in self.heads if kind == DENSE]:
            return int(required(dense[-1] / "config.json")["out_features"])
        return len(self.pooling) * int(self.config.get("hidden_size") or self.config["dim"])

    @property
    def layout(self) -> Sequence[Any]:
        """How the model uses its encoder, as JSON has it."""
        dense = [required(path / "config.json") for kind, path in self.heads if kind == DENSE]
        return [self.max_length, list(self.pooling), self.pools_prompt, self.prompt, self.lowers, dense]

    @property
    def padding(self) -> int:
        """Word piece that fills up the shorter texts of a batch."""
        return _padding(self.config)

    @property
    def counts_from_padding(self) -> bool:
        """Whether positions begin behind the number of padding, as RoBERTa's do, and not at 0."""
        return self.config.get("model_type") in _ROBERTA

    @property
    def tokenizer(self) -> Path:
        """File of the tokenizer."""
        return self.transformer / "tokenizer.json"

    @property
    def weights(self) -> Sequence[Path]:
        """Files of the weights; large models have several, which an index names."""
        index = optional(self.transformer / "model.safetensors.index.json", None)
        names = sorted(set(index["weight_map"].values())) if index else ["model.safetensors"]
        return [self.transformer / name for name in names]

    @property
    def graph(self) -> Path | None:
        """The ONNX file that the folder carries: the one named model, or the only one."""
        found = [file for place in _GRAPH_FOLDERS for file in sorted((self.transformer / place).glob("*.onnx"))]
        return next((file for file in found if file.name == "model.onnx"), found[0] if len(found) == 1 else None)


def read_folder(folder: Path) -> EncoderFolder:
    """Read a model's folder; one without modules.json is a bare encoder, whose word pieces are averaged.

    Raises:
        Misconfigured: If a file is missing, or the model has parts that run on torch alone.
    """
    listed = optional(folder / "modules.json", [{"type": _TRANSFORMER, "path": ""}])
    modules = [(module["type"].rpartition(".")[2], folder / module["path"]) for module in listed]
    kinds = [kind for kind, _ in modules]
    places = dict(modules)
    is_pooled = kinds[1:2] == [_POOLING]
    heads = modules[1 + is_pooled :]
    unknown = [kind for kind, _ in heads if kind not in (DENSE, NORMALIZE)]
    if kinds[:1] != [_TRANSFORMER] or unknown:
        named = ", ".join(unknown or kinds[:1])
        raise Misconfigured(f"the model in {folder} has {named}, which runs on torch alone", OTHERWISE)
    transformer = places[_TRANSFORMER]
    config = required(transformer / "config.json")
    if not config.get("hidden_size", config.get("dim")):
        kind = config.get("model_type")
        raise Misconfigured(f"the model in {folder} has no hidden_size: its model_type is {kind}", OTHERWISE)
    settings = optional(transformer / "sentence_bert_config.json", {})
    pooling = optional(places[_POOLING] / "config.json", {}) if is_pooled else {}
    named = optional(folder / "config_sentence_transformers.json", {})
    found = EncoderFolder(
        transformer=transformer,
        config=config,
        max_length=_max_length(transformer, config, settings),
        pooling=_ways_of_pooling(pooling),
        pools_prompt=bool(pooling.get("include_prompt", True)),
        prompt=(named.get("prompts") or {}).get(named.get("default_prompt_name")) or "",
        lowers=bool(settings.get("do_lower_case")),
        heads=heads,
    )
    for needed in (found.tokenizer, *([] if found.graph else found.weights)):
        if not needed.is_file():
            raise Misconfigured(f"{needed} is missing", f"save the model with it, or {OTHERWISE}")
    return found


def identity_by_files(settings: SentenceTransformersSettings) -> ModelIdentity:
    """Return the identity of the model in a folder: the same for every runtime, another one for other precisions."""
    return identity(settings, read_folder(model_folder(settings.model)).dimension)


def _max_length(transformer: Path, config: Mapping[str, Any], settings: Mapping[str, Any]) -> int:
    tokenizer = optional(transformer / "tokenizer_config.json", {})
    wanted = settings.get("max_seq_length") or tokenizer.get("model_max_length")
    positions = config.get("max_position_embeddings", wanted)
    if positions is None:
        raise Misconfigured(f"the model in {transformer} does not say how long a text may be", OTHERWISE)
    if config.get("model_type") in _ROBERTA:
        positions -= 1 + _padding(config)
    return min(int(wanted or positions), int(positions))


def _padding(config: Mapping[str, Any]) -> int:
    return int(config.get("pad_token_id", 1 if config.get("model_type") in _ROBERTA else 0) or 0)


def _ways_of_pooling(config: Mapping[str, Any]) -> Sequence[str]:
    ways = config.get("pooling_mode") or [way for flag, way in _FLAGS.items() if config.get(flag)]
    found = [ways] if isinstance(ways, str) else ways or ["mean"]
    if not WAYS.issuperset(found):
        raise Misconfigured(f"the model is pooled by {found}, of which only {sorted(WAYS)} are known", OTHERWISE)
    return found


def required(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        Misconfigured: If it is missing or no JSON.
    """
    found = optional(path, None)
    if found is None:
        raise Misconfigured(f"{path} is missing", f"save the model with it, or {OTHERWISE}")
    return found


def optional(path: Path, otherwise: Any) -> Any:
    """Read a JSON file, or return another value where there is none.

    Raises:
        Misconfigured: If it is no JSON.
    """
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return otherwise
    except ValueError as error:
        raise Misconfigured(f"{path} is no JSON: {error}", "save the model anew") from error
