"""Read the name, place, time zone, employer and preferences that users state, and their changes.

English only. A clause counts if it begins with its subject: "I live in Graz" does, "where I live in Graz" does not.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from zoneinfo import available_timezones

import regex

from lamina.extraction.speech import Statement
from lamina.text.english import CALENDAR_WORDS, FUNCTION_WORDS, listed

MAX_VALUE_CHARS = 80

_MAY_PRECEDE = (
    "and|but|so|because|since|as|then|now|also|well|hi|hello|hey|ok|okay|yes|yeah|yep|no|nope|oh|actually|currently|"
    "nowadays|today|lately|recently|sorry|correction|btw|fyi|ps|by the way|for the record|in fact|these days|at the "
    "moment|right now|for now|as you know|to be clear|please|just|thanks|thank you|although|though|while|however|anyway|"
    "honestly|personally|normally|usually|generally|update|edit|status|about me|about myself|context|background|"
    "(?:please )?(?:note|remember|keep in mind|don't forget)(?: that)?|reminder|i mean|since then|(?:last|this) (?:week|"
    "month|year|spring|summer|autumn|fall|winter)|in (?:19|20)\\d\\d|yesterday|good (?:morning|evening|afternoon)|morning|"
    "lol|haha|i think|i believe|finally|instead|again|me|intro|info|everyone|all|there|team"
)
_LEAD = regex.compile(
    rf"\G[\s,:!.()*•·#–—-]*+(?:\d{{1,2}}[.)]?\s)?+(?:(?:{_MAY_PRECEDE})(?!['\w])[\s,:!.]*+)*+", regex.IGNORECASE
)
_CLAUSE_START = regex.compile(
    r"[,:.!]\s|\(|\s(?=(?:and|but|so|because|since|although|though|while|then|or|now)\s)", regex.IGNORECASE
)
_SUBJECT = regex.compile(r"(?:i|im|ive|we|my|call|you|u)\b", regex.IGNORECASE)
# A subject goes on over "and": "I left Initech and joined Hooli".
_VERB = regex.compile(r"(?:moved|joined|left|quit|work|live|prefer|started|resigned|relocated)\b", regex.IGNORECASE)

_ADVERBS = (
    "(?: (?:just|recently|finally|now|also|actually|currently|still|mostly|already|mainly|always|usually|generally|really|"
    "officially|only|even|definitely|strongly|much|happily))*+"
)
_CAPITALISED = (
    r"(?:(?:St|Dr|Mt|Ft|\p{Lu})\. \p{Lu}[\p{L}\p{M}'’-]*+|(?:\d*+|[a-z])\p{Lu}[\p{L}\p{M}\p{N}_'’&-]*+"
    r"(?:(?:\.\p{L}[\p{L}\p{M}\p{N}]*+)++\.?+)?+)"
)
_LINK = (
    "(?:(?:of|de|do|da|di|du|del|della|dos|das|la|las|los|le|les|am|an der|upon|van|von|den|der|bin|ibn|al|el|ten|ter|zu|y|"
    "af|av|sur|&) ){0,2}+"
)
_NAMED = rf"(?P<value>{_CAPITALISED}(?: {_LINK}(?!I\b){_CAPITALISED}){{0,6}}+)"
_PLACE = rf"(?P<value>(?:the )?{_CAPITALISED}(?: {_LINK}(?!I\b){_CAPITALISED}){{0,6}}+)"
_LOWER = r"(?P<lower>[\p{Ll}\p{M}'’-]+(?: [\p{Ll}\p{M}'’-]+)?+)"
_PHRASE = r"(?P<phrase>[^.!?,;:()–—]+)"
_AGO = r"(?= (?:for|since|ever since|all my life))"
_WORK = r"(?: (?:full[- ]time|part[- ]time|remotely|as an? [\w -]{1,40}?|in [\w ]{1,30}?))?"

_NO_NAMES = CALENDAR_WORDS | listed(
    "maybe tomorrow today tonight later now asap back when if at on in crazy sir old the first last christmas easter "
    "whatever anytime soon collect direct here home up out before after mr mrs ms dr"
)
_NO_LOWER_NAMES = (
    FUNCTION_WORDS
    | _NO_NAMES
    | listed(
        "hard difficult long short common rare unusual wrong missing mud important boring weird unique legion changing "
        "spelt written different irrelevant secret private public known unknown john's like pretty very"
    )
)
# Where work and files move to, rather than people.
_NO_PLACES = listed(
    "linux windows mac macos android ios python rust go golang java javascript typescript kotlin swift ruby php perl c c++ "
    "vim neovim emacs vscode firefox chrome safari edge gmail outlook slack teams discord zoom notion obsidian jira linear "
    "asana trello github gitlab bitbucket aws azure gcp kubernetes docker kafka redis postgres postgresql mysql mariadb "
    "sqlite mongodb spark airflow react vue svelte angular django rails spring excel sheets sales marketing product "
    "engineering finance legal hr it support management design research operations consulting bluesky mastodon twitter "
    "threads spotify netflix arch ubuntu debian fedora terraform ansible graphql rest grpc plan phase step part level "
    "section chapter page version team room desk table seat gate platform god jesus christ islam dvorak qwerty"
)
_CLUBS = listed(
    "club party union gym church league team choir band orchestra group meetup channel server community army navy forces "
    "mensa facebook instagram tiktok linkedin reddit twitter discord slack zoom netflix tinder duolingo github strava "
    "mastodon bluesky twitch patreon"
)
_NOT_YET = regex.compile(
    r"^[^,;]{0,40}?\b(?:next (?:\w+)|soon|tomorrow|(?:some|one) ?day|starting (?:in|on|from)|in my (?:dreams?|head|mind|heart))\b",
    regex.IGNORECASE,
)
_JUST_WENT = regex.compile(
    r" (?:at|early|late|around|before|after|on|with|this (?:morning|afternoon|evening)|for (?:lunch|dinner|the)|a|an|out|off|"
    r"because of|alone|behind|there|waiting|to)\b",
    regex.IGNORECASE,
)
_JOINS_WORK = regex.compile(
    r"(?:[.!,;)]|$| (?:as|this|last|recently|yesterday|today|now|instead|but|two|three|a|in (?:\d{4}|\p{Lu}\p{Ll}+)|"
    r"and (?!\p{Lu}))\b)"
)
_ENDS_NAME = regex.compile(r"\s*(?:$|[,.!;)(]|(?:please|instead|from now on|for short|and|if|btw|thanks|now)\b)")
_PHRASE_END = regex.compile(
    r"\s(?:(?:and|or) (?=(?:(?i:i|i'm|i've|i'd|you|he|she|we|they|it|it's|that|that's|this|my|his|her|our|their|the \w+ \w+s|"
    r"so|then|also|please|do|don't|can|could|am|was|have|hate|love|like|need|want|work|live|use|never|always|would|will)|"
    r"\p{Lu}\w+ (?:is|was|has|\p{Ll}+s))\b)|(?i:but|even(?= (?:though|if|when)\b)|because|cause|cuz|since|as (?=(?:i|it|my|they|we|he|she|you)\b)|when|"
    r"whenever|while|if|unless|so|although|though|whereas|which|who|until|except)\b|[-–—]+\s)"
)
_PHRASE_TAIL = regex.compile(
    r"\s(?:now|nowadays|these days|lately|any ?more|any longer|please|thanks|thank you|instead|too|as well|actually|generally|"
    r"usually|lol|btw|though|honestly|tbh|overall|for sure|of course|\p{So}+|:\)|xd|haha|tho)$",
    regex.IGNORECASE,
)
_POINTS_ELSEWHERE = regex.compile(
    r"(?:it|that|this|these|those|him|her|them|you|your|yours|mine|his|hers|neither|both|either|one|what|how|when|where|if|not "
    r"to (?:say|answer|tell|share|talk)|to not (?:say|answer)|(?:the|this|that) (?:\w+ )?(?:one|ones|option|version|way|former|"
    r"latter|first|second|third|other|last|same|answer|idea|approach|plan)|option|a different|another|something|anything|"
    r"somewhere|someone|nothing|more|less)(?!\w)",
    regex.IGNORECASE,
)
_ZONE = (
    r"(?P<zone>\p{L}[\p{L}_]+/[\p{L}_/+-]+|(?i:utc|gmt)(?: ?[+-]\d{1,2}(?::?\d\d)?)?|(?i:cet|cest|est|edt|cst|cdt|mst|mdt|pst|pdt|"
    r"wet|west|eet|eest|bst|ist|jst|kst|sgt|hkt|aest|aedt|acst|awst|nzst|nzdt|msk|sast|wat|eat|brt|art|akst|hst)\b"
    r"|(?:Eastern|Central|Mountain|Pacific)(?: (?:Standard|Daylight|European))?(?: Time)?)"
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A change of the profile that one clause states.

    Args:
        patch: As a profile's patch.
        withdrawn: Values that hold no longer, by field.
        is_past: Whether it only tells how it was ("I used to live in Graz").
        outcome: In plain words, how it is after a change: a question asks for "work", the change says "joined".
    """

    patch: Mapping[str, Any] = field(default_factory=dict)
    withdrawn: Mapping[str, Sequence[str]] = field(default_factory=dict)
    is_past: bool = False
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class _Rule:
    """The pattern of a clause, from its subject on.

    Args:
        key: The field of the profile.
        ends: Whether the value holds no longer.
        outcome: Of the fact, with a place for the value.
    """

    key: str
    pattern: "regex.Pattern[str]"
    ends: bool = False
    outcome: str = ""


