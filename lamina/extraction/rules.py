"""Extraction without a model: English sentence patterns, no token spent.

It keeps what people state about themselves and what a group decides, did or plans. Questions,
small talk and other languages pass through unextracted; the messages themselves stay searchable.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from lamina.memories import Category, Extraction, Message, Note, Role
from lamina.profiles import merge

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\s*\n\s*")
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
_SPOKEN = frozenset({Role.USER, Role.ASSISTANT})
_RECALLED = re.compile(
    r"^\[Memory: [^\]\n]*\]\n.*?^confidence: [\d.]+$|^\[Profile: [^\]\n]*\]\n.*?$", re.MULTILINE | re.DOTALL
)
MAX_NOTE_CHARS = 600
CONFIDENCE = 0.8


class RuleExtractor:
    """The default extractor: deterministic, in process, free."""

    def extract(self, messages: Sequence[Message], ids: Sequence[UUID]) -> Extraction:
        """Return notes of every spoken message and the facts that users state of themselves."""
        notes = [note for message, id_ in zip(messages, ids, strict=True) for note in _notes(message, id_)]
        profile: dict[str, Any] = {}
        for message in messages:
            if message.role is Role.USER:
                profile = merge(profile, _facts(message.content))
        return Extraction(tuple({note.content_hash(): note for note in notes}.values()), profile)


def without_recalled(text: str) -> str:
    """Return the text without the memory blocks that an agent was given and echoes back."""
    return _RECALLED.sub("", text)


def sentences(text: str) -> list[str]:
    """Split a text at sentence ends and line breaks; every sentence is trimmed and non-empty."""
    return [sentence for part in _SENTENCE_END.split(text) if (sentence := part.strip())]


def _notes(message: Message, id_: UUID) -> Iterator[Note]:
    if message.role not in _SPOKEN:
        return
    for sentence in sentences(without_recalled(message.content)):
        rule = _matching_rule(sentence)
        if rule is not None:
            category, importance = rule
            yield Note(
                content=sentence,
                category=category,
                importance=importance,
                confidence=CONFIDENCE,
                event_at=message.occurred_at,
                source=f"message:{id_}",
                metadata={"speaker": message.name} if message.name else {},
            )


def _matching_rule(sentence: str) -> tuple[Category, float] | None:
    if sentence.endswith("?") or len(sentence) > MAX_NOTE_CHARS:
        return None
    return next(((category, weight) for category, weight, pattern in _RULES if pattern.search(sentence)), None)


def _facts(text: str) -> dict[str, Any]:
    spoken = [sentence for sentence in sentences(without_recalled(text)) if not sentence.endswith("?")]
    facts: dict[str, Any] = {}
    for sentence in spoken:
        for key, pattern in _FACTS:
            if found := pattern.search(sentence):
                facts[key] = found["value"].strip()
        if found := _PREFERENCE.search(sentence):
            facts.setdefault("preferences", []).append(found["value"].strip())
    return facts
