"""Find where the clauses of a sentence have their subject."""

from functools import lru_cache

import regex

_MAY_PRECEDE = (
    "and|but|so|because|since|as|then|now|also|well|hi|hello|hey|ok|okay|yes|yeah|yep|no|nope|oh|actually|currently|"
    "nowadays|today|lately|recently|sorry|correction|btw|fyi|ps|by the way|for the record|in fact|these days|at the "
    "moment|right now|for now|as you know|to be clear|please|just|thanks|thank you|although|though|while|however|"
    "anyway|"
    "honestly|personally|normally|usually|generally|update|edit|status|about me|about myself|context|background|"
    "(?:please )?(?:note|remember|keep in mind|don't forget)(?: that)?|reminder|i mean|since then|(?:last|this) "
    "(?:week|"
    "month|year|spring|summer|autumn|fall|winter)|in (?:19|20)\\d\\d|yesterday|good (?:morning|evening|afternoon|"
    "news)|morning|"
    "lol|haha|i think|i believe|finally|instead|again|me|intro|info|everyone|all|there|team|folks|just so you know"
)
_LEAD = regex.compile(
    rf"\G[\s,:!.()*•·#–—-]*+(?:\d{{1,2}}[.)]?\s)?+(?:(?:{_MAY_PRECEDE})(?!['\w])[\s,:!.]*+)*+", regex.IGNORECASE
)
_CLAUSE_START = regex.compile(
    r"[,:.!]\s|\(|\s(?=(?:and|but|so|because|since|although|though|while|then|or|now)\s)", regex.IGNORECASE
)
# "For long trips I prefer the train": when, where or of what, without a comma; no relative clause.
_CIRCUMSTANCE = regex.compile(
    r"\G(?:for|since|after|before|during|on|in|at|with|by|as of|as for|over|last|next|every|until|throughout|when it "
    r"comes to|"
    r"back in)(?: (?!(?:i|we|my|you|who|whom|whose|which|that|where|what|whatever|if|people|everything|everyone|"
    r"anyone|all|"
    r"things?)\b)[^\s,.;:!?]{1,30}){1,9}? (?=(?:i|i'm|i've|we|we're|we've|my)\b)",
    regex.IGNORECASE,
)


# The rules of facts and those of notes ask for the same parts, one after the other.
@lru_cache(maxsize=256)
def clause_starts(sentence: str, start: int, end: int) -> tuple[int, ...]:
    """Return the places where a clause may have its subject, in a part of the sentence, in order.

    The part's first word is one ("Everyone calls me Max"), and each word behind what may lead a clause in.
    """
    opened = [start, *(match.end() for match in _CLAUSE_START.finditer(sentence, start, end))]
    first = end - len(sentence[start:end].lstrip())
    subjects = [match.end() for place in opened if (match := _LEAD.match(sentence, place, end))]
    circumstances = [_CIRCUMSTANCE.match(sentence, place, end) for place in dict.fromkeys((first, *subjects[:2]))]
    return tuple(sorted({first, *subjects, *(match.end() for match in circumstances if match)}))
