"""Extract edges by rules: the words between two names name the relation. English only."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from lamina.core.memories import Edge, Entity, Extraction
from lamina.extraction.entities import MAX_NAME_CHARS, Mention, as_entity, find_mentions, merge_equal_entities
from lamina.extraction.own_statements import own_statements
from lamina.extraction.speech import Statement, statements
from lamina.text.english import FUNCTION_WORDS, SENTENCE_STARTERS
from lamina.text.places import known_places
from lamina.text.words import name_key

CONFIDENCE = 0.7
# Of a statement about a person by somebody else: two of them are about as sure as the person's own word. Searches
# still find it by default (search.min_confidence).
BY_OTHERS = 0.5
MAX_GAP_CHARS = 80
MIN_ID_CHARS = 3

_RELATIVE = (
    "wife|husband|partner|spouse|mother|father|son|daughter|brother|sister|boss|manager|friend|cousin|aunt|uncle|"
    "grandmother|grandfather|mentor|colleague|roommate"
)
_ROLE = "director|founder|co-founder|author|ceo|cto|cfo|head|chair|president|owner|producer|composer|member|capital"
_LEAD = (
    r"(?:,? who)?(?:['’](?:s|m|ve|re)| is| am| are| was| has| have| had| been| also| now|"
    r" currently| recently| just| still| later| first| then| already){0,8}"
)
_NOT_PAST = r"(?! (?:was|were|had)\b)"
_THE = r"(?: the| a| an| my| our)?"


@dataclass(frozen=True, slots=True)
class _Relation:
    """A pattern of the whole text between two names.

    Args:
        type: Of the edge; ``None`` if the match's ``role`` names it.
        is_reversed: Whether the second name is the subject.
    """

    pattern: re.Pattern[str]
    type: str
    is_reversed: bool = False


def _between(middle: str, *, now: bool = False) -> re.Pattern[str]:
    """Return the pattern of the words between two names; those of ``now`` are not about the past."""
    return re.compile(rf"{_NOT_PAST if now else ''}{_LEAD} (?:{middle}){_THE} ", re.IGNORECASE)


_RELATIONS: tuple[_Relation, ...] = (
    _Relation(_between("(?:works?|working) (?:at|for)|employed (?:at|by)", now=True), "works_at"),
    _Relation(_between("(?:used to work|worked) (?:at|for)"), "worked_at"),
    _Relation(_between("join(?:s|ed)?"), "joined"),
    _Relation(_between("left|leaves|quit|quits|resigned from"), "left"),
    _Relation(_between("married(?: to)?|engaged to"), "married_to"),
    _Relation(_between("(?:lives?|living|based|resides?) in", now=True), "lives_in"),
    _Relation(_between("(?:used to live|lived) in"), "lived_in"),
    _Relation(_between("(?:moved|moves)(?: back)? to"), "moved_to"),
    _Relation(_between("no longer lives? in|moved (?:away |over )?from|moved out of"), "moved_away_from"),
    _Relation(_between("no longer works? (?:at|for)|stopped working (?:at|for)"), "left"),
    _Relation(_between("no longer uses?|stopped using|(?:switched|migrated)(?: over| away)? from"), "stopped_using"),
    _Relation(_between("born in"), "born_in"),
    _Relation(_between("(?:co-?)?founded(?! by)"), "founded"),
    _Relation(_between("(?:co-?)?founded by"), "founded", is_reversed=True),
    _Relation(_between("directed by"), "director_of", is_reversed=True),
    _Relation(_between("directed(?! by)"), "director_of"),
    _Relation(_between("written by"), "author_of", is_reversed=True),
    _Relation(_between("(?:works?|working|collaborates?|collaborating) with"), "works_with"),
    _Relation(_between("(?:reports?|reporting) to"), "reports_to"),
    _Relation(_between("uses?|using"), "uses"),
    _Relation(_between("met(?: with)?|meets"), "met"),
    _Relation(_between("knows?"), "knows"),
)
# What the words behind one statement say of the next name: "moved from Paris to Berlin", "uses Helix instead of Vim".
_COUNTERPARTS = (
    ("moved_away_from", re.compile(r" (?:back )?to(?: the)? "), "moved_to"),
    ("stopped_using", re.compile(r" (?:over |back )?to(?: the)? "), "uses"),
    ("uses", re.compile(r" (?:instead of|rather than|in place of)(?: the)? "), "stopped_using"),
)
_IS_ROLE_OF = re.compile(rf"(?:,| (?:is|was|became))(?: the| an?)? (?P<role>{_ROLE}) of(?: the)? ", re.IGNORECASE)
_HAS_RELATIVE = re.compile(
    rf"(?:['’]s| has an?)(?: \w+)? (?P<role>{_RELATIVE})(?:,| is| was| named| called)? ", re.IGNORECASE
)
_IS_RELATIVE_OF = re.compile(rf"(?:,| (?:is|was))(?: the| an?)? (?P<role>{_RELATIVE}) of ", re.IGNORECASE)
_BEHIND = re.compile(rf"['’]s (?P<role>{_RELATIVE})\b", re.IGNORECASE)
# "Ann met Bob's brother" does not say that she met Bob.
_OF_SOMEBODY = re.compile(r"['’]s \w")
_IS = re.compile(r" (?:is|was) $", re.IGNORECASE)
_MINE = re.compile(rf"\b(?P<who>my) (?P<role>{_RELATIVE})(?:,| is| was| named| called)? $", re.IGNORECASE)
_SPEAKER = re.compile(r"(?<![\w'’.])I(?=['’ ])")
_IMPLIED = re.compile(
    r"^(?:(?:just|also|now) )?(?:works?|worked|joined|left|lives?|moved|uses?|met|founded|married)\b", re.IGNORECASE
)
# Names of roles in a chat rather than of people.
_NOBODY = frozenset({"user", "assistant", "human", "ai", "system", "tool", "bot", "agent"})
# The types of the two sides that a relation implies.
_TYPES_OF_SIDES: dict[str, tuple[str | None, str | None]] = {
    "works_at": ("person", "organisation"),
    "worked_at": ("person", "organisation"),
    "joined": ("person", "organisation"),
    "married_to": ("person", "person"),
    "lives_in": ("person", "place"),
    "lived_in": ("person", "place"),
    "moved_to": (None, "place"),
    "moved_away_from": (None, "place"),
    "born_in": ("person", "place"),
    "works_with": ("person", "person"),
    "reports_to": ("person", "person"),
    "founded": ("person", None),
    "director_of": ("person", None),
    "author_of": ("person", None),
}


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who says a message that does not name them.

    Args:
        name: Of the entity that they are.
        message: ``message:<id>``.
    """

    name: str
    message: str


