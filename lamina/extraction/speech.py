"""Find the statements of a speaker: without quotations, questions, conditions, denials, wishes and fiction.

English only, by closed lists of words. In doubt it is no statement: a fact that is missed can be said again, a false
one is believed. Every pattern reads a text once, in time that grows with its length.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from lamina.text.english import CALENDAR_WORDS, OCCASIONS
from lamina.text.places import known_places
from lamina.text.sentences import sentences

MASK = "\ufffc"
MAX_STATEMENT_CHARS = 2_000
_SHORT_CHARS = 20_000

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTED_LINE = re.compile(r"^[ \t]*+(?:>|[♪♫])[^\n]*|[♪♫][^\n]*", re.MULTILINE)
_FORWARDED = re.compile(
    r"^[ \t]*+(?:-{2,}+[ \t]*+)?(?:begin forwarded message|forwarded message|original message"
    rf"|from: [^\n]*|on [^\n]{{1,200}} wrote:[ \t]*+$(?!\n\s*+{MASK}))",
    re.IGNORECASE | re.MULTILINE,
)
_QUOTE_MARK = re.compile(r"[\"“”„«»]|(?<![\w'’])['‘](?=\S)|(?<=\S)['’](?!\w)|\n")
_CLOSERS = {'"': '"', "“": '”"', "„": "“”", "«": "»", "»": "«", "'": "'’", "‘": "’'"}
# Rows of a table: between bars, with a tab inside, or a number and a separator without a blank; lines of a log.
_ROW = re.compile(
    r"^[ \t]*+\|[^\n]*|^[^\t\n]++\t[^\n]*|^[ \t]*+\"?\d++\"?[,;|](?=[^\s\d])[^\n]*"
    r"|^\W{0,2}(?:INFO|DEBUG|WARN(?:ING)?|ERROR|TRACE)\b[^\n]*|^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\n]*"
    r"|^[ \t]*+\[?\d{1,2}:\d\d(?::\d\d)?\]?[ \t]++(?:<\w{1,40}>|\w{1,40}:)[^\n]*",
    re.MULTILINE,
)
_SEPARATED = r"[^,;\n]*+(?:(?<!\d)[,;](?=\S)|[,;](?=[^\s\d]))[^\n]*+"
_ROWS = re.compile(rf"^{_SEPARATED}(?:\n{_SEPARATED})++", re.MULTILINE)
_FIRST_PERSON = re.compile(r"\b(?:i|my|we|our|me|us)\b", re.IGNORECASE)
# A title or a nickname in quotation marks stays readable.
_MAX_TITLE_WORDS = 3

_LEAD = (
    r"(?:(?:and|so|but|then|hey|hi|hello|ok|okay|well|please|sorry|also|now|just|yes|no|oh|or|today|btw)\b[, !.]*+)*+"
)
_QUESTION = re.compile(
    rf"^{_LEAD}(?:(?:do|does|did|is|are|am|was|were|has|have|had|can|could|would|should|shall|what|what's|where|"
    rf"where's|"
    r"who|who's|whom|whose|which|why|how|how's|isn't|aren't|wasn't|doesn't|didn't|won't|can't|couldn't|haven't|guess)\b"
    r"|(?:may|might|will|when(?! it comes to\b)) (?:i|we|you|he|she|they|it|this|that|there|my|your|the|an?)\b)",
    re.IGNORECASE,
)
# "Will Bob join Hooli", not "Will joined Hooli".
_WILL_SOMEBODY = re.compile(r"^Will [A-Z]")
_WORK_ON_TEXT = (
    r"(?:translate|rephrase|paraphrase|reword|rewrite|correct|proofread|edit|summari[sz]e|repeat|parse|classify|"
    r"extract|complete)"
    r"(?=:| (?:the|this|these|that|it|my|our|me|following|after|into|to|as|an?|in)\b)"
    r"|pretend|imagine|act (?:as|like)|behave (?:as|like)|sing|let's (?:say|pretend|imagine|play a|suppose|assume)"
    r"|(?:let's (?:do |start |have )?(?:an? |some )?)?role[- ]?play(?!ing)"
    r"|(?:answer|respond|reply|speak|talk) (?:as (?:an?|if you|the)|like (?:an?|the))"
)
_WRITE = "write|draft|compose|generate|create|continue|finish|say|print|respond|answer|reply|type|enter|quote|define"
_REQUEST_WORDS = (
    f"{_WORK_ON_TEXT}|{_WRITE}|tell|give|make|explain|show|play|remind|ask|guess|describe|assert|insert|return|"
    f"compare|convert|"
    "treat|speak|suppose|picture|let (?:\\w+ ){1,3}know"
)
_ASKS = (
    rf"^{_LEAD}(?:(?:can|could|would|will) you |i(?:'d like| want| need) you to |help me (?:to )?)?(?:please |just )?"
)
_REQUEST = re.compile(rf"{_ASKS}(?:{_REQUEST_WORDS})\b", re.IGNORECASE)
_FICTION = (
    "story|stories|tale|poem|haiku|limerick|novel|novella|song|lyrics|chorus|verse|screenplay|script|scene|fiction|"
    "fantasy|"
    "scenario|role[- ]?play|simulation|sketch|sample|template|dialogue|monologue|essay|persona|fan-?fic|fan-?fiction|"
    "backstory|character"
)
# An invented world, or a text to work on: it goes on until the text ends.
_FRAME = re.compile(
    rf"^(?:{_ASKS}(?:(?:{_WORK_ON_TEXT})(?!\w)|(?:{_WRITE})\b[^.!?\n]{{0,80}}:"
    rf"|(?:{_WRITE}|tell|give|make|play|sing)\b(?:(?!about)[^.!?\n]){{0,80}}\b(?:{_FICTION})\b"
    r"|(?:fix|check|improve|correct|edit|polish)\b[^.!?\n]{0,80}\b(?:grammar|sentence|text|wording|spelling|"
    r"translation|"
    r"paragraph|phrase)s?\b)"
    rf"|here(?:'s| is) (?:the|your|an?|my) (?:\w+ )?(?:{_FICTION}|translation)\b|chapter (?:\d|[ivx]+\b|one\b)"
    rf"|(?:\w+ ){{0,4}}(?:{_FICTION}|rp)\b(?: \w+){{0,3}} ?:|scene \d|(?:once upon a time|ooc|rp time)\b"
    # The parts of a play are given out.
    rf"|{_LEAD}(?:you are (?:now )?(?:an?|my) (?!(?:real |true |total |absolute |big |huge |great )?(?:lifesaver|star|"
    rf"legend|"
    r"genius|hero|gem|angel|bit|good|friend|wizard)\b)|you're playing\b|(?:tonight |today )?(?:i'm|i am) playing "
    r"(?-i:[A-Z])|"
    r"(?:i'll|i will|i'm going to|you(?:'ll| will)?) (?:play|be) the\b))",
    re.IGNORECASE,
)
_FRAME_WORDS = re.compile(
    r"\b(?:in character|lorem ipsum|(?:test|sample|dummy|example|placeholder|mock) (?:data|text|input|sentence|"
    r"message|user|"
    r"case)s?)\b|(?<![*\w])\*\w{2,30}s (?:[\w']{1,30} ?){1,8}\*(?!\*)",
    re.IGNORECASE,
)
_IN_JEST = re.compile(r"\b(?:(?:just|only|was|am|i'm) (?:kidding|joking)|jk)\b", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    r"= ?(?:I|i|We|we)\b|^\W{0,9}\{['\"]?\w+['\"]?:|\{\{|\$\{|\[[A-Z_ ]{2,30}\]|<[a-z_]{2,30}>|_{3}|\bTODO\b|\bFIXME\b"
)
_INVENTED_OPENING = re.compile(
    r"^(?:in (?:my|the|this|that|an?|our) (?:\w+ )?(?:game|film|movie|series|show|book|play|script|comic|song|anime|"
    r"manga|"
    r"musical|opera|episode|season finale)\b|(?:re)?(?:playing|watching|reading) \w|in it\b"
    rf"|(?:\w+ ){{0,3}}(?:{_FICTION})(?:'s)?\b[^.!?:]{{0,20}} (?:name|lives|works|was born|prefers)\b"
    r"|in (?:english|french|spanish|german|italian|portuguese|dutch|russian|japanese|chinese|korean|arabic|hindi|"
    r"latin)\b)",
    re.IGNORECASE,
)
_INVENTED = re.compile(
    r"\b(?:(?:in|from|for) (?:my|the|this|that|an?|our|his|her|their|your) (?:\w+ )?(?:story|tale|poem|novel|novella|"
    r"screenplay|"
    r"dreams?|nightmare|scenario|role-?play|simulation|dialogue|template|example|universe|timeline|campaign|"
    r"head-?canon|fan-?fic)\b"
    r"|in (?:my|the|this|our|tonight's|today's|\w+'s) (?:game|campaign|larp|one-?shot)\b"
    r"|(?:the|this|that|my) (?:phrase|sentence|expression|quote|string|wording) (?:i|my|we)\b"
    rf"|(?:the|that|this|his|her) (?:{_FICTION}|hero|heroine|protagonist|narrator|sign|slogan)s? (?:\w+ )?"
    r"(?:says?|goes|go|opens?|begins?|starts?|reads)\b)",
    re.IGNORECASE,
)
# From here to the end of the sentence nothing is stated.
_DENIED = (
    "(?:true|correct|right|the case|say|said|saying|think|thought|believe|mean|claim|claimed|know|sure|certain|"
    "remember|"
    "recall|told|as if)"
)
_UNREAL = re.compile(
    rf"n't {_DENIED}\b|\b(?:(?:not|hardly|never) {_DENIED}|if|unless|supposing|suppose|assuming|assume|provided|in "
    rf"case|"
    r"whether|let's say|wish(?:es|ed|ing)?|hope[sd]?|hoping|dream(?:s|ed|t|ing)? (?:of|that|about|i|we)|wonder(?:s|ed|"
    r"ing)?|"
    r"doubt(?:s|ed)?|pretend(?:s|ed|ing)?|imagin(?:e|es|ed|ing)|untrue|false|wrong that|(?:a|the) (?:lie|myth|rumou?r|"
    r"joke)|"
    r"hopefully|with (?:any )?luck|fingers crossed|no (?:idea|clue)|unsure|unclear|as (?:soon|long) as|yet to|"
    r"nobody|no one|neither|once(?= (?:i|we) )|had i|were i|should i|as if|as though|impossible|unlikely|not that|"
    r"legend has it|hypothetically|for the sake of argument|for (?:instance|example)|e\.g\.|perhaps|maybe|possibly|"
    r"probably|"
    r"like(?= (?:i|my|we) ))(?!\w)",
    re.IGNORECASE,
)
# From here on somebody else may be the one who speaks.
_HEARSAY = re.compile(
    r"\b(?:says?|said|saying|tells?|told|telling|according to|rumou?r|thinks|believes|suspects|swears|swore|heard|"
    r"hears|reckons|"
    r"apparently|allegedly|supposedly|reportedly|seemingly|"
    r"(?:claim(?:s|ed|ing)?|report(?:s|ed)(?! to\b)|suggest(?:s|ed)|insist(?:s|ed)|assume[sd]|joke[sd]|complain(?:s|"
    r"ed)|answer(?:s|ed)|"
    r"repl(?:y|ies|ied)|respond(?:s|ed)|wrote|writes?|writing|ask(?:s|ed|ing)?|mention(?:s|ed)|whisper(?:s|ed)?|"
    r"shout(?:s|ed)?|quot(?:e|es|ed|ing)|reads|sings?|singing|sang)(?=[:,]| (?:me|us|him|her|them|back|that|to|in|i|"
    r"i'm|my|we)\b)|"
    r"(?:people|they|you|folks|friends|everyone|everybody|some|others|many) (?:think|thought|believe|assume|"
    r"suppose))(?!\w)",
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
_OR_WHAT = re.compile(r"\bor (?:what|not|nah|no|something)\W*$", re.IGNORECASE)
_IN_IRONY = re.compile(
    r"^(?:(?:oh|yeah|yes|ha|haha|lol)[, ]+)*(?:yeah|right|sure|great|of course)[, ]+and (?:i|i'm|my|we)\b"
    r"|^oh,? (?:great|joy|wonderful|fantastic|perfect|lovely)\b",
    re.IGNORECASE,
)
# "In Skyrim I live in Whiterun": a world of its own, unless the place is a time, an occasion, or one on the map.
_ELSEWHERE = re.compile(
    r"(?:in|on) (?P<where>[^ .,;:!?]+(?: (?!i\b|my\b|we\b)[^ .,;:!?]+){0,4}),? "
    r"(?:(?:i|we)(?:'m|'ve| am| are| have)?(?: \w+ly| also| still| now)?(?: (?:live|living|work|working|own|have|"
    r"moved|joined|left|prefer|an?|the|"
    r"married|run|rule|was|am|are)\b)|my (?!favou?rite)\w+ (?:is|are|has|was)\b|im\b)",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_OCCASIONS = OCCASIONS | CALENDAR_WORDS
_DECLARES = re.compile(rf"^{_LEAD}(?:i|i'm|i've|im|my|we|we're|we've)\b", re.IGNORECASE)
_COLON = re.compile(r":\s+(?=(?:and )?(?:i|i'm|i've|im|my|we|we've|call me)\b)", re.IGNORECASE)
# "Customer: …", "Ann Lee: …"; but "Update: …" is the speaker's own.
_SPEAKER_LABEL = re.compile(r"\W{0,3}[A-Z][\w'.-]{0,30}(?: [A-Z][\w'.-]{0,30}){0,2}: ")
_OWN_LABEL = re.compile(
    r"^\W*(?:correction|note|notes|update|edit|fyi|btw|ps|p\.s\.|context|background|about (?:me|myself)|reminder|"
    r"decision|outcome|result|summary|tl;?dr|important|facts?|again|also|info|intro|ok|okay|yes|no|nope|actually|sorry|"
    r"hi|hello|hey|status|me|user|today|yesterday|plan|conclusion|first|second|finally|news|one (?:more )?thing|"
    r"another thing|next|last|(?:here's )?the thing|"
    r"disclaimer|preferences?|allergies|diet|so|well|clarification|(?:please )?(?:remember|note)|for the record|"
    r"it's|it is|that's|good news|bad news|(?:two|some|a few|more|other|things?|what)(?: \w+)? (?:to know|facts|"
    r"things)|"
    r"(?:update|save|store|keep)(?: (?:in )?(?:my|this|it|that))?|things|questions?|dear|decisions?|outcomes|results|"
    r"recap|minutes|strategy|approach|roadmap|goals?|team|guys|folks|everyone|all|heads[- ]up|til|fun fact|reason|why|"
    r"next steps?|resolved|agreed|decided|i've made up my mind)\b",
    re.IGNORECASE,
)
_OWN_LIST = re.compile(
    r"\b(?:about (?:me|us|myself)|what (?:i|we)|done|found|findings|changes|progress|next steps|agenda|minutes|notes|"
    r"recap|retro|"
    r"stand-?up|meeting|sync|workshop|call|results?|decisions?|outcomes?|facts?|details|info|plans?|takeaways|"
    r"highlights|learnings|"
    r"so far|summary|status|updates?|things|questions)\b|^(?:my|our) ",
    re.IGNORECASE,
)
_OF_A_TEXT = re.compile(
    rf"\b(?:{_FICTION}|tests?|samples?|examples?|quotes?|translations?|drafts?|texts?|sentences?|paragraphs?|letters?|"
    rf"posts?|bios?|"
    r"messages?|code|prompts?|inputs?|outputs?|lines?|reviews?|tickets?|chats?|e-?mails?|transcripts?|quoted)\b",
    re.IGNORECASE,
)
_PARAGRAPH_END = re.compile(r"\n[ \t]*+\n")
_LINE_END = re.compile(r"\n")
_NOT_BLANK = re.compile(r"\S")
_PART_END = re.compile(r";|\s[-–—]+\s|—")
# A condition, a wish or hearsay ends where the speaker sets the facts against it.
_BUT_I = re.compile(
    r", but (?=(?:now |actually |currently |really |in fact |in reality )?(?:i|i'm|i've|my|we|we're|we've)\b)",
    re.IGNORECASE,
)

# "Make it vegan, I'm allergic to eggs": the reason for a favour is a statement.
_ASKS_A_FAVOUR = re.compile(
    rf"^{_LEAD}(?:(?:can|could|would|will) you\b|make|give|show|explain|remind|compare|convert|find|recommend|"
    rf"suggest)\b",
    re.IGNORECASE,
)
_COMMA_I = re.compile(r", (?:as |because |since )?(?=(?:i|i'm|i've|my|we|we're|we've)\b)", re.IGNORECASE)

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
    Behind a label in somebody's name ("Customer: …") the line is that person's, behind a line that ends with one
    the paragraph.
    """
    return iter(_read_short(text)) if len(text) <= _SHORT_CHARS else _read(text)


