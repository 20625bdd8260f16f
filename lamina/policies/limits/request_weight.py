"""The weight of a request: how many plain ones it counts as against a quota of requests."""

from collections.abc import Mapping

RESULTS = 50
"""Most results of a plain search, walk or match, or of a step more."""
ROWS = 250
"""Most rows of a plain list, or of a step more; those that an offset skips are read, too."""
ITEMS = 10
BODY_BYTES = 16 * 1024
MOST_RESULTS = 1000
MOST_SEARCHES = 16
_OPTIONS = ("explain", "rerank")
_MOST_DIGITS = 7


def request_weight(body_bytes: int, body: object, query: Mapping[str, str]) -> int:
    """Return the weight of a request that may be invalid; 1 for one that leaves everything at its default.

    Args:
        body_bytes: Of its body, unpacked.
        body: As it was read from JSON, before any check; ``None`` if it has none.
        query: Its parameters.
    """
    rows = sum(_number(query.get(name, "")) for name in ("limit", "offset"))
    return 1 + max(0, body_bytes) // BODY_BYTES + _steps(rows, ROWS) + _beyond_plain(body)


def most_cost(weight: int, amount: int) -> int:
    """Return the cost of a request against a quota: half of it at most, so that none is refused for ever."""
    return min(weight, max(1, amount // 2))


def _beyond_plain(body: object) -> int:
    """Return how much a body asks for beyond a plain one; each search of several is one more request."""
    if not isinstance(body, dict):
        return 0
    limit = body.get("limit")
    results = min(limit, MOST_RESULTS) if isinstance(limit, int) else 0
    options = sum(bool(body.get(name)) for name in _OPTIONS)
    searches = body.get("searches")
    if isinstance(searches, list):  # More than so many are refused.
        several = searches[:MOST_SEARCHES]
        return max(0, len(several) - 1) + sum(map(_beyond_plain, several))
    items = sum(len(value) for value in body.values() if isinstance(value, list))
    return _steps(results, RESULTS) + options + items // ITEMS


def _steps(amount: int, step: int) -> int:
    return max(0, amount - 1) // step


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else 0
