"""Findings of a check: the place in a document, the fault and its remedy."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Literal

from lamina.core.masking import is_secret, mask_secrets

# Keys and positions from the top of a document.
Place = tuple[str | int, ...]
# Pydantic's name, at the end of a place, for the key of a mapping instead of its value.
OF_KEY = "[key]"
MAX_NAMES = 12
MAX_VALUE_CHARS = 60
_SIMILARITY_CUTOFF = 0.7


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of a configuration.

    Args:
        place: Where it is in the document.
        fault: The fault, with the value unless that is a secret.
        remedy: A way to mend it.
        severity: An error does not work, a warning works badly, a note names something that was not checked.
    """

    place: Place
    fault: str
    remedy: str
    severity: Literal["error", "warning", "note"] = "error"

    def under(self, *prefix: str | int) -> "Finding":
        """Return the finding with its place in a surrounding document."""
        return replace(self, place=(*prefix, *self.place))

    def __str__(self) -> str:
        place = ".".join(map(str, self.place)) or "document"
        label = "" if self.severity == "error" else f"{self.severity}: "
        return f"{place}: {label}{self.fault}; {self.remedy}"


def warning(place: Place, fault: str, remedy: str) -> Finding:
    """Return a finding that stops nothing."""
    return Finding(place, fault, remedy, "warning")


def under(findings: Iterable[Finding], *prefix: str | int) -> Iterator[Finding]:
    """Return findings with their places in a surrounding document."""
    return (finding.under(*prefix) for finding in findings)


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the most similar known name, or ``None`` if none is similar."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), by_lower, n=1, cutoff=_SIMILARITY_CUTOFF)
    return by_lower[close[0]] if close else None


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return the remedy for an unknown name: the most similar known one, or all of them."""
    names = list(known)
    close = nearest_name(name, names)
    if close is not None:
        return f"did you mean {close}?"
    shown = ", ".join(names[:MAX_NAMES])
    return f"remove it; known are {shown}{' and others' if len(names) > MAX_NAMES else ''}"


def describe_value(value: object, place: Place = ()) -> str:
    """Return a short text for a value, without secrets."""
    if any(is_secret(part) for part in place if part != OF_KEY):
        return "…"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = mask_secrets(repr(value))
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}…"
