"""Scopes that hold much, as far as this process has noticed: their searches go by an index of vectors.

A plan that serves every scope cannot choose between such an index, which is slow and incomplete for a small part of a
table, and comparing all of a scope, which is slow for a large one. So small scopes are compared whole, by statements
that are planned once, and for a large one a statement is planned each time.
"""

from cachetools import TTLCache

# Tenant, workspace and namespace; a session, where one is searched alone.
PlaceKey = tuple[str | None, ...]

MOST_SCOPES = 10_000
FOR_S = 3_600.0


class LargeScopes:
    """The scopes that were found to be large within the last hour; they may have shrunk since."""

    def __init__(self) -> None:
        self._scopes: TTLCache[PlaceKey, None] = TTLCache(MOST_SCOPES, FOR_S)

    def __contains__(self, scope: PlaceKey) -> bool:
        return scope in self._scopes

    def add(self, scope: PlaceKey) -> None:
        """Remember a scope."""
        self._scopes[scope] = None