# The rules of notes and those of edges read the same texts, one after the other.
@lru_cache(maxsize=256)
def _read_short(text: str) -> tuple[Statement, ...]:
    return tuple(_read(text))


def _read(text: str) -> Iterator[Statement]:
    masked = _masked(text)
    end = 0
    others_until = 0
    is_invented = _IN_JEST.search(masked) is not None
    for sentence in sentences(masked):
        start = masked.index(sentence, end)
        end = start + len(sentence)
        is_long = len(sentence) > MAX_STATEMENT_CHARS
        is_invented = is_invented or (not is_long and bool(_FRAME.match(sentence) or _FRAME_WORDS.search(sentence)))
        own, told = _stated_parts(sentence) if not is_long else ((), ((0, len(sentence)),))
        is_others = start < others_until
        spans = ((), ()) if is_invented else (() if is_others else own, told)
        yield Statement(start, text[start:end], sentence, *spans)
        if not is_others and not is_long:
            others_until = _end_of_others(masked, sentence, end)


def _is_invented(part: str) -> bool:
    return _INVENTED_OPENING.match(part) is not None or _INVENTED.search(part) is not None


def _end_of_others(masked: str, sentence: str, end: int) -> int:
    """Return where the words end that a sentence's label gives to somebody else; 0 if it has no such label."""
    if sentence.endswith(":"):
        is_own = _OWN_LABEL.match(sentence) or _OWN_LIST.search(sentence)
        if is_own and not _OF_A_TEXT.search(sentence):
            return 0
        begins = _NOT_BLANK.search(masked, end)
        ends = _PARAGRAPH_END.search(masked, begins.start()) if begins else None
        return ends.start() if ends else len(masked)
    colon = _SPEAKER_LABEL.match(sentence) or _COLON.search(sentence)
    if colon is None or _is_own_label(sentence[: colon.end()]):
        return 0
    ends = _LINE_END.search(masked, end)
    return ends.start() if ends else len(masked)