def _rule(key: str, words: str, value: str, *, ends: bool = False, outcome: str = "") -> _Rule:
    return _Rule(key, regex.compile(rf"(?i:{words}){value}"), ends, outcome)


_HAVE = f"i(?:'ve| have|ve)?{_ADVERBS}"
_AM = f"i(?:'m| am|m)?{_ADVERBS}"
_NOT = "(?:no longer|don't|do not|dont|am not|am no longer|used to|stopped)"
_AM_NOT = f"i(?: {_NOT}|'m no longer|'m not|'ve stopped| have stopped)(?: really)?"
_WITH = "(?: (?:at|for|with|from|by))"
_RULES = (
    _rule("name", "my (?:full |first |real |given )?name(?: is|'s)(?: actually| really)? ", _NAMED),
    _rule("name", "my name is ", _LOWER),
    _rule("name", "(?:(?:you|u) (?:can|may) (?:just )?)?call me ", _NAMED),
    _rule("location", f"(?:{_AM}|we) (?:live|living|reside|based|located)(?: and work)?{_ADVERBS} in ", _PLACE),
    _rule("location", f"(?:{_AM}|we) (?:live|living|based)(?: and work)? in ", _LOWER),
    _rule("location", "i(?:'ve| have) (?:lived|been living|been based) in ", _PLACE + _AGO),
    _rule(
        "location",
        f"{_HAVE} (?:moved|relocated)(?: back| over)?(?: from [^,.;]{{1,40}}?)? to ",
        _PLACE,
        outcome="I live in {} now.",
    ),
    _rule("location", f"{_AM_NOT} (?:live|living|based) in ", _PLACE, ends=True),
    _rule("location", f"{_HAVE} moved (?:away from|out of|from) ", _PLACE, ends=True),
    _rule("employer", f"{_AM} (?:work|working|employed){_ADVERBS}{_WORK} (?:at|for|by) (?:the )?", _NAMED),
    _rule("employer", "i(?:'ve| have) (?:worked|been working) (?:at|for) (?:the )?", _NAMED + _AGO),
    _rule(
        "employer",
        f"{_HAVE} (?:started(?: working| work| (?:my|a) (?:new )?job)?{_WITH}|got (?:a|the|my) (?:new )?job{_WITH}|"
        f"(?:was|got|been) hired{_WITH}|joined) (?:the )?",
        _NAMED,
        outcome="I work at {} now.",
    ),
    _rule(
        "employer", f"{_HAVE} (?:left|quit) (?:[^,.;]{{1,40}}?)(?: to join| for) ", _NAMED, outcome="I work at {} now."
    ),
    _rule(
        "employer",
        f"{_HAVE} (?:(?:left|quit)|(?:left|quit|lost) (?:my|the) (?:job|position|role){_WITH}|resigned from|retired from|(?:got|was|been) "
        f"(?:fired|laid off){_WITH}) (?:the )?",
        _NAMED,
        ends=True,
    ),
    _rule("employer", f"{_AM_NOT} work(?:ing)? (?:at|for) (?:the )?", _NAMED, ends=True),
    _rule("employer", "i(?: am|'m) no longer (?:at|with) (?:the )?", _NAMED, ends=True),
    _rule(
        "employer",
        f"(?:{_HAVE} (?:quit|left|lost) my (?:old )?job|{_HAVE} (?:got|was|been) (?:fired|laid off)|{_AM} "
        r"(?:unemployed|retired|between jobs))(?=\s*(?:$|[.!,;)]| (?:last|this|in|and|two|three|a|yesterday|today|now)\b))",
        "",
        ends=True,
    ),
    _rule("timezone", r"my time ?zone (?:is|=) ", _ZONE),
    _rule("timezone", f"{_AM} (?:in|on) (?:the )?", _ZONE + r"(?= time ?zone\b)"),
    _rule("preferences", f"i(?: {_NOT})(?: really)? prefer(?:ring)? ", _PHRASE, ends=True),
    _rule("preferences", "i (?:no longer like|don't like|do not like|dont like) ", _PHRASE, ends=True),
    _rule("preferences", f"i{_ADVERBS} prefer ", _PHRASE),
)
_NO_LONGER = regex.compile(r"no longer like|any ?more\b|any longer\b", regex.IGNORECASE)
_INSTEAD = regex.compile(
    r"(?: any ?more| any longer)?+(?:,? but(?: now| rather| only| just)?|, (?:and )?(?:now )?(?:only|just|now|rather)) "
    r"(?!i\b)(?P<phrase>[^.!?,;:()–—]+)",
    regex.IGNORECASE,
)
_INCOMPLETE = regex.compile(
    r"(?:\b|^)(?:to|not|that|when|what|and|or|the|an?|of|in|as|my|your|for|with)$", regex.IGNORECASE
)


