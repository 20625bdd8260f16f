"""Extract edges by rules: the words between two names name the relation. English only."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from lamina.core.memories import Edge, Entity, Extraction
from lamina.extraction.entities import MAX_NAME_CHARS, Mention, as_entity, find_mentions, merge_equal_entities
from lamina.extraction.facts import RETRACTION, facts_of, may_be_place
from lamina.extraction.named_things import states_of_thing
from lamina.extraction.own_statements import own_statements
from lamina.extraction.speech import Statement, statements
from lamina.extraction.told_late import time_of_change
from lamina.policies.validity import STATES, exclude_each_other
from lamina.text.english import FUNCTION_WORDS, SENTENCE_STARTERS, listed
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
    r" currently| recently| just| still| later| first| then| already| mainly| mostly| usually| finally| always){0,8}"
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


def _held(middle: str) -> re.Pattern[str]:
    """Return the pattern of the words between the name of some work and that of who has it now."""
    work = "project|service|team|module|component|repository|repo|system|product|app|account|department|cluster"
    return re.compile(rf"(?: (?:{work}))? (?:is|are)(?: now| currently)? (?:{middle}){_THE} ", re.IGNORECASE)


_RELATIONS: tuple[_Relation, ...] = (
    _Relation(_between("(?:works?|working) (?:at|for)|employed (?:at|by)", now=True), "works_at"),
    _Relation(_between("(?:used to work|worked) (?:at|for)"), "worked_at"),
    _Relation(_between("(?:re)?join(?:s|ed)?"), "joined"),
    _Relation(_between("left|leaves|quit|quits|resigned from"), "left"),
    _Relation(_between("(?:got )?married(?: to)?"), "married_to"),
    _Relation(_between("engaged to"), "engaged_to"),
    _Relation(_between("divorced(?: from)?"), "divorced"),
    _Relation(_between("(?:separated|split up) (?:from|with)"), "separated_from"),
    _Relation(_between("(?:lives?|living|based|resides?) in", now=True), "lives_in"),
    _Relation(_between("(?:used to live|lived) in"), "lived_in"),
    _Relation(_between("(?:moved|moves)(?: back)? to"), "moved_to"),
    _Relation(_between("no longer lives? in|moved (?:away |over )?from|moved out of"), "moved_away_from"),
    _Relation(_between("no longer works? (?:at|for)|stopped working (?:at|for)"), "left"),
    _Relation(
        _between("no longer uses?|stopped using|(?:switched|migrated)(?: over| away)? from"),
        "stopped_using",
    ),
    _Relation(re.compile(r" (?:is|are) now (?:called|named|known as) ", re.IGNORECASE), "is_named"),
    _Relation(_between("born in"), "born_in"),
    _Relation(_between("(?:co-?)?founded(?! by)"), "founded"),
    _Relation(_between("(?:co-?)?founded by"), "founded", is_reversed=True),
    _Relation(_between("directed by"), "director_of", is_reversed=True),
    _Relation(_between("directed(?! by)"), "director_of"),
    _Relation(_between("written by"), "author_of", is_reversed=True),
    _Relation(_held("owned by"), "owned_by"),
    _Relation(_held("(?:led|headed) by"), "led_by"),
    _Relation(_between("(?:works?|working|collaborates?|collaborating) with"), "works_with"),
    _Relation(_between("(?:reports?|reporting) to"), "reports_to"),
    _Relation(_between("uses?|using"), "uses"),
    _Relation(_between("(?:do|does)(?:n['’]t| not) use"), "stopped_using"),
    _Relation(_between("(?:no longer reports?|(?:do|does)(?:n['’]t| not) report) to"), "reports_to_no_longer"),
    _Relation(_between("met(?: with)?|meets"), "met"),
    _Relation(_between("knows?"), "knows"),
)
# What the words behind one statement say of the next name: "moved from Paris to Berlin", "uses Helix instead of Vim".
_COUNTERPARTS = (
    ("left", re.compile(r" to join(?: the)? "), "joined"),
    ("moved_away_from", re.compile(r" (?:back )?to(?: the)? "), "moved_to"),
    ("stopped_using", re.compile(r" (?:(?:over |back )?to|in favou?r of)(?: the)? "), "uses"),
    (
        "uses",
        re.compile(r"(?: now| these days| nowadays)? (?:instead of|rather than|in place of)(?: the)? "),
        "stopped_using",
    ),
)
# What nobody works for: a walk, a call, a party; and what one is a member of.
_NO_COMPANY = re.compile(
    r"['’]s\b| for (?:(?:an?|the|some) |lunch|dinner|drinks?|coffee|breakfast|brunch|tea|beers?|supper|\w+ing\b)"
    r"| (?:on|in|at) (?:an?|the|his|her|their|our|my) (?:\w+ )?(?:call|walk|trip|tour|ride|hike|party|stage|sofa|couch|"
    r"table|meeting|panel|podcast|game|beach|picnic|ceremony|wedding|video)",
    re.IGNORECASE,
)
_CLUB = re.compile(
    r"\b(?:club|party|union|gym|church|league|team|choir|band|orchestra|group|meetup|community|society|association|network|"
    r"alliance|guild|lodge|troupe|ensemble|federation|circle)$",
    re.IGNORECASE,
)
# What was so before something else is; and what began: told late of long ago, nobody says that it lasts.
_BEFORE = {"lives_in": "lived_in", "moved_to": "lived_in", "works_at": "worked_at", "joined": "worked_at"}
_BEGUN = frozenset({"moved_to", "joined"})
# So does what somebody became.
_BECAME = re.compile(r"\b(?:became|become|went|turned|promoted)\b", re.IGNORECASE)
_BECOMING = {"works_as": "worked_as", "follows_diet": "followed_diet", "has_age": "had_age"}
# Of the first of two names only one can be the second.
_HELD_BY = {"ceo_of": "has_ceo", "owner_of": "owned_by"}
_IS_NOW = re.compile(r" (?:is|became)(?: now)?(?: the)?(?: new| current)? ")
# "Ann has lived in Graz since May": she still does.
_HAS_BEEN = re.compile(r"(?:,? who)?(?:['’](?:ve|s)| have| has)\b", re.IGNORECASE)
_SINCE = re.compile(r" (?:for|since|ever since)\b", re.IGNORECASE)
_ROLES = frozenset(_ROLE.split("|"))
# Of the profile's fields, what a fact says of the speaker: as it is, where something happened, and where it ended.
_OF_PROFILE = {"location": ("lives_in", "moved_to", "moved_away_from"), "employer": ("works_at", "joined", "left")}
_IS_ROLE_OF = re.compile(
    rf"(?:,| (?:is|was|became))(?: now)?(?: the| an?)?(?: new| current)? (?P<role>{_ROLE}) of(?: the)? ", re.IGNORECASE
)
_HAS_RELATIVE = re.compile(
    rf"(?:['’]s| has an?)(?: \w+)? (?P<role>{_RELATIVE})(?:,| is| was| named| called)? ", re.IGNORECASE
)
_IS_RELATIVE_OF = re.compile(rf"(?:,| (?:is|was))(?: the| an?)? (?P<role>{_RELATIVE}) of ", re.IGNORECASE)
_BEHIND = re.compile(rf"['’]s (?P<role>{_RELATIVE})\b", re.IGNORECASE)
# "Ann met Bob's brother" does not say that she met Bob.
_OF_SOMEBODY = re.compile(r"['’]s \w")
_IS = re.compile(r" (?:is|was) $", re.IGNORECASE)
_MINE = re.compile(
    rf"\b(?P<who>my)(?: (?:new|current))? (?P<role>{_RELATIVE})"
    r"(?:,|(?P<link> is(?: now| currently)?|(?P<past> was))| named| called)? $",
    re.IGNORECASE,
)
_IS_MINE = re.compile(
    rf" (?:is|became)(?: now)? my (?:new |current )?(?P<role>{_RELATIVE})(?![\w'’-]| in[ -]law)", re.IGNORECASE
)
_ROLE_OF = re.compile(rf"\bthe (?:new |current )?(?P<role>{_ROLE}) of(?: the)? $", re.IGNORECASE)
_ROLE_BEFORE = re.compile(rf"(?:{_ROLE}) of (?:the )?(?=\S)", re.IGNORECASE)
# Adjectives with a capital, which are no names of relatives.
_ORIGINS = listed(
    "scottish irish english british polish spanish swedish danish finnish turkish jewish kurdish flemish chinese "
    "thai japanese vietnamese portuguese german dutch french greek swiss czech welsh israeli italian russian "
    "american mexican canadian australian brazilian indian iranian ukrainian norwegian belgian austrian hungarian "
    "romanian egyptian catholic muslim hindu buddhist protestant"
)
_IS_THE = re.compile(r" is(?: now| currently)? $")
_SPEAKER = re.compile(r"(?<![\w'’.])I(?=['’ ])")
_IMPLIED = re.compile(
    r"^(?:(?:just|also|now|finally|recently) )?(?:works?|worked|joined|left|lives?|moved|uses?|met|founded|married)\b",
    re.IGNORECASE,
)
# Names of roles in a chat rather than of people.
_NOBODY = frozenset({"user", "assistant", "human", "ai", "system", "tool", "bot", "agent"})
# The types of the two sides that a relation implies.
_TYPES_OF_SIDES: dict[str, tuple[str | None, str | None]] = {
    "works_at": ("person", "organisation"),
    "worked_at": ("person", "organisation"),
    "joined": ("person", "organisation"),
    "member_of": ("person", "organisation"),
    "married_to": ("person", "person"),
    "engaged_to": ("person", "person"),
    "divorced": ("person", "person"),
    "separated_from": ("person", "person"),
    "lives_in": ("person", "place"),
    "lived_in": ("person", "place"),
    "moved_to": (None, "place"),
    "moved_away_from": (None, "place"),
    "born_in": ("person", "place"),
    "works_with": ("person", "person"),
    "reports_to": ("person", "person"),
    "has_ceo": ("organisation", "person"),
    "has_version": (None, None),
    "has_status": (None, None),
    "has_date": (None, None),
    "founded": ("person", None),
    "director_of": ("person", None),
    "author_of": ("person", None),
}


# Companies move and leave, too, but none of them says so itself.
_OF_PEOPLE = frozenset({"moved_to", "moved_away_from", "left", "left_group", "stopped_using", "reports_to_no_longer"})


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


def extract_graph(
    texts: Sequence[str],
    speakers: Sequence[str | Speaker | None] | None = None,
    said_at: Sequence[datetime | None] | None = None,
) -> Extraction:
    """Return the entities and edges of the texts, without notes or profile facts.

    The work grows with the length of the texts, about three seconds a million characters.

    Args:
        texts: The texts; a word that is a name in one is one in all.
        speakers: The speaker of each text, in their order; ``None`` if there is none.
        said_at: When each was said, in UTC, as far as it is known.
    """
    found = find_mentions(texts)
    said_by = list(speakers or [None] * len(texts))
    named = [speaker if isinstance(speaker, Speaker) else speaker_name(speaker) for speaker in said_by]
    every = [
        edge
        for text, mentioned, speaker, moment in zip(texts, found, named, said_at or [None] * len(texts), strict=True)
        for edge in _told(text, mentioned, speaker, moment)
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


def _told(
    text: str, mentioned: Sequence[Mention], speaker: str | Speaker | None, said_at: datetime | None
) -> Iterator[Edge]:
    """Yield the statements of a text; where its speaker is not named in it, with the message that it is."""
    name = speaker.name if isinstance(speaker, Speaker) else speaker
    for edge in _with_last_holding(tuple(_edges(text, mentioned, name, said_at))):
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
    is_of_person = edge.type in _OF_PEOPLE or _types_of_sides(edge)[0] == "person"
    if not said or is_own or not is_of_person:
        return edge
    return replace(edge, confidence=min(edge.confidence, BY_OTHERS))


def _types_of_sides(edge: Edge) -> tuple[str | None, str | None]:
    of_relatives = ("person", "person") if edge.type.startswith("has_") else (None, None)
    return _TYPES_OF_SIDES.get(edge.type, of_relatives)


def speaker_name(speaker: str | None) -> str | None:
    """Return the name, unless it is that of a role in a chat."""
    return None if speaker is None or name_key(speaker) in _NOBODY else speaker


def _edges(text: str, found: Sequence[Mention], speaker: str | None, said_at: datetime | None) -> Iterator[Edge]:
    """Yield the edges of each sentence; places of mentions count from the sentence's start."""
    starts = [mention.start for mention in found]
    for sentence in statements(text):
        end = sentence.start + len(sentence.text)
        inside = found[bisect_left(starts, sentence.start) : bisect_left(starts, end)]
        moved = [
            replace(mention, start=mention.start - sentence.start, end=mention.end - sentence.start)
            for mention in inside
        ]
        stated = edges_of_sentence(sentence, moved, speaker)
        if speaker is not None and (own := _own_edges(sentence, speaker, stated)):
            said = sentence.text.casefold()
            stated = tuple(sorted((*stated, *own), key=lambda edge: said.find(edge.object.casefold())))
        yield from _as_told(stated, sentence.masked, said_at)


