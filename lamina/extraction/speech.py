"""Find the statements of a speaker: without quotations, questions, conditions, denials, wishes and fiction.

English only, by closed lists of words. In doubt it is no statement: a fact that is missed can be said again, a false
one is believed. Every pattern reads a text once, in time that grows with its length.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from lamina.text.sentences import sentences

MASK = "\ufffc"
MAX_STATEMENT_CHARS = 2_000

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTED_LINE = re.compile(r"^[ \t]*+(?:>|[♪♫])[^\n]*|[♪♫][^\n]*", re.MULTILINE)
_FORWARDED = re.compile(
    r"^[ \t]*+(?:-{2,}+[ \t]*+)?(?:begin forwarded message|forwarded message|original message"
    rf"|from: [^\n]*|on [^\n]{{1,200}} wrote:[ \t]*+$(?!\n\s*+{MASK}))",
    re.IGNORECASE | re.MULTILINE,
)
_QUOTE_MARK = re.compile(r"[\"“”„«»]|(?<![\w'’])['‘](?=\S)|(?<=\S)['’](?!\w)|\n")
_CLOSERS = {'"': '"', "“": '”"', "„": "“”", "«": "»", "»": "«", "'": "'’", "‘": "’'"}
_FIRST_PERSON = re.compile(r"\b(?:i|my|we|our|me|us)\b", re.IGNORECASE)
# A title or a nickname in quotation marks stays readable.
_MAX_TITLE_WORDS = 3

_LEAD = (
    r"(?:(?:and|so|but|then|hey|hi|hello|ok|okay|well|please|sorry|also|now|just|yes|no|oh|or|today|btw)\b[, !.]*+)*+"
)
_QUESTION = re.compile(
    rf"^{_LEAD}(?:(?:do|does|did|is|are|am|was|were|has|have|had|can|could|would|should|shall|what|what's|where|where's|"
    r"who|who's|whom|whose|which|why|how|how's|isn't|aren't|wasn't|doesn't|didn't|won't|can't|couldn't|haven't|guess)\b"
    r"|(?:may|might|will|when) (?:i|we|you|he|she|they|it|this|that|there|my|your|the|an?)\b)",
    re.IGNORECASE,
)
# "Will Bob join Hooli", not "Will joined Hooli".
_WILL_SOMEBODY = re.compile(r"^Will [A-Z]")
_WORK_ON_TEXT = (
    r"(?:translate|rephrase|paraphrase|reword|rewrite|correct|proofread|edit|summari[sz]e|repeat|parse|classify|extract|complete)"
    r"(?=:| (?:the|this|these|that|it|my|our|me|following|after|into|to|as|an?|in)\b)"
    r"|pretend|imagine|role-?play|act (?:as|like)|behave (?:as|like)|sing|let's (?:say|pretend|imagine|role-?play|play a|suppose|assume)"
)
_WRITE = "write|draft|compose|generate|create|continue|finish|say|print|respond|answer|reply|type|enter|quote|define"
_REQUEST_WORDS = (
    f"{_WORK_ON_TEXT}|{_WRITE}|tell|give|make|explain|show|play|remind|ask|guess|describe|assert|insert|return|compare|convert|"
    "treat|speak|suppose|picture"
)
_ASKS = (
    rf"^{_LEAD}(?:(?:can|could|would|will) you |i(?:'d like| want| need) you to |help me (?:to )?)?(?:please |just )?"
)
_REQUEST = re.compile(rf"{_ASKS}(?:{_REQUEST_WORDS})\b", re.IGNORECASE)
_FICTION = (
    "story|stories|tale|poem|haiku|limerick|novel|novella|song|lyrics|chorus|verse|screenplay|script|scene|fiction|fantasy|"
    "scenario|role-?play|simulation|sketch|sample|template|dialogue|monologue|essay|persona"
)
# An invented world, or a text to work on: it goes on until the text ends.
_FRAME = re.compile(
    rf"{_ASKS}(?:(?:{_WORK_ON_TEXT})(?!\w)|(?:{_WRITE})\b[^.!?\n]{{0,80}}:"
    rf"|(?:{_WRITE}|tell|give|make|play|sing)\b(?:(?!about)[^.!?\n]){{0,80}}\b(?:{_FICTION})\b)"
    rf"|^here(?:'s| is) (?:the|your|an?|my) (?:\w+ )?(?:{_FICTION}|translation)\b"
    r"|\b(?:in character|lorem ipsum|(?:test|sample|dummy|example|placeholder|mock) "
    r"(?:data|text|input|sentence|message|user|case)s?)\b|^chapter (?:\d|[ivx]+\b|one\b)",
    re.IGNORECASE,
)
_IN_JEST = re.compile(r"\b(?:(?:just|only|was|am|i'm) (?:kidding|joking)|jk)\b", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\{\{|\$\{|\[[A-Z_ ]{2,30}\]|<[a-z_]{2,30}>|_{3}|\bTODO\b|\bFIXME\b")
_INVENTED = re.compile(
    r"\b(?:in|from) (?:my|the|this|that|an?|our|his|her|their|your) (?:\w+ )?(?:story|tale|poem|novel|novella|screenplay|"
    r"dreams?|nightmare|scenario|role-?play|simulation|dialogue|template|example)\b"
    r"|^in (?:my|the|this|that|an?|our) (?:\w+ )?(?:game|film|movie|series|show|book|play|script|comic|song)\b"
    r"|^in (?:english|french|spanish|german|italian|portuguese|dutch|russian|japanese|chinese|korean|arabic|hindi|latin)\b"
    r"|\b(?:the|this|that|my) (?:phrase|sentence|expression|quote|string|wording) (?:i|my|we)\b"
    rf"|^in it\b|\b(?:the|that|this|his|her) (?:{_FICTION}|hero|heroine|protagonist|narrator|sign|slogan)s? (?:\w+ )?"
    r"(?:says?|goes|go|opens?|begins?|starts?|reads)\b",
    re.IGNORECASE,
)
# From here to the end of the sentence nothing is stated.
_DENIED = (
    "(?:true|correct|right|the case|say|said|saying|think|thought|believe|mean|claim|claimed|know|sure|certain|remember|"
    "recall|told|as if)"
)
_UNREAL = re.compile(
    rf"n't {_DENIED}\b|\b(?:(?:not|hardly|never) {_DENIED}|if|unless|supposing|suppose|assuming|assume|provided|in case|"
    r"whether|let's say|wish(?:es|ed|ing)?|hope[sd]?|hoping|dream(?:s|ed|t|ing)? (?:of|that|about|i|we)|wonder(?:s|ed|ing)?|"
    r"doubt(?:s|ed)?|pretend(?:s|ed|ing)?|imagin(?:e|es|ed|ing)|untrue|false|wrong that|(?:a|the) (?:lie|myth|rumou?r|joke)|"
    r"nobody|no one|neither|once(?= (?:i|we) )|had i|were i|should i|as if|as though|impossible|unlikely|not that|legend has it|hypothetically|for the sake of argument|for instance|e\.g\.|perhaps|maybe|possibly|probably|"
    r"like(?= (?:i|my|we) ))(?!\w)",
    re.IGNORECASE,
)
# From here on somebody else may be the one who speaks.
_HEARSAY = re.compile(
    r"\b(?:says?|said|saying|tells?|told|telling|according to|rumou?r|thinks|believes|suspects|swears|swore|"
    r"(?:claim(?:s|ed|ing)?|report(?:s|ed)|suggest(?:s|ed)|insist(?:s|ed)|assume[sd]|joke[sd]|complain(?:s|ed)|answer(?:s|ed)|"
    r"repl(?:y|ies|ied)|respond(?:s|ed)|wrote|writes?|writing|ask(?:s|ed|ing)?|mention(?:s|ed)|whisper(?:s|ed)?|"
    r"shout(?:s|ed)?|quot(?:e|es|ed|ing)|reads|sings?|singing|sang)(?=[:,]| (?:me|us|him|her|them|back|that|to|in|i|i'm|my|we)\b)|"
    r"(?:people|they|you|folks|friends|everyone|everybody|some|others|many) (?:think|thought|believe|assume|suppose))(?!\w)",
    re.IGNORECASE,
)
_ATTRIBUTION = re.compile(
    r"[,–—-] ?(?:(?:said|says|replied|whispered|shouted|goes the)\b|(?:he|she|they|the \w+|[A-Z]\w+) (?:said|says|"
    r"replied|answered|asked|wrote|writes|whispered|sang|sings|shouted)\b|"
    r"as (?:they|he|she|people|the \w+) (?:say|says|said|goes))"
)
_TAIL_QUESTION = re.compile(
    r"(?:, (?:and |but |so )?| (?:and|but|so) )(?:do|does|did|is|are|can|could|would|will|should|what|where|who|which|"
    r"why|how|when|any|have|has)\b(?=(?: [^ ]+){3})",
    re.IGNORECASE,
)
_DECLARES = re.compile(rf"^{_LEAD}(?:i|i'm|i've|im|my|we|we're|we've)\b", re.IGNORECASE)
_COLON = re.compile(r":\s+(?=(?:i|i'm|i've|im|my|call me)\b)", re.IGNORECASE)
_OWN_LABEL = re.compile(
    r"^\W*(?:correction|note|notes|update|edit|fyi|btw|ps|p\.s\.|context|background|about (?:me|myself)|reminder|"
    r"decision|outcome|result|summary|tl;?dr|important|facts?|again|also|info|intro|ok|okay|yes|no|nope|actually|sorry|"
    r"hi|hello|hey|status|me|user|today|yesterday|plan|conclusion|first|second|finally|news|one (?:more )?thing|another thing|next|last|(?:here's )?the thing|"
    r"disclaimer|preferences?|allergies|diet|so|well|clarification|(?:please )?(?:remember|note)|for the record)\b",
    re.IGNORECASE,
)
_PART_END = re.compile(r";|\s[-–—]+\s|—")

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, and which parts of it are stated.

    Args:
        start: Its place in the text.
        text: As it was written.
        masked: The same, of equal length, quoted text and code made unreadable, apostrophes plain.
        own: The parts that the speaker states, in order.
        told: The parts that are stated by anybody: of others, hearsay counts.
    """

    start: int
    text: str
    masked: str
    own: tuple[Span, ...] = ()
    told: tuple[Span, ...] = ()