def user_name(user: str) -> str:
    """Return the name of the entity that a user is: the id, or ``user …`` where that says little, or something else.

    >>> user_name("ann"), user_name("42"), user_name("paris")
    ('ann', 'user 42', 'user paris')
    """
    key = name_key(user)
    is_common = key in FUNCTION_WORDS | SENTENCE_STARTERS | _NOBODY or key in known_places()
    is_plain = len(key) >= MIN_ID_CHARS and any(map(str.isalpha, key)) and not is_common
    return (user if is_plain else f"user {user}")[:MAX_NAME_CHARS]


def extract_graph(texts: Sequence[str], speakers: Sequence[str | Speaker | None] | None = None) -> Extraction:
    """Return the entities and edges of the texts, without notes or profile facts.

    The work grows with the length of the texts, about three seconds a million characters.

    Args:
        texts: The texts; a word that is a name in one is one in all.
        speakers: The speaker of each text, in their order; ``None`` if there is none.
    """
    found = find_mentions(texts)
    said_by = list(speakers or [None] * len(texts))
    named = [speaker if isinstance(speaker, Speaker) else speaker_name(speaker) for speaker in said_by]
    every = [
        edge
        for text, mentioned, speaker in zip(texts, found, named, strict=True)
        for edge in _told(text, mentioned, speaker)
    ]
    surest: dict[tuple[str, str, str], Edge] = {}
    for edge in every:
        key = name_key(edge.subject), edge.type, name_key(edge.object)
        if key not in surest or edge.confidence >= surest[key].confidence:
            surest[key] = edge
    edges = tuple(surest.values())
    # Who names nobody, not even themselves, is of the graph only with something that they state.
    stating = {edge.subject for edge in edges} | {edge.object for edge in edges}
    people = [speaker.name if isinstance(speaker, Speaker) else speaker for speaker in named if speaker]
    known = [
        name for name, speaker in zip(people, filter(None, named), strict=True) if speaker == name or name in stating
    ]
    entities = merge_equal_entities(
        [
            *(Entity(name, "person", confidence=1.0) for name in known),
            *(as_entity(mention) for mentioned in found for mention in mentioned),
        ]
    )
    return Extraction(entities=_with_implied_types(entities, edges), edges=edges)


