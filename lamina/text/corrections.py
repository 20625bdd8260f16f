"""Read what a statement puts right: "It was 2019, not 2018", and the same in other languages."""

import regex

# From the start of a word alone: from each of its letters the work would be quadratic.
_VALUE = r"(?<![\p{L}\p{M}\p{N}.:/'’-])[\p{L}\p{N}][\p{L}\p{M}\p{N}.:/'’-]*+(?-i: \p{Lu}[\p{L}\p{N}'’-]*+)?+"
_EAST = r"[\p{Han}\p{Katakana}ーA-Za-z0-9]{1,16}"
_LEAD = r"(?:(?:in|on|at|the|a|an|im|am|in der|den|dem|der|die|das|en|el|la|los|à|au|le|les|de|il|nel) )?"
_PATTERNS = tuple(
    regex.compile(pattern, regex.IGNORECASE)
    for pattern in (
        rf"(?P<right>{_VALUE}),? (?:and )?(?:not|rather than) {_LEAD}(?P<wrong>{_VALUE})",
        rf"\b(?:not|isn't|wasn't) {_LEAD}(?P<wrong>{_VALUE}),? but (?:rather )?{_LEAD}(?P<right>{_VALUE})",
        rf"\b(?:not|isn't|wasn't) {_LEAD}(?P<wrong>{_VALUE})[,;.:–—-]+ ?(?:it (?:is|was)|it's) {_LEAD}(?P<right>{_VALUE})",
        rf"(?P<right>{_VALUE}),? (?:und )?nicht {_LEAD}(?P<wrong>{_VALUE})",
        rf"\bnicht {_LEAD}(?P<wrong>{_VALUE}),? sondern {_LEAD}(?P<right>{_VALUE})",
        rf"(?P<right>{_VALUE}), (?:y )?no {_LEAD}(?P<wrong>{_VALUE})",
        rf"\bno {_LEAD}(?P<wrong>{_VALUE}),? sino {_LEAD}(?P<right>{_VALUE})",
        rf"(?P<right>{_VALUE}),? (?:et )?(?:non )?pas {_LEAD}(?P<wrong>{_VALUE})",
        rf"\bpas {_LEAD}(?P<wrong>{_VALUE}),? mais {_LEAD}(?P<right>{_VALUE})",
        rf"不是(?:在)?(?P<wrong>{_EAST})[，,]?(?:而)?是(?:在)?(?P<right>{_EAST})",
        rf"是(?:在)?(?P<right>{_EAST}?)[，,]?(?:而)?不是(?:在)?(?P<wrong>{_EAST})",
        rf"(?P<wrong>{_EAST})(?:では?なく|じゃなくて?)[、,]?(?P<right>{_EAST})",
    )
)
_HINTS = regex.compile(r"\b(?:not|isn't|wasn't|rather than|nicht|no|pas)\b|不是|なく|じゃな", regex.IGNORECASE)
_MARKED = regex.compile(r"[\p{N}\p{Lu}\p{Han}\p{Katakana}]")


def corrected_values(text: str) -> frozenset[str]:
    """Return the values that a statement names as wrong, folded: names and numbers, for "not so" puts nothing right.

    >>> sorted(corrected_values("It was 2019, not 2018, that I moved."))
    ['2018']
    """
    if _HINTS.search(text) is None:
        return frozenset()
    found = (match for pattern in _PATTERNS for match in pattern.finditer(text))
    return frozenset(
        match["wrong"].rstrip(".,:-'’").casefold()
        for match in found
        if _MARKED.match(match["wrong"]) and _MARKED.match(match["right"])
    )