def statements(text: str) -> Iterator[Statement]:
    """Yield the sentences of a text, in order.

    An invented frame ("Write a story …", "Pretend that …") holds until the text ends; a jest is one from the start.
    """
    masked = _masked(text)
    end = 0
    is_invented = _IN_JEST.search(masked) is not None
    for sentence in sentences(masked):
        start = masked.index(sentence, end)
        end = start + len(sentence)
        is_long = len(sentence) > MAX_STATEMENT_CHARS
        is_invented = is_invented or (not is_long and _FRAME.search(sentence) is not None)
        own, told = _stated_parts(sentence) if not is_long else ((), ((0, len(sentence)),))
        stated = Statement(start, text[start:end], sentence)
        yield stated if is_invented else Statement(start, text[start:end], sentence, own, told)


def _masked(text: str) -> str:
    """Return the text with code, quoted lines and quotations made unreadable, of the same length."""
    masked = _QUOTED_LINE.sub(_hidden, _CODE.sub(_hidden, text))
    forwarded = _FORWARDED.search(masked)
    if forwarded is not None:
        masked = masked[: forwarded.start()] + _hide(masked[forwarded.start() :])
    hidden = [span for span in _quotations(masked) if _is_speech(masked[slice(*span)])]
    ends = pairwise([0, *(place for span in hidden for place in span), len(masked)])
    parts = [masked[start:end] for start, end in ends]
    return "".join(_hide(part) if place % 2 else part for place, part in enumerate(parts)).replace("’", "'")