def _as_told(stated: Sequence[Edge], sentence: str, said_at: datetime | None) -> Iterator[Edge]:
    """Yield what a sentence states; what began long before it was told, as what was."""
    begun = {edge.type for edge in stated} & (_BEGUN | (_BECOMING.keys() if _BECAME.search(sentence) else frozenset()))
    is_late = bool(begun) and time_of_change(sentence, said_at) is not None
    for edge in stated:
        yield replace(edge, type=(_BEFORE | _BECOMING)[edge.type]) if is_late and edge.type in begun else edge


def _own_edges(sentence: Statement, speaker: str, stated: Sequence[Edge]) -> tuple[Edge, ...]:
    """Return what a sentence states of its speaker, also for the profile, and none of the edges states already."""
    items = [(item.relation, item.value) for item in own_statements(sentence)]
    for fact in facts_of(sentence):
        for field, (state, event, end) in _OF_PROFILE.items():
            if isinstance(value := fact.patch.get(field), str):
                items.append((event if fact.is_event else state, value))
            items += ((end, value) for value in fact.withdrawn.get(field, ()))
    found: list[Edge] = []
    for relation, value in items:
        edge = Edge(speaker, relation, value, confidence=CONFIDENCE)
        if not any(_say_the_same(edge, other) for other in (*stated, *found)):
            found.append(edge)
    return tuple(found)