def facts_of(statement: Statement) -> Iterator[Fact]:
    """Yield the facts of a sentence, in order."""
    for start, end in statement.own:
        goes_on = False
        for clause in _clauses(statement.masked, start, end):
            opening = statement.masked[clause : clause + len("relocated")]
            said = "I " if goes_on and _VERB.match(opening) else ""
            found = _fact(said + statement.masked[clause:end], said + statement.text[clause:end])
            goes_on = found is not None
            if found is not None:
                yield found


def _clauses(sentence: str, start: int, end: int) -> Iterator[int]:
    """Yield the places where a clause has its subject, in a part of the sentence."""
    opened = [start, *(match.end() for match in _CLAUSE_START.finditer(sentence, start, end))]
    yield from dict.fromkeys(match.end() for place in opened if (match := _LEAD.match(sentence, place, end)))


def _fact(masked: str, text: str) -> Fact | None:
    for rule in _RULES if _SUBJECT.match(masked) else ():
        match = rule.pattern.match(masked)
        if match is not None and (found := _read(rule, match, text)) is not None:
            return found
    return None


def _read(rule: _Rule, match: "regex.Match[str]", text: str) -> Fact | None:
    """Return the fact that a rule reads; ``None`` if it is none."""
    groups = match.groupdict()
    if groups.get("phrase"):
        return _preference(rule, match, text)
    if not groups:
        return Fact({rule.key: None})
    name = next(name for name, value in groups.items() if value)
    value = (_first_word if name == "lower" else _trimmed)(text[slice(*match.span(name))])
    rest = match.string[match.start(name) + len(value) :]
    if not value or not _is_value(rule, name, value, rest, match.group().casefold()):
        return None
    if rule.ends:
        return Fact(withdrawn={rule.key: [value]}, is_past="used to" in match.group().casefold())
    return Fact({rule.key: value}, outcome=rule.outcome.format(value))


