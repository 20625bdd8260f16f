"""Extract notes and facts by English sentence patterns: without a model, no token spent.

Extracted are statements of people about themselves, decisions, outcomes and plans of a group, and the names in them with
their edges. Questions and small talk pass through unextracted, and so do other languages, but for the names of scripts
with capitals; the messages themselves stay searchable.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from uuid import UUID

from lamina.core.memories import Category, Extraction, Message, Note, Role
from lamina.core.profiles import ProfileStatement
from lamina.extraction.echo import without_recalled
from lamina.extraction.edges import extract_graph, speaker_name
from lamina.extraction.facts import Fact, facts_of
from lamina.extraction.speech import Statement, statements
from lamina.text.dates import event_time
from lamina.text.opaque import without_opaque

_HAVE = r"(?:'ve| have|ve)?(?: (?:just|finally|already|now|also|recently|all|both|successfully))*+"
_OFTEN = r"(?: (?:really|usually|always|never|don't|do not|dont|still|also|actually|absolutely|mostly|no longer|now))*+"
_Rule = tuple[Category, float, re.Pattern[str]]
_RULES: tuple[_Rule, ...] = tuple(
    (category, importance, re.compile(pattern, re.IGNORECASE))
    for category, importance, pattern in (
        (
            Category.DECISION,
            0.8,
            rf"\b(?:we|i){_HAVE} (?:decided|chose|agreed|settled on|picked(?! up)|opted)\b|\blet's go with\b|\bthe decision is\b|\bwe(?:'ll| will) use\b",
        ),
        (
            Category.OUTCOME,
            0.7,
            rf"(?<!get )(?<!getting )(?<!got )\b(?:it|that|this) (?:worked|failed|fixed|broke)\b|\b(?:we|i){_HAVE} (?:shipped|fixed|finished|launched|deployed|released|solved|won|lost|passed|completed)\b|\bturned out\b|\bresulted in\b",
        ),
        (
            Category.STRATEGY,
            0.7,
            r"\b(?:we|i) (?:plan|intend|aim) to\b|\b(?:next time|from now on)\b|\bwe should (?:always|never)\b(?! have\b)|\b(?:always|never) (?:use|run|deploy|commit|ask|merge)\b|\bthe (?:plan|strategy|approach) is\b",
        ),
        (
            Category.NOTE,
            0.6,
            r"^(?:please )?(?:remember|note|keep in mind|don't forget)\b(?! (?:where|when|what|who|how|why|if|whether)\b)",
        ),
        (
            Category.NOTE,
            0.6,
            rf"\bmy name(?: is|'s)\b(?! not\b)|\bi(?:'m| am|m) (?:allergic|vegetarian|vegan|based|from|working|learning)\b|\bi{_OFTEN} (?:like|love|hate|prefer|enjoy|want|need|use|own|have|live|work|eat|drink)\b(?! (?:(?:it|that|this|you)(?:[.,!;:)]|$| (?:so|too|all|and|but|already)\b)|(?:to (?:know|ask)|you to|help|been|ever|never|not|heard|your|an? (?:question|idea|problem|request)|no idea|some help|more info|more information)\b))|\bmy (?:favou?rite|birthday|email|phone|address|wife|husband|partner|son|daughter|dog|cat|team|boss|job)\b(?! (?:says?|said|thinks?|told|tells?|claims?|claimed|asks?|asked|wrote|writes|believes?)\b)",
        ),
    )
)
_OF_ONESELF = _RULES[-1]
# Behind one of these words a clause says what is meant, not that it is so.
_DEPENDS = re.compile(
    r"\b(?:what|which|when|whenever|where|wherever|who|whom|whose|how(?! much)|until|till|before|than)\b", re.IGNORECASE
)
# "The love we have", "people we lost"; but "in the end we chose", "last week I finished".
_RELATIVE = re.compile(
    r"(?:^|\s)(?:the|an?|this|those|these|some|any|every|all|of|people|things?|\w+thing|every\w+)(?: [\w'-]+){0,3} $",
    re.IGNORECASE,
)
_TELLS_WHEN = re.compile(
    r"^\W*+(?:in|on|at|after|during|by|last|this|next|over|for|with|since|from|as of|all|the (?:other|next|same|first)|every|"
    r"a (?:few|couple|week|month|year|day|while)|and|so|but|then)\b",
    re.IGNORECASE,
)
_PERSON = re.compile(r"(?:i|we)\b", re.IGNORECASE)
_COMMA = re.compile(r"[,:(]| (?:and|but) ")
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
    facts: list[ProfileStatement] = []
    for message, id_ in spoken:
        for sentence in statements(message.content):
            found = list(facts_of(sentence))
            notes += _notes(sentence, found, message, id_)
            if message.role is Role.USER:
                facts += (
                    ProfileStatement(fact.patch, fact.withdrawn, message.occurred_at, f"message:{id_}")
                    for fact in found
                )
    texts = [without_opaque(message.content) for message, _ in spoken]
    graph = extract_graph(texts, [message.name for message, _ in spoken])
    unique = {note.content_hash(): note for note in notes}
    return replace(graph, notes=tuple(unique.values()), statements=tuple(facts))


def _notes(sentence: Statement, facts: Sequence[Fact], message: Message, id_: UUID) -> Iterator[Note]:
    rule = _matching_rule(sentence, facts)
    # A model that speaks of itself teaches nothing; somebody who is named is a person.
    is_of_model = message.role is Role.ASSISTANT and speaker_name(message.name) is None
    if rule is None or (is_of_model and rule is _OF_ONESELF):
        return
    category, importance, _ = rule
    yield Note(
        content=" ".join([sentence.text, *(fact.outcome for fact in facts if fact.outcome)]),
        category=category,
        importance=importance,
        confidence=CONFIDENCE,
        event_at=event_time(sentence.text, message.occurred_at) or message.occurred_at,
        source=f"message:{id_}",
        metadata={"speaker": message.name} if message.name else {},
    )


def _matching_rule(sentence: Statement, facts: Sequence[Fact]) -> _Rule | None:
    # What is longer than a note is no single statement.
    if len(sentence.text) > MAX_NOTE_CHARS:
        return None
    stated = next((rule for rule in _RULES if _is_stated(sentence, rule[2])), None)
    return _OF_ONESELF if stated is None and any(map(_is_worth_a_note, facts)) else stated


def _is_worth_a_note(fact: Fact) -> bool:
    """Report whether a fact is kept as a note, too: the story behind the profile's value."""
    return not fact.is_past and not fact.patch.keys() & {"name", "timezone"}


def _is_stated(sentence: Statement, pattern: re.Pattern[str]) -> bool:
    return any(
        start <= match.start()
        and match.end() <= end
        and not _is_dependent(sentence.masked[start : match.start()], match)
        for match in pattern.finditer(sentence.masked)
        for start, end in sentence.own
    )


def _is_dependent(before: str, match: re.Match[str]) -> bool:
    """Report whether the clause of a match only says which thing is meant, or when: "the house where I live"."""
    if not _PERSON.match(match.group()):
        return False
    clause = _COMMA.split(before)[-1]
    is_relative = _RELATIVE.search(clause) and not _TELLS_WHEN.match(clause)
    return bool(is_relative or _DEPENDS.search(clause))
