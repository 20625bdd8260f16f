"""Extract notes and facts by English sentence patterns: without a model, no token spent.

Extracted are statements of people about themselves, decisions, outcomes and plans of a group, and the names in them with
their edges. Questions and small talk pass through unextracted, and so do other languages, but for interactions and the
names of scripts with capitals; the messages themselves stay searchable.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from uuid import UUID

import regex

from lamina.core.memories import Category, Extraction, Message, Note, Role
from lamina.core.profiles import ProfileStatement
from lamina.extraction.clauses import clause_starts
from lamina.extraction.echo import without_recalled
from lamina.extraction.edges import Speaker, extract_graph, speaker_name, user_name
from lamina.extraction.facts import Fact, facts_of
from lamina.extraction.instructions import instructions_of
from lamina.extraction.interactions import IMPORTANCE, is_interaction, tool_notes
from lamina.extraction.note_patterns import OF_ONESELF, RULES, NoteRule
from lamina.extraction.own_statements import profile_facts
from lamina.extraction.speech import Statement, statements
from lamina.text.dates import event_time
from lamina.text.opaque import without_opaque

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
_WORD = re.compile(r"[a-z]++(?:'[a-z]++)?")
_PERSON = re.compile(r"(?:i|we)\b", re.IGNORECASE)
_COMMA = re.compile(r"[,:(]| (?:and|but) ")
SPOKEN = frozenset({Role.USER, Role.ASSISTANT})
MAX_NOTE_CHARS = 600
LONG_TEXT_CHARS = 5_000
CONFIDENCE = 0.8


class RuleExtractor:
    """The default extractor: deterministic, in process, free."""

    costs_tokens = False

    async def extract(
        self,
        messages: Sequence[Message],
        ids: Sequence[UUID],
        user: str | None = None,
        *,
        before: Sequence[Message] = (),  # noqa: ARG002 - the rules read each message by itself
    ) -> Extraction:
        """Return the notes of every spoken message, the facts that users state of themselves, and the edges.

        Long texts are read in a thread, so that nobody else waits for it.
        """
        if sum(len(message.content) for message in messages) > LONG_TEXT_CHARS:
            return await asyncio.to_thread(extract_by_rules, messages, ids, user)
        return extract_by_rules(messages, ids, user)


def extract_by_rules(messages: Sequence[Message], ids: Sequence[UUID], user: str | None = None) -> Extraction:
    """Return the notes, facts, entities and edges that the rules find in the messages, recalled blocks left out.

    Args:
        messages: What was said.
        ids: Of the messages, in their order.
        user: Who says what users say without a name.
    """
    every = list(zip(messages, ids, strict=True))
    pairs = [(message, id_) for message, id_ in every if message.role in SPOKEN]
    spoken = [(replace(message, content=without_recalled(message.content)), id_) for message, id_ in pairs]
    notes: list[Note] = []
    facts: list[ProfileStatement] = []
    for message, id_ in spoken:
        for sentence in statements(message.content):
            found = list(facts_of(sentence)) or list(profile_facts(sentence))
            told = list(instructions_of(sentence)) if message.role is Role.USER else []
            # A note of an instruction would still stand after its revocation.
            notes += () if told else _notes(sentence, found, message, id_)
            if message.role is Role.USER:
                facts += (
                    ProfileStatement(fact.patch, fact.withdrawn, message.occurred_at, f"message:{id_}")
                    for fact in (*found, *told)
                )
    notes += tool_notes(every, CONFIDENCE)
    texts = [without_opaque(message.content) for message, _ in spoken]
    graph = extract_graph(texts, [_speaker(message, id_, user) for message, id_ in spoken])
    # Of the same words the first, with all who said them: another message may be the same one, sent twice.
    unique: dict[bytes, Note] = {}
    for note in notes:
        known = unique.setdefault(note.content_hash(), note)
        if not set(note.speakers) <= set(known.speakers):
            speakers = dict.fromkeys((*known.speakers, *note.speakers))
            unique[note.content_hash()] = replace(known, speakers=tuple(speakers))
    return replace(graph, notes=tuple(unique.values()), statements=tuple(facts))


def _speaker(message: Message, id_: UUID, user: str | None) -> str | Speaker | None:
    """Return who says a message: the one it names, or the user where a user says it."""
    if message.name is None and message.role is Role.USER and user is not None:
        return Speaker(user_name(user), f"message:{id_}")
    return message.name


def _notes(sentence: Statement, facts: Sequence[Fact], message: Message, id_: UUID) -> Iterator[Note]:
    rule = _matching_rule(sentence, facts)
    is_between = rule is None and len(sentence.text) <= MAX_NOTE_CHARS and is_interaction(sentence)
    # A model that speaks of itself teaches nothing; somebody who is named is a person.
    is_of_model = message.role is Role.ASSISTANT and speaker_name(message.name) is None
    if (rule is None and not is_between) or (is_of_model and rule is OF_ONESELF):
        return
    category, importance = (rule.category, rule.importance) if rule else (Category.INTERACTION, IMPORTANCE)
    yield Note(
        content=" ".join([sentence.text, *(fact.outcome for fact in facts if fact.outcome)]),
        category=category,
        importance=importance,
        confidence=CONFIDENCE,
        event_at=event_time(sentence.text, message.occurred_at) or message.occurred_at,
        source=f"message:{id_}",
        metadata={"speaker": message.name} if message.name else {},
        speakers=message.speakers(),
    )


def _matching_rule(sentence: Statement, facts: Sequence[Fact]) -> NoteRule | None:
    # What is longer than a note is no single statement.
    if len(sentence.text) > MAX_NOTE_CHARS:
        return None
    words = frozenset(_WORD.findall(sentence.masked.casefold()))
    stated = next((rule for rule in RULES if not rule.words.isdisjoint(words) and _is_stated(sentence, rule)), None)
    return OF_ONESELF if stated is None and any(fact.is_noted for fact in facts) else stated


def _is_stated(sentence: Statement, rule: NoteRule) -> bool:
    if rule.opens:
        return any(
            rule.pattern.match(sentence.masked, place, end)
            for start, end in sentence.own
            for place in clause_starts(sentence.masked, start, end)
        )
    return any(
        start <= match.start()
        and match.end() <= end
        and not _is_dependent(sentence.masked[start : match.start()], match)
        for match in rule.pattern.finditer(sentence.masked)
        for start, end in sentence.own
    )


def _is_dependent(before: str, match: "regex.Match[str]") -> bool:
    """Report whether the clause of a match only says which thing is meant, or when: "the house where I live"."""
    if not _PERSON.match(match.group()):
        return False
    clause = _COMMA.split(before)[-1]
    is_relative = _RELATIVE.search(clause) and not _TELLS_WHEN.match(clause)
    return bool(is_relative or _DEPENDS.search(clause))
