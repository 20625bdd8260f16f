"""Extract notes, facts and edges by any OpenAI-compatible endpoint that answers in JSON of a schema."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from uuid import UUID

from pydantic import ValidationError

from lamina.core.memories import Extraction, Message
from lamina.core.ports import Clock
from lamina.errors import Unavailable
from lamina.extraction import rules
from lamina.extraction.echo import without_recalled
from lamina.extraction.entities import merge_equal_entities
from lamina.extraction.model_answers import SCHEMA, Answer, SpokenMessage, build_conversation, supported_extraction
from lamina.models.chat import ChatModel, TokensSpent
from lamina.settings.models import LanguageModelSettings
from lamina.text.hygiene import is_blank
from lamina.text.opaque import without_opaque

TRIES = 2
MOST_BEFORE, PART_BEFORE = 6, 4
"""Most messages from before that go with a call, and the part of it that they may take, one in so many."""
logger = logging.getLogger(__name__)


class LanguageModelExtractor:
    """Asks a model for notes, facts, names and statements; where it cannot, the rules answer.

    Messages of tools and systems and recalled blocks are never sent. The messages of a turn go in as few calls as
    ``call_tokens`` allows, each with one further try if the answer does not fit the schema. The last messages before
    them go with the first call, as far as they fit a quarter of it: they explain a "he" or a "there".

    Args:
        settings: The endpoint, its patience and its budget.
        clock: The time of day, for the daily budget.

    Attributes:
        fallbacks: How often the rules stood in, by reason: call_budget, daily_budget, timeout, unavailable, invalid.

    Raises:
        Misconfigured: If the settings name no endpoint or no model.
    """

    costs_tokens = True

    def __init__(self, settings: LanguageModelSettings, clock: Clock) -> None:
        self._settings = settings
        self._model = ChatModel(settings, clock, SCHEMA)
        self.fallbacks: Counter[str] = Counter()

    async def extract(
        self,
        messages: Sequence[Message],
        ids: Sequence[UUID],
        user: str | None = None,
        *,
        before: Sequence[Message] = (),
    ) -> Extraction:
        """Extract by the model; the messages of a call that fails are read by the rules."""
        said = [SpokenMessage(ids[place], message) for place, message in _spoken(messages)]
        explaining = self._last([message for _, message in _spoken(before)], said)
        groups = self._groups(said, explaining)
        calls = (self._extract(group, user, () if place else explaining) for place, group in enumerate(groups))
        return merge_extractions(await asyncio.gather(*calls))

    async def close(self) -> None:
        """Close the connections to the endpoint."""
        await self._model.close()

    async def _extract(
        self, spoken: Sequence[SpokenMessage], user: str | None, before: Sequence[Message] = ()
    ) -> Extraction:
        reason = "invalid"
        try:
            async with asyncio.timeout(self._settings.deadline_s):
                answer = await self._ask(build_conversation(spoken, before))
            if answer is not None:
                return supported_extraction(answer, spoken, user, before=before)
        except TokensSpent as error:
            reason = error.budget
        except TimeoutError:
            reason = "timeout"
        except Unavailable as error:
            logger.warning("%s", error)
            reason = "unavailable"
        self.fallbacks[reason] += 1
        logger.warning("extraction by rules in place of the language model (%s)", reason)
        return await rules.RuleExtractor().extract(
            [item.message for item in spoken], [item.id for item in spoken], user
        )

    async def _ask(self, asked: list[dict[str, str]]) -> Answer | None:
        """Return a valid answer, if the model gives one; an invalid one is sent back once, with its errors."""
        for _ in range(TRIES):
            text = await self._model.ask(asked)
            try:
                return Answer.model_validate_json(text)
            except ValidationError as error:
                faults = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()[:5])
                repair = f"That is not JSON of the schema ({faults}). Answer again, with the JSON alone."
                asked = [*asked, {"role": "assistant", "content": text}, {"role": "user", "content": repair}]
        return None

    def _last(self, before: Sequence[Message], spoken: Sequence[SpokenMessage]) -> list[Message]:
        """Return the last messages from before that fit a part of a call, and a call beside the first of the others."""
        fixed = self._model.cost(build_conversation([]))
        room = (self._settings.call_tokens - fixed) // PART_BEFORE
        last: list[Message] = []
        for message in reversed(before[-MOST_BEFORE:]):
            longer = [message, *last]
            is_room = self._model.cost(build_conversation([], longer)) - fixed <= room
            if not is_room or self._model.cost(build_conversation(spoken[:1], longer)) > self._settings.call_tokens:
                break
            last = longer
        return last

    def _groups(self, spoken: Sequence[SpokenMessage], before: Sequence[Message]) -> list[list[SpokenMessage]]:
        """Return the messages in order, in groups that fit a call; one that fits none is a group of its own.

        Args:
            spoken: The messages.
            before: Those that go with the first group.
        """
        groups: list[list[SpokenMessage]] = []
        room = 0
        # Each message costs its tokens once, each call the instructions, the schema and the answer.
        fixed = self._model.cost(build_conversation([]))
        for item in spoken:
            cost = self._model.cost(build_conversation([item])) - fixed
            if not groups or cost > room:
                beside = build_conversation([], before) if not groups else build_conversation([])
                groups.append([])
                room = self._settings.call_tokens - self._model.cost(beside)
            groups[-1].append(item)
            room -= cost
        return groups


def merge_extractions(extractions: Sequence[Extraction]) -> Extraction:
    """Return one extraction, each note, entity and edge once."""
    statements = tuple(statement for extraction in extractions for statement in extraction.statements)
    notes = {note.content_hash(): note for extraction in extractions for note in extraction.notes}
    edges = {(edge.subject, edge.type, edge.object): edge for extraction in extractions for edge in extraction.edges}
    entities = merge_equal_entities([entity for extraction in extractions for entity in extraction.entities])
    return Extraction(tuple(notes.values()), statements, entities, tuple(edges.values()))


def _spoken(messages: Sequence[Message]) -> Iterator[tuple[int, Message]]:
    """Yield the messages that somebody says, each with its place, without recalled text."""
    for place, message in enumerate(messages):
        # Bytes would fill the call, and cost tokens.
        cleaned = replace(message, content=without_opaque(without_recalled(message.content)).strip())
        if message.role in rules.SPOKEN and not is_blank(cleaned.content):
            yield place, cleaned
