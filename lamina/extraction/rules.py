"""Extract notes and facts by English sentence patterns: without a model, no token spent.

Extracted are statements of people about themselves, decisions, outcomes and plans of a group, and the names in them with
their edges. Questions and small talk pass through unextracted, and so do other languages, but for the names of scripts
with capitals; the messages themselves stay searchable.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from lamina.core.memories import Category, Extraction, Message, Note, Role
from lamina.core.profiles import merge
from lamina.extraction.echo import without_recalled
from lamina.extraction.edges import extract_graph
from lamina.text.dates import event_time
from lamina.text.opaque import without_opaque
from lamina.text.sentences import sentences

_RULES: tuple[tuple[Category, float, re.Pattern[str]], ...] = tuple(
    (category, importance, re.compile(pattern, re.IGNORECASE))
    for category, importance, pattern in (
        (
            Category.DECISION,
            0.8,
            r"\b(?:we|i)(?:'ve| have)? (?:decided|chose|agreed|settled on|picked|opted)\b|\blet's go with\b|\bthe decision is\b|\bwe(?:'ll| will) use\b",
        ),
        (
            Category.OUTCOME,
            0.7,
            r"\b(?:it|that|this) (?:worked|failed|fixed|broke)\b|\b(?:we|i) (?:shipped|fixed|finished|launched|deployed|released|solved|won|lost|passed|completed)\b|\bturned out\b|\bresulted in\b",
        ),
        (
            Category.STRATEGY,
            0.7,
            r"\b(?:we|i) (?:plan|intend|aim) to\b|\b(?:next time|from now on)\b|\bwe should (?:always|never)\b|\b(?:always|never) (?:use|run|deploy|commit|ask|merge)\b|\bthe (?:plan|strategy|approach) is\b",
        ),
        (
            Category.NOTE,
            0.6,
            r"^(?:please )?(?:remember|note|keep in mind|don't forget)\b|\bmy name is\b|\bi(?:'m| am) (?:allergic|vegetarian|vegan|based|from|working|learning)\b|\bi (?:really |usually |always |never |don't |do not )?(?:like|love|hate|prefer|enjoy|want|need|use|own|have|live|work|eat|drink)\b|\bmy (?:favou?rite|birthday|email|phone|address|wife|husband|partner|son|daughter|dog|cat|team|boss|job)\b",
        ),
    )
)
_FACTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("name", re.compile(r"\b(?i:my name is) (?P<value>[^\W\d_][\w'’-]*(?: [A-Z][\w'’-]*)?)")),
    ("name", re.compile(r"\bcall me (?P<value>[A-Z][\w'’-]*)")),
    ("location", re.compile(r"\bI(?:'m| am)? (?:live|based|living) in (?P<value>[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)*)")),
    ("timezone", re.compile(r"\bmy time ?zone is (?P<value>[\w/+:-]+)", re.IGNORECASE)),
    ("employer", re.compile(r"\bI work (?:at|for) (?P<value>[A-Z][\w&'’-]*(?: [A-Z][\w&'’-]*)*)")),
)
_PREFERENCE = re.compile(r"\bI prefer (?P<value>[^.!?,;]+)", re.IGNORECASE)
SPOKEN = frozenset({Role.USER, Role.ASSISTANT})
MAX_NOTE_CHARS = 600
LONG_TEXT_CHARS = 5_000
CONFIDENCE = 0.8


class RuleExtractor:
    """The default extractor: deterministic, in process, free."""

    async def extract(self, messages: Sequence[Message], ids: Sequence[UUID]) -> Extraction:
        """Return the notes of every spoken message, the facts that users state of themselves, and the edges.

        Long texts are read in a thread, so that nobody else waits for it.
        """
        if sum(len(message.content) for message in messages) > LONG_TEXT_CHARS:
            return await asyncio.to_thread(extract_by_rules, messages, ids)
        return extract_by_rules(messages, ids)


def extract_by_rules(messages: Sequence[Message], ids: Sequence[UUID]) -> Extraction:
    """Return the notes, facts, entities and edges that the rules find in the messages, recalled blocks left out."""
    pairs = [(message, id_) for message, id_ in zip(messages, ids, strict=True) if message.role in SPOKEN]
    spoken = [(replace(message, content=without_recalled(message.content)), id_) for message, id_ in pairs]
    notes: list[Note] = []
    profile: dict[str, Any] = {}
    for message, id_ in spoken:
        found = sentences(message.content)
        notes += _notes(found, message, id_)
        if message.role is Role.USER:
            profile = merge(profile, _facts(found))
    texts = [without_opaque(message.content) for message, _ in spoken]
    graph = extract_graph(texts, [message.name for message, _ in spoken])
    return replace(graph, notes=tuple({note.content_hash(): note for note in notes}.values()), profile=profile)


def _notes(found: Sequence[str], message: Message, id_: UUID) -> Iterator[Note]:
    for sentence in found:
        rule = _matching_rule(sentence)
        if rule is not None:
            category, importance = rule
            yield Note(
                content=sentence,
                category=category,
                importance=importance,
                confidence=CONFIDENCE,
                event_at=event_time(sentence, message.occurred_at) or message.occurred_at,
                source=f"message:{id_}",
                metadata={"speaker": message.name} if message.name else {},
            )


def _matching_rule(sentence: str) -> tuple[Category, float] | None:
    # A question states nothing, and what is longer than a note is no single statement.
    if sentence.endswith("?") or len(sentence) > MAX_NOTE_CHARS:
        return None
    return next(((category, weight) for category, weight, pattern in _RULES if pattern.search(sentence)), None)


def _facts(found: Sequence[str]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for sentence in found:
        if sentence.endswith("?"):
            continue
        for key, pattern in _FACTS:
            if match := pattern.search(sentence):
                facts[key] = match["value"].strip()
        if match := _PREFERENCE.search(sentence):
            facts.setdefault("preferences", []).append(match["value"].strip())
    return facts