def _hidden(match: "re.Match[str]") -> str:
    return _hide(match.group())


def _hide(text: str) -> str:
    return re.sub(r"\S", MASK, text)


def _quotations(text: str) -> Iterator[Span]:
    """Yield the places of what stands between quotation marks of one line, in order, none inside another."""
    opened: tuple[str, int] | None = None
    for match in _QUOTE_MARK.finditer(text):
        mark = match.group()
        if mark == "\n":
            opened = None
        elif opened is not None and mark in _CLOSERS[opened[0]] and not text[match.start() - 1].isspace():
            yield opened[1], match.start()
            opened = None
        elif opened is None and mark in _CLOSERS and not text[max(0, match.start() - 1) : match.start()].isalnum():
            opened = (mark, match.end())


def _is_speech(quoted: str) -> bool:
    return len(quoted.split(maxsplit=_MAX_TITLE_WORDS)) > _MAX_TITLE_WORDS or bool(_FIRST_PERSON.search(quoted))


# The rules of notes and those of edges read the same sentences, one after the other.
@lru_cache(maxsize=256)
def _stated_parts(sentence: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Return the parts that the speaker states, and those that are stated by anybody."""
    own: list[Span] = []
    told: list[Span] = []
    if _PLACEHOLDER.search(sentence):
        return (), ()
    marks = [place for match in _PART_END.finditer(sentence) for place in match.span()]
    bounds = [0, *marks, len(sentence)]
    for start, end in zip(bounds[::2], bounds[1::2], strict=True):
        part = sentence[start:end]
        length = _stated_length(part)
        told.append((start, start + length))
        own.append((start, start + _own_length(part[:length])))
    return () if _ATTRIBUTION.search(sentence) else tuple(own), tuple(told)


def _stated_length(part: str) -> int:
    """Return how much of a part of a sentence, from its start, states anything."""
    begun = part.lstrip()
    if _asks(begun) or _REQUEST.match(begun) or _INVENTED.search(part):
        return 0
    length = len(part)
    if begun.endswith("?"):
        tail = _TAIL_QUESTION.search(part)
        length = tail.start() if tail and _DECLARES.match(begun) else 0
    unreal = _UNREAL.search(part, 0, length)
    return unreal.start() if unreal else length


def _asks(part: str) -> bool:
    return bool(
        _QUESTION.match(part) or (_WILL_SOMEBODY.match(part) and not re.match(r"Will [^ ]+ \w+(?:s|ed)\b", part))
    )


def _own_length(part: str) -> int:
    ends = [len(part)]
    if hearsay := _HEARSAY.search(part):
        ends.append(hearsay.start())
    if (colon := _COLON.search(part)) and not _OWN_LABEL.match(part):
        ends.append(colon.start())
    return min(ends)