def _say_the_same(edge: Edge, other: Edge) -> bool:
    """Report whether two edges say the same of their subject, one perhaps with an article or a full stop more."""
    if edge.subject != other.subject:
        return False
    is_alike = edge.type == other.type.removeprefix("also_") or exclude_each_other(edge.type, other.type)
    one, two = (frozenset(name_key(item.object).replace(".", "").split()) for item in (edge, other))
    return is_alike and (one <= two or two <= one)


def _with_last_holding(edges: Sequence[Edge]) -> Iterator[Edge]:
    """Yield the edges of a text; of what can hold only once, the last holds, and the others held before.

    All are of one moment, so their times tell nothing.
    """
    last = {(edge.subject, STATES[edge.type]): edge for edge in edges if edge.type in _BEFORE}
    for edge in edges:
        is_over = edge.type in _BEFORE and not _say_the_same(edge, last[edge.subject, STATES[edge.type]])
        yield replace(edge, type=_BEFORE[edge.type]) if is_over else edge


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
    named = [_without_role(mention) for mention in named if mention.name.casefold() not in _ROLES]
    subjects = _subjects(sentence, named, speaker)
    found: list[Edge] = []
    for part in sentence.told:
        found += _relations(sentence.masked, [mention for mention in subjects if _is_in(mention, part)])
        found += (
            Edge(mention.name, relation, value, confidence=CONFIDENCE)
            for mention in named
            if _is_in(mention, part)
            for relation, value in states_of_thing(sentence.masked[: part[1]], mention.start, mention.end)
        )
    for part in sentence.own:
        found += _relatives(sentence.masked, [mention for mention in named if _is_in(mention, part)], speaker)
    return tuple(dict.fromkeys(found))


