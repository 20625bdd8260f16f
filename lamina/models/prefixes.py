"""Texts that a model wants before questions, and before the texts it embeds to be found."""

import json
from dataclasses import dataclass

from lamina.core.ports import ModelIdentity
from lamina.errors import Misconfigured
from lamina.models.packaged import model_folder
from lamina.settings.models import EmbeddingSettings, EndpointSettings, SentenceTransformersSettings

_FILE = "config_sentence_transformers.json"
_OF_QUESTIONS, _OF_WRITTEN = ("query",), ("document", "passage")


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The words before each chunk of a question, and of a text that is written."""

    question: str = ""
    written: str = ""

    @property
    def suffix(self) -> str:
        """Return the end of the model's name: with other prefixes its vectors are another model's."""
        return f" [{self.question}|{self.written}]" if self.question or self.written else ""

    @property
    def longest(self) -> str:
        """Return the longer of the two, for which a chunk leaves room."""
        return max(self.question, self.written, key=len)


NONE = Prefixes()


def prefixes_of(settings: EmbeddingSettings) -> Prefixes:
    """Return the prefixes that are set, or those that the model's files name for queries and documents.

    Raises:
        Misconfigured: If the model's own are wanted, and it has none; or if it puts a prompt before every text itself.
    """
    match settings:
        case EndpointSettings():
            return Prefixes(settings.query_prefix, settings.document_prefix)
        case SentenceTransformersSettings(own_prefixes=True):
            return _own(settings)
        case SentenceTransformersSettings(query_prefix=question, document_prefix=written):
            return Prefixes(question, written)
        case _:
            return NONE


def identity(settings: SentenceTransformersSettings, dimension: int) -> ModelIdentity:
    """Return a model's identity: int8 and prefixes make another one, any other precision and runtime the same."""
    suffix = " int8" if settings.precision == "int8" else ""
    return ModelIdentity(model=settings.model + suffix + prefixes_of(settings).suffix, dimension=dimension)


def endpoint_identity(settings: EndpointSettings) -> ModelIdentity:
    """Return the identity of an endpoint's model: with other prefixes it is another one."""
    return ModelIdentity(settings.model + prefixes_of(settings).suffix, settings.dimensions)


def _own(settings: SentenceTransformersSettings) -> Prefixes:
    file = model_folder(settings.model) / _FILE
    try:
        described = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise Misconfigured(f"embedding.own_prefixes is set, but {file} cannot be read", "leave it out") from error
    prompts = described.get("prompts") or {}
    if described.get("default_prompt_name"):
        raise Misconfigured(
            f"embedding.own_prefixes is set, but {file} puts one prompt before every text", "leave it out"
        )
    questions = [prompts[name] for name in _OF_QUESTIONS if prompts.get(name)]
    written = [prompts[name] for name in _OF_WRITTEN if prompts.get(name)]
    if not questions and not written:
        named = ", ".join(sorted(prompts)) or "none"
        raise Misconfigured(
            f"embedding.own_prefixes is set, but of query, document and passage {file} names {named}",
            "set embedding.query_prefix and embedding.document_prefix",
        )
    return Prefixes("".join(questions[:1]), "".join(written[:1]))
