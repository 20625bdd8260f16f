"""Whether a service that starts answers a search yet, and which stores it does without."""

import time
from collections.abc import Collection

import httpx

from lamina.aio.probing import OK
from lamina.core.tiers import TIERS, TierName
from lamina.local import LocalService
from lamina.search.query_embedding import EMBEDDER

# Of nobody: what a search finds counts as a hit.
WORKSPACE = "lamina-start"
QUESTION = "first answer"
PATIENCE_S, STEP_S = 5.0, 0.1
_GRAPH: TierName = "graph"
LATER = frozenset({EMBEDDER, *TIERS[_GRAPH].sources})
"""Parts that a first answer may lack; stored memories are found by their words all the same."""


class FirstAnswer:
    """Searches until the first answer comes.

    Args:
        service: The service that starts.
        may_miss: The parts that need not answer.

    Attributes:
        missing: The parts that the last answer lacked.
    """

    def __init__(self, service: LocalService, may_miss: Collection[str]) -> None:
        self._url = f"{service.url}/v1/search"
        self._headers = {"Authorization": f"Bearer {service.key}"}
        self._may_miss = frozenset(may_miss)
        self.missing: frozenset[str] = frozenset()

    def has_come(self) -> bool:
        """Search once; report whether every part answered that must."""
        answer = self._ask()
        if answer is None or not answer.is_success:
            return False
        self.missing = frozenset(answer.json()["degraded"]) - self._may_miss
        return not self.missing

    def _ask(self) -> httpx.Response | None:
        question = {"query": QUESTION, "workspace": WORKSPACE}
        try:
            return httpx.post(self._url, json=question, headers=self._headers, timeout=PATIENCE_S, trust_env=False)
        except httpx.TransportError:
            return None  # Nothing listens yet.


def stores_away(service: LocalService, stores: Collection[str]) -> list[str]:
    """Return the stores that do not answer, which an empty workspace does not show: searches do without them.

    Args:
        service: The service that starts.
        stores: All that it has; one of which a busy searcher says nothing is asked for again, for some seconds.
    """
    states: dict[str, str] = {}
    give_up = time.monotonic() + PATIENCE_S
    while not states.keys() >= set(stores) and time.monotonic() < give_up:
        try:
            states = httpx.get(f"{service.url}/readyz", timeout=PATIENCE_S, trust_env=False).json()["stores"]
        except (httpx.TransportError, ValueError):
            time.sleep(STEP_S)
    return sorted(name for name in stores if states.get(name) != OK)