def _told(text: str, mentioned: Sequence[Mention], speaker: str | Speaker | None) -> Iterator[Edge]:
    """Yield the statements of a text; where its speaker is not named in it, with the message that it is."""
    name = speaker.name if isinstance(speaker, Speaker) else speaker
    for edge in _edges(text, mentioned, name):
        weighed = weigh_speaker(edge, [name] if name else [])
        if isinstance(speaker, Speaker) and name in {edge.subject, edge.object}:
            weighed = replace(weighed, told_by=speaker.message)
        yield weighed


def weigh_speaker(edge: Edge, speakers: Sequence[str]) -> Edge:
    """Return the edge with less confidence if it tells of a person and none of its ends said it.

    Args:
        edge: A statement.
        speakers: The names of those who may have said it; nobody knows if there are none.
    """
    ends = [set(name_key(name).split()) for name in (edge.subject, edge.object)]
    said = [set(name_key(name).split()) for name in speakers]
    is_own = any(end <= speaker or speaker <= end for end in ends for speaker in said)
    if not said or is_own or _types_of_sides(edge)[0] != "person":
        return edge
    return replace(edge, confidence=min(edge.confidence, BY_OTHERS))


def _types_of_sides(edge: Edge) -> tuple[str | None, str | None]:
    return ("person", "person") if edge.type.startswith("has_") else _TYPES_OF_SIDES.get(edge.type, (None, None))


def speaker_name(speaker: str | None) -> str | None:
    """Return the name, unless it is that of a role in a chat."""
    return None if speaker is None or name_key(speaker) in _NOBODY else speaker


def _edges(text: str, found: Sequence[Mention], speaker: str | None) -> Iterator[Edge]:
    """Yield the edges of each sentence; places of mentions count from the sentence's start."""
    starts = [mention.start for mention in found]
    for sentence in statements(text):
        end = sentence.start + len(sentence.text)
        inside = found[bisect_left(starts, sentence.start) : bisect_left(starts, end)]
        moved = [
            replace(mention, start=mention.start - sentence.start, end=mention.end - sentence.start)
            for mention in inside
        ]
        between = edges_of_sentence(sentence, moved, speaker)
        yield from between
        if speaker is not None:
            known = {(edge.type, name_key(edge.object)) for edge in between}
            yield from (
                Edge(speaker, item.relation, item.value, confidence=CONFIDENCE)
                for item in own_statements(sentence)
                if (item.relation, name_key(item.value)) not in known
            )


def _with_implied_types(entities: Sequence[Entity], stated: Sequence[Edge]) -> tuple[Entity, ...]:
    """Return the entities; those of unknown type get the one that the edges imply."""
    implied: dict[str, str] = {}
    for edge in stated:
        sides = zip((edge.subject, edge.object), _types_of_sides(edge), strict=True)
        implied |= {name_key(name): type_ for name, type_ in sides if type_ is not None}
    return tuple(
        replace(entity, type=implied.get(entity.key, "thing")) if entity.type == "thing" else entity
        for entity in entities
    )


def edges_of_sentence(sentence: Statement, named: Sequence[Mention], speaker: str | None) -> tuple[Edge, ...]:
    """Return the edges that one sentence states between names; the speaker stands for "I".

    The speaker is also the subject of a sentence that opens with its verb ("left Initech, joined Hooli"), and a
    subject goes on over a comma or an "and".

    Args:
        sentence: One sentence.
        named: The names in it, in order, none inside another; their places count from its start.
        speaker: Who says it.
    """
    subjects = _subjects(sentence, named, speaker)
    found: list[Edge] = []
    for part in sentence.told:
        found += _relations(sentence.masked, [mention for mention in subjects if _is_in(mention, part)])
    for part in sentence.own:
        found += _relatives(sentence.masked, [mention for mention in named if _is_in(mention, part)], speaker)
    return tuple(dict.fromkeys(found))


