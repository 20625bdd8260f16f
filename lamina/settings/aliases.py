"""Names of environment variables that the source documents give to settings of Lamina's."""

from collections.abc import Iterator, Mapping

from lamina.errors import Misconfigured

ALIASES = {
    "SEMANTIC_CACHE_ENABLED": "LAMINA_CACHES__SEMANTIC__ENABLED",
    "NOVAMEM_DECAY_DAYS": "LAMINA_COLD__DAYS_PER_DOUBLING",
}
GRAPH_ENABLED, GRAPH_KIND = "NOVAMEM_GRAPH_ENABLED", "LAMINA_GRAPH__KIND"
_YES, _NO = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off"})


def aliased(variables: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return Lamina's variables for those that stand under a document's name; Lamina's own names win over them.

    Args:
        variables: By their names, in whatever case.

    Raises:
        Misconfigured: If NOVAMEM_GRAPH_ENABLED is neither true nor false.
    """
    return {name.lower(): value for name, value in _aliased({key.upper(): value for key, value in variables.items()})}


def _aliased(variables: Mapping[str, str | None]) -> Iterator[tuple[str, str | None]]:
    yield from ((ours, variables[theirs]) for theirs, ours in ALIASES.items() if theirs in variables)
    if GRAPH_ENABLED in variables:
        wanted = (variables[GRAPH_ENABLED] or "").strip().lower()
        if wanted in _NO:
            yield GRAPH_KIND, "off"
        elif wanted not in _YES:
            raise Misconfigured(f"environment variable {GRAPH_ENABLED} is {wanted!r}", "set it to true or false")
