"""What a check found, and where."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches

Place = tuple[str | int, ...]
"""Keys and positions from the top of a document."""
MOST_NAMED = 12
_CLOSE = 0.7


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or that will turn out badly.

    Args:
        place: Where in the document.
        what: What is wrong there, with the value unless it is a secret.
        remedy: What to do about it.
        is_error: Whether it will not work; otherwise it will, badly.
    """

    place: Place
    what: str
    remedy: str
    is_error: bool = True

    def under(self, *prefix: str | int) -> "Finding":
        """Return the finding as the document around says it."""
        return replace(self, place=(*prefix, *self.place))

    def __str__(self) -> str:
        place = ".".join(map(str, self.place)) or "document"
        return f"{place}: {'' if self.is_error else 'warning: '}{self.what}; {self.remedy}"


def warning(place: Place, what: str, remedy: str) -> Finding:
    """Return a finding that stops nothing."""
    return Finding(place, what, remedy, is_error=False)


def under(findings: Iterable[Finding], *prefix: str | int) -> Iterator[Finding]:
    """Return findings as the document around says them."""
    return (finding.under(*prefix) for finding in findings)


def repeated(values: Iterable[object], place: Place, key: str) -> Iterator[Finding]:
    """Return the places in a list whose key has a value that an earlier one has; nothing is no value."""
    seen: list[object] = []
    for number, value in enumerate(values):
        if value is not None and value in seen:
            yield Finding((*place, number, key), f"is {value!r} a second time", "give each its own")
        seen.append(value)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), by_lower, n=1, cutoff=_CLOSE)
    return by_lower[close[0]] if close else None


def unknown(place: Place, name: str, known: Iterable[str]) -> Finding:
    """Return the finding that a key is none of those known in its place."""
    return Finding((*place, name), "is not known", meant(name, sorted(known)))


def meant(name: str, known: Iterable[str]) -> str:
    """Return the remedy for a name that is none of the known ones."""
    names = list(known)
    close = nearest(name, names)
    if close is not None:
        return f"did you mean {close}?"
    shown = ", ".join(names[:MOST_NAMED])
    return f"remove it; known are {shown}{' and others' if len(names) > MOST_NAMED else ''}"