def _first_word(value: str) -> str:
    """Return two small words without the second, if that goes on with the sentence ("joão and")."""
    first, _, second = value.partition(" ")
    return first if second in FUNCTION_WORDS else value


def _trimmed(value: str) -> str:
    """Return a value without days and months behind it ("Berlin Monday to Friday")."""
    parts = value.rstrip("'’-&").split(" ")
    while parts and parts[-1].casefold().removesuffix("s") in CALENDAR_WORDS:
        parts.pop()
    return " ".join(parts)[:MAX_VALUE_CHARS]


def _is_value(rule: _Rule, group: str, value: str, rest: str, said: str) -> bool:
    first = value.casefold().split(" ", 1)[0]
    match rule.key, group:
        case "name", "lower":
            words = value.casefold().split(" ")
            is_word = any(word in _NO_LOWER_NAMES or word.endswith(("ed", "ing")) for word in words)
            return not is_word and bool(_ENDS_NAME.match(rest))
        case "name", _:
            return first not in _NO_NAMES and ("call me" not in said or bool(_ENDS_NAME.match(rest)))
        case "location", "lower":
            return value.casefold() in _cities()
        case "location", _:
            return first not in _NO_PLACES and not _is_of_somebody(value, rest) and not _NOT_YET.match(rest)
        case "employer", _:
            return _is_employer(value, rest, said)
        case _:
            return True