def _without_role(mention: Mention) -> Mention:
    """Return the name behind a role in capitals: of "CEO of Initech" the company."""
    role = _ROLE_BEFORE.match(mention.name)
    return replace(mention, start=mention.start + role.end(), name=mention.name[role.end() :]) if role else mention


def _is_in(mention: Mention, part: tuple[int, int]) -> bool:
    return part[0] <= mention.start and mention.end <= part[1]


def _subjects(sentence: Statement, named: Sequence[Mention], speaker: str | None) -> list[Mention]:
    """Return the names, and the places where the speaker says "I", in order."""
    if speaker is None:
        return list(named)
    spoken = [
        Mention(match.start(), match.end(), speaker, "person", is_sure=True)
        for match in _SPEAKER.finditer(sentence.masked)
        if any(
            start <= match.start() < end and not RETRACTION.match(sentence.masked, start, end)
            for start, end in sentence.own
        )
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
            yield from _meant(edge, gap, sentence[right.end :])


def _meant(edge: Edge, gap: str, behind: str) -> Iterator[Edge]:
    """Yield what an edge says, by the words before and behind its second name."""
    is_of_club = gap.endswith(" the ") or _CLUB.search(edge.object)
    match edge.type:
        case "lives_in" | "moved_to" if not may_be_place(edge.object):
            return
        case "joined" if is_of_club:
            yield replace(edge, type="member_of")
        case "joined" if _NO_COMPANY.match(behind):
            return
        case "left" if is_of_club:
            yield from (edge, replace(edge, type="left_group"))
        case "ceo_of" | "owner_of" if _IS_NOW.match(gap):
            yield from (edge, Edge(edge.object, _HELD_BY[edge.type], edge.subject, confidence=CONFIDENCE))
        case "lived_in" | "worked_at" if _HAS_BEEN.match(gap) and _SINCE.match(behind):
            yield replace(edge, type="lives_in" if edge.type == "lived_in" else "works_at")
        case "works_at" if " also " in gap:
            yield replace(edge, type="also_works_at")
        case _:
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
        match = _MINE.search(sentence[max(0, mention.start - 40) : mention.start]) or _IS_MINE.match(
            sentence, mention.end
        )
        if speaker is None or match is None:
            continue
        relation = f"has_{match['role'].lower()}"
        # "My boss is German", "my husband is Tim's brother".
        is_other = mention.name.casefold() in _ORIGINS or _OF_SOMEBODY.match(sentence, mention.end)
        if is_other and match.groupdict().get("link"):
            continue
        # Who was the boss is none any more, unlike who was the mother.
        if relation not in STATES or not match.groupdict().get("past"):
            yield Edge(speaker, relation, mention.name, confidence=CONFIDENCE)
    for left, right in pairwise(named):
        named_role = _ROLE_OF.search(sentence[max(0, left.start - 40) : left.start])
        if named_role and _IS_THE.fullmatch(sentence[left.end : right.start]):
            edge = _edge(f"{named_role['role'].lower().replace('-', '_')}_of", left, right, is_reversed=True)
            yield from _meant(edge, " is the ", sentence[right.end :])
        behind = _BEHIND.match(sentence, right.end)
        if behind and _IS.fullmatch(sentence[left.end : right.start]):
            yield Edge(right.name, f"has_{behind['role'].lower()}", left.name, confidence=CONFIDENCE)
