"""Extract notes, facts and edges by any OpenAI-compatible endpoint that answers in JSON of a schema."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from lamina.core.memories import Extraction, Message
from lamina.core.ports import Clock
from lamina.core.profiles import merge
from lamina.errors import Unavailable
from lamina.extraction import rules
from lamina.extraction.echo import without_recalled
from lamina.extraction.entities import distinct
from lamina.extraction.model_answers import SCHEMA, Answer, SpokenMessage, build_conversation, supported_extraction
from lamina.models.chat import ChatEndpoint, ask_within
from lamina.models.token_budget import TokenBudget
from lamina.settings import LanguageModelSettings
from lamina.text.hygiene import is_blank
from lamina.text.words import estimated_tokens

TRIES = 2
_SCHEMA_TOKENS = estimated_tokens(str(SCHEMA))
logger = logging.getLogger(__name__)


class NoModelAnswer(Exception):
    """The model was not asked, or its answer is of no use: the rules read the messages instead.

    Args:
        reason: Why, in one word that a counter is named by.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class LanguageModelExtractor:
    """Asks a model for notes, facts, names and statements; where it cannot, the rules answer.

    Messages of tools and systems and recalled blocks are never sent. The messages of a turn go in as few calls as
    ``call_tokens`` allows, each with one further try if the answer does not fit the schema.

    Args:
        settings: The endpoint, its patience and its budget.
        clock: The time of day, for the daily budget.

    Raises:
        Misconfigured: If the settings name no endpoint or no model.
    """

    def __init__(self, settings: LanguageModelSettings, clock: Clock) -> None:
        self._settings = settings
        self._endpoint = ChatEndpoint(settings)
        self._budget = TokenBudget(settings.daily_tokens, clock)
        self._fallbacks: Counter[str] = Counter()

    @property
    def fallbacks(self) -> Mapping[str, int]:
        """Return how often the rules stood in, by reason: call_budget, daily_budget, timeout, unavailable, invalid."""
        return dict(self._fallbacks)

    async def extract(self, messages: Sequence[Message], ids: Sequence[UUID]) -> Extraction:
        """Extract by the model; the messages of a call that fails are read by the rules."""
        # Each message costs its tokens once, each call the instructions and the schema.
        groups = _groups(list(_spoken(messages, ids)), self._settings.call_tokens - self._settings.answer_tokens)
        return merge_extractions(await asyncio.gather(*map(self._extract, groups)))

    async def close(self) -> None:
        """Close the connections to the endpoint."""
        await self._endpoint.close()

    async def _extract(self, spoken: Sequence[SpokenMessage]) -> Extraction:
        try:
            async with asyncio.timeout(self._settings.deadline_s):
                return supported_extraction(await self._ask(build_conversation(spoken)), spoken)
        except NoModelAnswer as error:
            reason = error.reason
        except TimeoutError:
            reason = "timeout"
        except Unavailable as error:
            logger.warning("%s", error)
            reason = "unavailable"
        self._fallbacks[reason] += 1
        logger.warning("extraction by rules in place of the language model (%s)", reason)
        return await rules.RuleExtractor().extract([item.message for item in spoken], [item.id for item in spoken])

    async def _ask(self, asked: list[dict[str, str]]) -> Answer:
        """Return a valid answer; an invalid one is sent back once, with its errors."""
        for _ in range(TRIES):
            text = await self._spend(asked)
            try:
                return Answer.model_validate_json(text)
            except ValidationError as error:
                faults = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()[:5])
                repair = f"That is not JSON of the schema ({faults}). Answer again, with the JSON alone."
                asked = [*asked, {"role": "assistant", "content": text}, {"role": "user", "content": repair}]
        raise NoModelAnswer("invalid")

    async def _spend(self, asked: Sequence[dict[str, Any]]) -> str:
        cost = _cost(asked) + self._settings.answer_tokens
        if cost > self._settings.call_tokens:
            raise NoModelAnswer("call_budget")
        text = await ask_within(self._endpoint, self._budget, asked, SCHEMA, cost)
        if text is None:
            raise NoModelAnswer("daily_budget")
        return text


def merge_extractions(extractions: Sequence[Extraction]) -> Extraction:
    """Return one extraction, each note, entity and edge once, later facts over earlier ones."""
    profile: dict[str, Any] = {}
    for extraction in extractions:
        profile = merge(profile, extraction.profile)
    notes = {note.content_hash(): note for extraction in extractions for note in extraction.notes}
    edges = {(edge.subject, edge.type, edge.object): edge for extraction in extractions for edge in extraction.edges}
    entities = distinct([entity for extraction in extractions for entity in extraction.entities])
    return Extraction(tuple(notes.values()), profile, entities, tuple(edges.values()))


def _spoken(messages: Sequence[Message], ids: Sequence[UUID]) -> Iterator[SpokenMessage]:
    for message, id_ in zip(messages, ids, strict=True):
        cleaned = replace(message, content=without_recalled(message.content).strip())
        if message.role in rules.SPOKEN and not is_blank(cleaned.content):
            yield SpokenMessage(id_, cleaned)


def _groups(spoken: Sequence[SpokenMessage], most_tokens: int) -> list[list[SpokenMessage]]:
    """Return the messages in order, in groups that fit a call; one that fits none is a group of its own."""
    groups: list[list[SpokenMessage]] = []
    room = 0
    fixed = _cost(build_conversation([]))
    for item in spoken:
        cost = _cost(build_conversation([item])) - fixed
        if not groups or cost > room:
            groups.append([])
            room = most_tokens - fixed
        groups[-1].append(item)
        room -= cost
    return groups


def _cost(asked: Sequence[Mapping[str, str]]) -> int:
    return _SCHEMA_TOKENS + sum(estimated_tokens(message["content"]) for message in asked)
