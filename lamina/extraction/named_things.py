"""Read what is said of a thing with a name and can hold only once: its version, its status, its date. English only."""

from collections.abc import Iterator
from dataclasses import dataclass

import regex

from lamina.text.english import MONTHS, WEEKDAYS

_NOUN = (
    r"(?: (?:project|service|server|cluster|database|app|product|feature|epic|ticket|conference|meeting|workshop|event|"
    r"release|launch|programme|program|course|trip|tour|show|festival|branch|site|plant|line))?"
)
_NOW = r"(?:(?: now| currently| officially| finally| just)*+)"
_NUMBER = r"(?:version |release |v\.? ?)(?P<v>\d{1,4}(?:\.\d{1,5}){0,3}(?:[a-z]\d{0,2})?)(?![\w.]*\d)"
_BARE_NUMBER = (
    r"(?:version |release |v\.? ?)?(?P<v>\d{1,4}(?:\.\d{1,5}){0,3}(?:[a-z]\d{0,2})?)(?![\w.]*\d|[\w:%]| (?:a|p)m\b)"
)
_STATUS = r"(?P<v>cancell?ed|discontinued|deprecated|archived|decommissioned|on hold|shut down|closed|reopened)"
_MONTH = "|".join(MONTHS)
_DATE = r"\d{1,2}(?:st|nd|rd|th)?"
_DAY = (
    rf"(?P<v>(?:next |the )?(?:{_DATE}(?: of)? (?:{_MONTH})|(?:{_MONTH}) {_DATE}|{_MONTH}|{'|'.join(WEEKDAYS)}|"
    r"next (?:week|month|year))(?:,? \d{4})?)"
)
_MOVED = r"(?:moved|postponed|pushed(?: back)?|rescheduled|brought forward|put back|shifted)"
_END = r"(?=\s*+(?:[.!,;:)(…–—]|$|(?:now|instead|and|but|since|because|for good|until further notice|again)\b))"


@dataclass(frozen=True, slots=True)
class _Rule:
    relation: str
    behind: "regex.Pattern[str]"
    before: "regex.Pattern[str] | None" = None


def _rule(relation: str, behind: str, before: str = "") -> _Rule:
    compiled = regex.compile(rf"\G{_NOUN}{behind}{_END}", regex.IGNORECASE)
    return _Rule(relation, compiled, regex.compile(before, regex.IGNORECASE) if before else None)


_RULES = (
    _rule("has_version", rf" (?:is|are|runs){_NOW}(?: on| at)? {_NUMBER}"),
    _rule(
        "has_version",
        rf" (?:is|was|has been|got){_NOW} (?:upgraded|updated|bumped)(?: from [^,;]{{1,20}}?)? to {_BARE_NUMBER}",
    ),
    _rule(
        "has_version",
        rf"(?: from [^,;]{{1,20}}?)? to {_BARE_NUMBER}",
        r"\b(?:i|we|they|she|he|team)(?:'ve| have| has)? (?:just |finally )?(?:upgraded|updated|bumped)"
        r"(?: the| our| my)? $",
    ),
    _rule("has_status", rf" (?:is|was|has been|got){_NOW} {_STATUS}"),
    _rule("has_date", rf" (?:is|was|has been|got){_NOW} {_MOVED}(?: from [^,;]{{1,20}}?)? to {_DAY}"),
    _rule("has_date", rf" (?:is{_NOW} (?:scheduled|planned|set) (?:for|on)|takes place{_NOW} (?:on|in)) {_DAY}"),
)
_WIDEST_BEFORE = 60
# "My tour of Falcon is cancelled" tells of the tour.
_NO_SUBJECT = regex.compile(
    r"\b(?:of|for|with|to|at|in|on|from|by|about|and|or|than|like)(?: (?:the|our|my|an?))? $|['’]s $", regex.IGNORECASE
)


def states_of_thing(sentence: str, start: int, end: int) -> Iterator[tuple[str, str]]:
    """Yield the relations and values that a sentence states of a name in it.

    Args:
        sentence: The sentence, up to where it states anything.
        start: Where the name begins.
        end: One past its last character.
    """
    before = sentence[max(0, start - _WIDEST_BEFORE) : start]
    for rule in _RULES:
        match = rule.behind.match(sentence, end)
        if match is None:
            continue
        if rule.before.search(before) if rule.before else not _NO_SUBJECT.search(before):
            yield rule.relation, " ".join(match["v"].split()).removeprefix("the ")
            return
