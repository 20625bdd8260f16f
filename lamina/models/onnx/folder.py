"""A model's folder, read as sentence-transformers lays it out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lamina.core.ports import ModelIdentity
from lamina.errors import Misconfigured
from lamina.models.onnx.pooling import WAYS
from lamina.models.packaged import model_path
from lamina.settings import SentenceTransformersSettings

_OTHERWISE = "set embedding.runtime to torch"
_PLACES = ("model.onnx", "onnx/model.onnx")
_ROBERTA = ("roberta", "xlm-roberta", "camembert")
_TRANSFORMER, _POOLING, _NORMALIZE = "Transformer", "Pooling", "Normalize"
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
    """

    transformer: Path
    config: Mapping[str, Any]
    max_length: int
    pooling: Sequence[str]
    pools_prompt: bool
    prompt: str
    lowers: bool

    @property
    def dimension(self) -> int:
        """Length of a text's vector."""
        width = self.config.get("hidden_size", self.config.get("dim"))
        return len(self.pooling) * int(width or 0)

    @property
    def padding(self) -> int:
        """Word piece that fills up the shorter texts of a batch."""
        return int(self.config.get("pad_token_id") or 0)

    @property
    def counts_from_padding(self) -> bool:
        """Whether positions begin behind the number of padding, as RoBERTa's do, and not at 0."""
        return self.config["model_type"] in _ROBERTA

    @property
    def tokenizer(self) -> Path:
        """File of the tokenizer."""
        return self.transformer / "tokenizer.json"

    @property
    def weights(self) -> Path:
        """File of the weights."""
        return self.transformer / "model.safetensors"

    @property
    def graph(self) -> Path | None:
        """The ONNX file that the folder carries, if it does."""
        return next((path for place in _PLACES if (path := self.transformer / place).is_file()), None)


def read_folder(folder: Path) -> EncoderFolder:
    """Read a model's folder; one without modules.json is a bare encoder, whose word pieces are averaged.

    Raises:
        Misconfigured: If a file is missing, or the model has parts that run on torch alone.
    """
    if not folder.is_dir():
        raise Misconfigured(f"embedding.model {folder} is no folder", f"give the model's folder, or {_OTHERWISE}")
    modules = {_kind(module): folder / module["path"] for module in _optional(folder / "modules.json", [])}
    unknown = sorted(modules.keys() - {_TRANSFORMER, _POOLING, _NORMALIZE})
    if unknown:
        raise Misconfigured(f"the model in {folder} has {', '.join(unknown)}, which runs on torch alone", _OTHERWISE)
    transformer = modules.get(_TRANSFORMER, folder)
    config = _required(transformer / "config.json")
    settings = _optional(transformer / "sentence_bert_config.json", {})
    pooling = _optional(modules[_POOLING] / "config.json", {}) if _POOLING in modules else {}
    found = EncoderFolder(
        transformer=transformer,
        config=config,
        max_length=_max_length(transformer, config, settings),
        pooling=_ways_of_pooling(pooling),
        pools_prompt=bool(pooling.get("include_prompt", True)),
        prompt=_prompt(_optional(folder / "config_sentence_transformers.json", {})),
        lowers=bool(settings.get("do_lower_case")),
    )
    for needed in (found.tokenizer, found.graph or found.weights):
        if not needed.is_file():
            raise Misconfigured(f"{needed} is missing", f"save the model with it, or {_OTHERWISE}")
    return found


def identity_by_files(settings: SentenceTransformersSettings) -> ModelIdentity:
    """Return the identity of the model in a folder: the same for every runtime."""
    return ModelIdentity(model=settings.model, dimension=read_folder(Path(model_path(settings.model))).dimension)


def _kind(module: Mapping[str, str]) -> str:
    return module["type"].rpartition(".")[2]


def _max_length(transformer: Path, config: Mapping[str, Any], settings: Mapping[str, Any]) -> int:
    tokenizer = _optional(transformer / "tokenizer_config.json", {})
    wanted = settings.get("max_seq_length") or tokenizer.get("model_max_length")
    positions = int(config["max_position_embeddings"])
    if config["model_type"] in _ROBERTA:
        positions -= 1 + int(config.get("pad_token_id") or 0)
    return min(int(wanted or positions), positions)


def _ways_of_pooling(config: Mapping[str, Any]) -> Sequence[str]:
    ways = config.get("pooling_mode") or [way for flag, way in _FLAGS.items() if config.get(flag)]
    found = [ways] if isinstance(ways, str) else ways or ["mean"]
    if not WAYS.issuperset(found):
        raise Misconfigured(f"the model is pooled by {found}, of which only {sorted(WAYS)} are known", _OTHERWISE)
    return found


def _prompt(config: Mapping[str, Any]) -> str:
    return (config.get("prompts") or {}).get(config.get("default_prompt_name")) or ""


def _required(path: Path) -> Any:
    found = _optional(path, None)
    if found is None:
        raise Misconfigured(f"{path} is missing", f"save the model with it, or {_OTHERWISE}")
    return found


def _optional(path: Path, otherwise: Any) -> Any:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return otherwise
    except ValueError as error:
        raise Misconfigured(f"{path} is no JSON: {error}", "save the model anew") from error