def _is_of_somebody(value: str, rest: str) -> bool:
    """Report whether a value only says whose something is ("Ann's bakery"); McDonald's is a name."""
    return value.endswith(("'s", "’s")) and regex.match(r" \p{Ll}", rest) is not None


def _is_employer(value: str, rest: str, said: str) -> bool:
    words = value.casefold().split(" ")
    if words[0] in _NO_NAMES or _is_of_somebody(value, rest) or _NOT_YET.match(rest):
        return False
    if " joined " in f" {said} ":
        return words[-1] not in _CLUBS and "joined the " not in said and bool(_JOINS_WORK.match(rest))
    return " left " not in f" {said} " or "job" in said or not _JUST_WENT.match(rest)


def _preference(rule: _Rule, match: "regex.Match[str]", text: str) -> Fact | None:
    start, end = match.span("phrase")
    phrase = _phrase(text[start:end], match["phrase"])
    if rule.ends and "like" in match.group().casefold()[:start] and not _NO_LONGER.search(match.group()):
        return None
    if not phrase or _POINTS_ELSEWHERE.match(phrase) or _INCOMPLETE.search(phrase):
        return None
    if not rule.ends:
        return Fact({"preferences": [phrase]})
    instead = _INSTEAD.match(match.string, start + len(phrase))
    added = _phrase(text[slice(*instead.span("phrase"))], instead["phrase"]) if instead else ""
    if not added:
        return Fact(withdrawn={"preferences": [phrase]})
    return Fact({"preferences": [added]}, {"preferences": [phrase]}, outcome=f"I prefer {added} now.")


def _phrase(written: str, masked: str) -> str:
    """Return a phrase up to the end of its clause, without remarks in between."""
    end = _PHRASE_END.search(masked)
    phrase = written[: end.start() if end else None].strip()
    while tail := _PHRASE_TAIL.search(phrase):
        phrase = phrase[: tail.start()].strip()
    return phrase if len(phrase) <= MAX_VALUE_CHARS else ""


@cache
def _cities() -> frozenset[str]:
    """Return the places that are written without a capital and known as such: the cities of the time zones."""
    regions = ("Africa/", "America/", "Asia/", "Europe/", "Australia/", "Pacific/", "Atlantic/", "Indian/")
    named = {zone.rsplit("/", 1)[1] for zone in available_timezones() if zone.startswith(regions)}
    no_cities = listed("center north south west easter christmas current general east reunion")
    return frozenset(name.replace("_", " ").casefold() for name in named) - no_cities