def _is_in(mention: Mention, part: tuple[int, int]) -> bool:
    return part[0] <= mention.start and mention.end <= part[1]


def _subjects(sentence: Statement, named: Sequence[Mention], speaker: str | None) -> list[Mention]:
    """Return the names, and the places where the speaker says "I", in order."""
    if speaker is None:
        return list(named)
    spoken = [
        Mention(match.start(), match.end(), speaker, "person", is_sure=True)
        for match in _SPEAKER.finditer(sentence.masked)
        if any(start <= match.start() < end for start, end in sentence.own)
    ]
    opens_itself = any(start == 0 < end for start, end in sentence.own) and _IMPLIED.match(sentence.masked)
    implied = [Mention(0, 0, speaker, "person", is_sure=True)] if opens_itself else []
    ends = [mention.end for mention in named]
    after = ((item, bisect_right(ends, item.start)) for item in spoken)
    free = [item for item, place in after if place == len(named) or item.start < named[place].start]
    return implied + sorted([*named, *free], key=lambda mention: mention.start)


def _relations(sentence: str, names: Sequence[Mention]) -> Iterator[Edge]:
    subject: Mention | None = None
    edge: Edge | None = None
    for left, right in pairwise(names):
        gap, before = "", edge
        if right.start - left.end <= MAX_GAP_CHARS:
            between = sentence[left.end : right.start].lstrip('”»"').rstrip('“«"')
            gap = f" {between}" if left.end == 0 else between
        edge = _edge_between(gap, left, right) or _counterpart(before, gap, right)
        if edge is None and subject is not None and _continuation(gap):
            edge = _edge_between(_continuation(gap), subject, right)
        elif before is None or edge is None or edge.subject != before.subject:
            subject = left if edge is not None and edge.subject == left.name else None
        if edge is not None and edge.subject != edge.object and not _OF_SOMEBODY.match(sentence, right.end):
            yield edge


def _continuation(gap: str) -> str:
    """Return the gap as it would stand behind its subject, if a comma or an "and" takes the subject up again."""
    match = re.match(r"(?:, (?:and |then |but )?|,? and (?:then )?|,? then )(?=\w)", gap)
    return f" {gap[match.end() :]}" if match else ""


def _edge_between(gap: str, left: Mention, right: Mention) -> Edge | None:
    for relation in _RELATIONS:
        if relation.pattern.fullmatch(gap):
            return _edge(relation.type, left, right, is_reversed=relation.is_reversed)
    if match := _IS_ROLE_OF.fullmatch(gap):
        return _edge(f"{match['role'].lower().replace('-', '_')}_of", left, right)
    if match := _HAS_RELATIVE.fullmatch(gap):
        return _edge(f"has_{match['role'].lower()}", left, right)
    if match := _IS_RELATIVE_OF.fullmatch(gap):
        return _edge(f"has_{match['role'].lower()}", left, right, is_reversed=True)
    return None


def _counterpart(before: Edge | None, gap: str, right: Mention) -> Edge | None:
    """Return the edge of the same subject that goes with the one before."""
    for type_, words, other in _COUNTERPARTS:
        if before is not None and before.type == type_ and words.fullmatch(gap):
            return Edge(before.subject, other, right.name, confidence=CONFIDENCE)
    return None


def _edge(type_: str, left: Mention, right: Mention, *, is_reversed: bool = False) -> Edge:
    subject, object_ = (right, left) if is_reversed else (left, right)
    return Edge(subject.name, type_, object_.name, confidence=CONFIDENCE)


def _relatives(sentence: str, named: Sequence[Mention], speaker: str | None) -> Iterator[Edge]:
    """Yield "my wife Eve", "my boss is Eve", and "Eve is Ann's mother"."""
    for mention in named:
        if speaker and (match := _MINE.search(sentence[max(0, mention.start - 40) : mention.start])):
            yield Edge(speaker, f"has_{match['role'].lower()}", mention.name, confidence=CONFIDENCE)
    for left, right in pairwise(named):
        behind = _BEHIND.match(sentence, right.end)
        if behind and _IS.fullmatch(sentence[left.end : right.start]):
            yield Edge(right.name, f"has_{behind['role'].lower()}", left.name, confidence=CONFIDENCE)
