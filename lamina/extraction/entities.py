"""Find the names in a text by capitals and punctuation alone.

A script without capitals (Han, kana, hangul, Arabic, Hebrew, Devanagari …) shows no names this way and none are
extracted from it. An article in front is not part of a name ("The Beatles" are Beatles). German capitalises every
noun, so every noun of a German text looks like a name; the lists of common words are English. What is a name in doubt
is one: a wrong entity links texts that share a word.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import regex

from lamina.core.memories import MAX_ENTITIES, Entity
from lamina.text.english import CALENDAR_WORDS, FUNCTION_WORDS, SENTENCE_STARTERS, listed
from lamina.text.normal_forms import normalised

MAX_NAME_WORDS = 8
MAX_NAME_CHARS = 128
SURE, UNSURE = 0.8, 0.6

_WORD = regex.compile(r"[\p{L}\p{N}_][\p{L}\p{M}\p{N}_]*(?:[-&'’.][\p{L}\p{N}][\p{L}\p{M}\p{N}_]*)*")
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://[^\s<>\"]+|\bwww\.[^\s<>\"]+|`[^`\n]*`", re.IGNORECASE)
_EMAIL = re.compile(r"(?<![\w.+-])[\w+-][\w.+-]{0,63}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_HANDLE = re.compile(r"(?<![\w@./])@[A-Za-z0-9_]{2,39}\b(?![/.@])")
_QUOTED = re.compile(r"[“«\"](?P<title>[^\s“”«»\"][^“”«»\"\n]{1,120})[”»\"]")
# Employers whose names no capitals show: with an ampersand between two words, or with a number in front.
_EMPLOYER = regex.compile(
    r"\b(?:work(?:s|ed|ing)?|employed|job|joined|left) (?:(?:at|for|by|with) )?(?P<name>\p{Lu}[\p{L}\p{M}'’-]*+ (?:& "
    r"\p{Lu}[\p{L}\p{M}'’-]*+)"
    r"|\d+(?:&\d+|\p{Lu}[\p{L}\p{N}]*+)(?! ?[ap]m\b))"
)
_ENDS_SENTENCE = re.compile(r"[^\s,;'’&/%)$€£+-]|\n|(?:^|\s)-\s")
_ARTICLE = re.compile(r"^(?:The|A|An) (?=\S)")
_POSSESSIVE = re.compile(r"['’]s$", re.IGNORECASE)
_CONTRACTION = re.compile(r"['’](?:m|ll|ve|re|d|s)$", re.IGNORECASE)
_ROMAN = re.compile(r"^[IVXL]{2,6}$")
_NO_NAME_ENDS_SO = re.compile(r"(?:ing|ly|ed|ness)$")
# What follows a subject: a finite verb. "Ann is", "Ann moved", "Ann likes"; not "Pets bring", "Fingers crossed".
_FINITE = re.compile(
    r"^(?:is|was|has|had|does|did|will|would|can|could|should|just|also|said|told|went|left|met|got|made|took|gave|"
    r"came|wrote|built|bought|ran|sent|found|knew|taught|led|won|lost|became|began|began|spoke|chose|grew|kept|"
    r"\w{2,}ed|\w{2,}[^su\W]s)$"
)

_PARTICLES = listed("of the de la le du des da di del della dos das van von der den zu bin ibn al el y ap ten ter")
_COUNTED = listed(
    "day days hour hours minute minutes second seconds week weeks month months year years time times people percent "
    "euro euros dollar dollars am pm"
)
_ABBREVIATED = listed("mr mrs ms dr prof st sr jr mt messrs rev gen col capt lt sgt")
_HONORIFICS = listed("mr mrs ms miss dr prof professor")
_PERSON_TITLES = _HONORIFICS | listed(
    "sir lady dame king queen prince princess duke duchess count countess emperor empress pope saint president "
    "chancellor senator captain colonel general aunt uncle grandma grandpa father mother brother sister rabbi "
    "sheikh sultan baron earl"
)
_PERSON_ENDS = listed("jr sr elder younger great")
_ORGANISATIONS = listed(
    "inc ltd llc llp gmbh ag plc corp corporation company co kg sa bv nv oy ab university institute college school "
    "academy hospital clinic bank foundation association agency ministry department museum council committee club "
    "group labs laboratories studios records press airlines motors society party church team union league orchestra "
    "systems technologies software"
)
_PLACES = listed(
    "city town village river lake mount mountain mountains street avenue road square county island islands republic "
    "kingdom sea ocean bay valley park beach desert province airport station bridge cape gulf peninsula"
)
_RELATIVES = listed(
    "friend wife husband partner mother father mom mum dad sister brother son daughter boss colleague aunt uncle "
    "cousin neighbour neighbor roommate girlfriend boyfriend manager teacher doctor"
)
_SPEAKS = listed("said says told tells asked asks replied thinks thought wrote answered")
_BEFORE_PLACE = re.compile(
    r"\b(?:(?:live|lives|lived|living|based|born|stay|stayed|staying|grew up|died) in|moved (?:back )?to|moving to|"
    r"(?:travel|travelled|traveled|flew|flying|drove|trip|flight) to|visit(?:ed|ing|s)?|capital of|city of|near)"
    r"(?: the)? $",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Mention:
    """A name and its place in a text.

    Args:
        start: Its first character, from 0.
        end: One past its last character, a possessive ending left out.
        name: As it was written, in NFC, blanks squeezed.
        type: As :class:`lamina.core.memories.Entity` has it.
        is_sure: Whether more than the capital at a sentence's start says that it is a name.
    """

    start: int
    end: int
    name: str
    type: str
    is_sure: bool


class _Word(NamedTuple):
    text: str
    start: int
    end: int
    folded: str  # without a contraction's end
    is_capital: bool  # in a sentence that has small letters
    opens: bool  # a sentence, a line or a quotation
    follows: bool  # only a blank, or the dot of an abbreviation, parts it from the word before

    @property
    def is_function_word(self) -> bool:
        return self.folded in FUNCTION_WORDS or self.text.casefold().replace("’", "'") in FUNCTION_WORDS


def merge_equal_entities(found: Sequence[Entity]) -> tuple[Entity, ...]:
    """Return entities of equal key as one: the first name, the surest confidence, a type if any has one."""
    merged: dict[str, Entity] = {}
    for entity in found:
        known = merged.get(entity.key)
        merged[entity.key] = entity if known is None else _merged(known, entity)
    return tuple(merged.values())[:MAX_ENTITIES]


def _merged(first: Entity, second: Entity) -> Entity:
    return replace(
        first,
        type=second.type if first.type == "thing" else first.type,
        aliases=tuple(dict.fromkeys((*first.aliases, *second.aliases))),
        confidence=max(first.confidence, second.confidence),
    )


def as_entity(mention: Mention) -> Entity:
    """Return the entity that is mentioned."""
    return Entity(mention.name, mention.type, confidence=SURE if mention.is_sure else UNSURE)


def find_mentions(texts: Sequence[str]) -> list[list[Mention]]:
    """Return the names in each text, in the order of their places, none inside another."""
    split = [_words(text) for text in texts]
    words = [word for found in split for word in found]
    inner = {word.folded for word in words if word.is_capital and not word.opens}
    small = {word.folded for word in words if word.text.islower()}
    return [_mentions(text, found, inner, small) for text, found in zip(texts, split, strict=True)]


def _mentions(text: str, words: Sequence[_Word], inner: set[str], small: set[str]) -> list[Mention]:
    employers = (
        Mention(*match.span("name"), _written_name(match["name"]), "organisation", is_sure=True)
        for match in _EMPLOYER.finditer(text)
    )
    marked = [*_titles(text), *_addresses(text), *employers]
    spelled = [_mention(text, words, first, last, inner) for first, last in _name_spans(words, inner, small)]
    kept: list[Mention] = []
    for mention in sorted([*marked, *spelled], key=lambda found: (found.start, -found.end)):
        if not kept or mention.start >= kept[-1].end:
            kept.append(mention)
    return kept


def _words(text: str) -> list[_Word]:
    """Return the words outside URLs, e-mail addresses and code, with their marks from the text between them."""
    blank = text
    for pattern in (_ADDRESS, _EMAIL, _HANDLE):
        blank = pattern.sub(lambda match: "\n" * len(match.group()), blank)
    found = list(_WORD.finditer(blank))
    opens = [place == 0 or _begins_sentence(blank, found[place - 1], match) for place, match in enumerate(found)]
    shouted = _shouted(found, opens)
    return [
        _Word(
            match.group(),
            match.start(),
            match.end(),
            _CONTRACTION.sub("", match.group().casefold()),
            not shouted[place] and _is_capital(match.group()),
            opens[place],
            place > 0 and not opens[place] and blank[found[place - 1].end() : match.start()] in (" ", ". ", "\u00a0"),
        )
        for place, match in enumerate(found)
    ]


def _is_capital(word: str) -> bool:
    first = word[0]
    is_brand = len(word) > 2 and first in "ie" and word[1].isupper() and word[2].islower()  # noqa: PLR2004
    return first.isupper() or first.istitle() or is_brand


def _begins_sentence(text: str, before: "regex.Match[str]", match: "regex.Match[str]") -> bool:
    gap = text[before.end() : match.start()]
    word = before.group()
    is_initials = word.isupper() and (len(word) == 1 or "." in word) and word != "I"
    if gap == ". " and (is_initials or word.casefold() in _ABBREVIATED):
        return False
    return _ENDS_SENTENCE.search(gap) is not None


def _shouted(found: Sequence["regex.Match[str]"], opens: Sequence[bool]) -> list[bool]:
    """Report for each word whether its sentence of three words or more is all capitals."""
    starts = [place for place, opening in enumerate(opens) if opening]
    loud: list[bool] = []
    for start, end in pairwise((*starts, len(found))):
        sentence = [match.group() for match in found[start:end]]
        is_loud = sum(len(word) > 1 for word in sentence) > 2 and not any(  # noqa: PLR2004 - fewer may be a name
            char.islower() for word in sentence for char in word
        )
        loud.extend([is_loud] * len(sentence))
    return loud


def _name_spans(words: Sequence[_Word], inner: set[str], small: set[str]) -> Iterator[tuple[int, int]]:
    """Yield the first and one past the last word of every name."""
    place = 0
    while place < len(words):
        if not words[place].is_capital:
            place += 1
            continue
        end = _end_of_sequence(words, place)
        span = _trim(words, place, end, inner)
        if span and _is_name(words, *span, inner, small):
            yield span
        place = end


def _end_of_sequence(words: Sequence[_Word], place: int) -> int:
    end = place + 1
    while end < len(words) and end - place < MAX_NAME_WORDS and not _POSSESSIVE.search(words[end - 1].text):
        step = _continues(words, end)
        if step == 0:
            break
        end += step
    return end


def _continues(words: Sequence[_Word], place: int) -> int:
    """Return how many words from here still belong to the name before: 0 if it ends."""
    word = words[place]
    if not word.follows or word.folded == "i":
        return 0
    # Four digits are a year.
    is_short_number = word.text.isascii() and word.text.isdigit() and len(word.text) < 4  # noqa: PLR2004
    is_count = place + 1 < len(words) and words[place + 1].follows and words[place + 1].folded in _COUNTED
    if word.is_capital or (is_short_number and not is_count):
        return 1
    if word.text not in _PARTICLES:
        return 0
    is_second = place + 1 < len(words) and words[place + 1].follows and words[place + 1].text in _PARTICLES
    end = place + (2 if is_second else 1)
    return end + 1 - place if end < len(words) and words[end].follows and words[end].is_capital else 0


def _trim(words: Sequence[_Word], start: int, end: int, inner: set[str]) -> tuple[int, int] | None:
    """Return the span without the words that stand before or behind a name and do not belong to it."""
    while start < end and _is_lead(words[start], inner, alone=end - start == 1):
        start += 1
    while start < end and (words[end - 1].is_function_word or words[end - 1].text in _PARTICLES):
        end -= 1
    while start < end and not words[start].is_capital:
        start += 1
    return (start, end) if start < end else None


def _is_lead(word: _Word, inner: set[str], *, alone: bool) -> bool:
    if word.is_function_word or word.text in _PARTICLES or word.folded in CALENDAR_WORDS | _HONORIFICS:
        return True
    return word.opens and not alone and word.folded in SENTENCE_STARTERS and word.folded not in inner


def _is_name(words: Sequence[_Word], first: int, last: int, inner: set[str], small: set[str]) -> bool:
    name = words[first:last]
    if all(word.folded in CALENDAR_WORDS or not word.is_capital or _ROMAN.match(word.text) for word in name):
        return False
    if len(name) > 1:
        return True
    word = name[0]
    if len(word.text) == 1:
        return False
    return not word.opens or word.folded in inner or _is_subject(words, first, small)


def _is_subject(words: Sequence[_Word], place: int, small: set[str]) -> bool:
    """Tell whether the single word that opens a sentence stands where a subject does, and may be a name."""
    word = words[place]
    if word.folded in SENTENCE_STARTERS or word.folded in small or _NO_NAME_ENDS_SO.search(word.text):
        return False
    if _POSSESSIVE.search(word.text):
        return True
    following = [later for later in words[place + 1 : place + 3] if later.follows]
    if len(following) > 1 and following[0].text == "and" and following[1].is_capital:
        return not following[1].is_function_word
    return bool(following) and _FINITE.match(following[0].text) is not None


def _mention(text: str, words: Sequence[_Word], first: int, last: int, inner: set[str]) -> Mention:
    start = words[first].start
    end = words[last - 1].end - (2 if _POSSESSIVE.search(words[last - 1].text) else 0)
    word = words[first]
    is_sure = last - first > 1 or not word.opens or word.folded in inner
    return Mention(start, end, _written_name(text[start:end]), _type(text, words, first, last), is_sure)


def _written_name(name: str) -> str:
    return normalised("NFC", " ".join(name.split()))


def _type(text: str, words: Sequence[_Word], first: int, last: int) -> str:
    """Return the type of a name, by the words in it and around it."""
    inside = {word.folded for word in words[first:last]}
    before = words[first - 1].folded if first and words[first].follows else ""
    after = words[last].folded if last < len(words) and words[last].follows else ""
    if last - first > 1 and inside & _ORGANISATIONS:
        return "organisation"
    if words[first].folded in _PERSON_TITLES or before in _HONORIFICS | _RELATIVES or after in _SPEAKS:
        return "person"
    if last - first > 1 and words[last - 1].folded in _PERSON_ENDS:
        return "person"
    if last - first > 1 and inside & _PLACES:
        return "place"
    start = words[first].start
    return "place" if _BEFORE_PLACE.search(text[max(0, start - 30) : start]) else "thing"


def _titles(text: str) -> Iterator[Mention]:
    """Yield the texts in double quotes that are capitalised like a title."""
    for match in _QUOTED.finditer(text):
        title = _ARTICLE.sub("", match["title"].strip())
        if _is_title(title):
            start = match.start("title") + match["title"].index(title)
            yield Mention(start, start + len(title), _written_name(title), "thing", is_sure=True)


def _is_title(title: str) -> bool:
    words = _WORD.findall(title)
    if not 1 <= len(words) <= MAX_NAME_WORDS or title[-1] in ".!?,;:…" or len(title) > MAX_NAME_CHARS:
        return False
    heavy = [word for word in words if word.casefold().replace("’", "'") not in FUNCTION_WORDS]
    return bool(heavy) and words[0][0].isupper() and all(word[0].isupper() or word[0].isdigit() for word in heavy)


def _addresses(text: str) -> Iterator[Mention]:
    for match in _EMAIL.finditer(text):
        name = match.group().rstrip(".")
        yield Mention(match.start(), match.start() + len(name), _written_name(name), "thing", is_sure=True)
    for match in _HANDLE.finditer(text):
        yield Mention(match.start(), match.end(), match.group(), "person", is_sure=True)