def _is_own_label(label: str) -> bool:
    return bool(_OWN_LABEL.match(label)) and not _OF_A_TEXT.search(label)


def _masked(text: str) -> str:
    """Return the text with code, quoted lines and quotations made unreadable, of the same length."""
    masked = _QUOTED_LINE.sub(_hidden, _CODE.sub(_hidden, text))
    masked = _ROWS.sub(_hidden, _ROW.sub(_hidden, masked))
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
    """Yield the places of quotations within one line, in order, none inside another."""
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


def _stated_parts(sentence: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Return the parts that the speaker states, and those that are stated by anybody."""
    own: list[Span] = []
    told: list[Span] = []
    if _PLACEHOLDER.search(sentence):
        return (), ()
    marks = [place for match in _PART_END.finditer(sentence) for place in match.span()]
    if turn := _turn(sentence):
        marks = sorted([*marks, *turn.span()])
    bounds = [0, *marks, len(sentence)]
    for start, end in zip(bounds[::2], bounds[1::2], strict=True):
        part = sentence[start:end]
        heard = _length_before(_HEARSAY, part[: _stated_length(part)])
        told.append((start, start + heard))
        own.append((start, start + _own_length(part[:heard])))
    return ((), ()) if _ATTRIBUTION.search(sentence) else (tuple(own), tuple(told))


def _turn(sentence: str) -> re.Match[str] | None:
    """Return the words behind which the speaker states something, whatever the mood before them is."""
    if sentence.endswith("?"):
        return None
    if (turn := _BUT_I.search(sentence)) and _may_turn(sentence, turn.start()):
        return turn
    turn = _COMMA_I.search(sentence) if _ASKS_A_FAVOUR.match(sentence) else None
    return turn if turn and not _OF_A_TEXT.search(sentence, 0, turn.start()) else None


def _may_turn(sentence: str, place: int) -> bool:
    before = sentence[:place]
    return not (_REQUEST.match(before) or _is_invented(before) or _is_elsewhere(before) or ":" in before)


def _stated_length(part: str) -> int:
    """Return how much of a part of a sentence, from its start, states anything."""
    begun = part.lstrip()
    if _asks(begun) or _REQUEST.match(begun) or _is_invented(begun) or _OR_WHAT.search(part):
        return 0
    if _IN_IRONY.match(begun) or _is_elsewhere(begun):
        return 0
    length = len(part)
    if begun.endswith("?"):
        tail = _TAIL_QUESTION.search(part)
        length = tail.start() if tail and _DECLARES.match(begun) else 0
    return _length_before(_UNREAL, part[:length])


def _length_before(pattern: "re.Pattern[str]", part: str) -> int:
    match = pattern.search(part)
    return match.start() if match else len(part)


def _is_elsewhere(part: str) -> bool:
    match = _ELSEWHERE.match(part)
    if match is None:
        return False
    words = match["where"].casefold().split()
    return not (
        match["where"].casefold() in known_places()
        or any(word in _OCCASIONS or _YEAR.fullmatch(word) for word in words)
    )


def _asks(part: str) -> bool:
    return bool(
        _QUESTION.match(part) or (_WILL_SOMEBODY.match(part) and not re.match(r"Will [^ ]+ \w+(?:s|ed)\b", part))
    )


def _own_length(part: str) -> int:
    label = _SPEAKER_LABEL.match(part)
    if label is not None and not _is_own_label(label.group()):
        return 0
    colon = _COLON.search(part)
    return colon.start() if colon and not _is_own_label(part[: colon.start()]) else len(part)
