"""Conditions under which a write takes place: If-Match and If-None-Match."""

from dataclasses import dataclass

import regex

from lamina.errors import InvalidInput, PreconditionFailed

ANY_ETAG = "*"
_ETAG = regex.compile(r'\s*(W/)?"([^"]*)"\s*')


@dataclass(frozen=True, slots=True)
class Precondition:
    """The state of a memory on which a request insists.

    Args:
        match: ETags of which it has one; ``*`` for any.
        none_match: ETags of which it has none; ``*`` if it may not be there at all.
    """

    match: frozenset[str] | None = None
    none_match: frozenset[str] | None = None

    def check(self, name: str, etag: str | None) -> None:
        """Refuse a write on another state than the one that was asked for.

        Args:
            name: What it is, for the error.
            etag: Its ETag; ``None`` where there is none.

        Raises:
            PreconditionFailed: Naming the ETag that it has.
        """
        state = "is not there" if etag is None else f'has the ETag "{etag}"'
        if self.match is not None and (etag is None or not self.match & {ANY_ETAG, etag}):
            raise PreconditionFailed("If-Match", f"{name} {state}; read it again")
        if self.none_match is not None and etag is not None and self.none_match & {ANY_ETAG, etag}:
            raise PreconditionFailed("If-None-Match", f"{name} {state}; read it again")


UNCONDITIONAL = Precondition()


def read_etags(header: str | None, name: str, *, weak: bool = False) -> frozenset[str] | None:
    """Return the ETags of a header; ``None`` where it was not sent.

    Args:
        header: Its value.
        name: Its name, for the error.
        weak: Whether ETags that are marked as weak count; for If-Match they do not.

    Raises:
        InvalidInput: If it holds something else.
    """
    if header is None:
        return None
    if header.strip() == ANY_ETAG:
        return frozenset({ANY_ETAG})
    found = []
    place = 0
    while match := _ETAG.match(header, place):
        found.append(match)
        place = match.end() + 1
        if header[match.end() : place] != ",":
            break
    if not found or found[-1].end() != len(header):
        raise InvalidInput(name, 'is no list of ETags; send one in quotes, as in "a1b2", or *')
    return frozenset(str(match[2]) for match in found if weak or not match[1])
