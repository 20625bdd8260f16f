"""Whether a service that starts answers a search yet, and which stores it does without."""

from collections.abc import Collection, Mapping
from typing import Any

import httpx

from lamina.cli.local import LocalService
from lamina.core.tiers import TIERS, TierName
from lamina.host.authorities import no_authorities
from lamina.search.query_embedding import EMBEDDER

# Of nobody: what a search finds counts as a hit.
WORKSPACE = "lamina-start"
QUESTION = "first answer"
PATIENCE_S = 5.0
# Of calls on this machine, which are many: each would read the authorities of HTTPS anew.
_OPTIONS: Mapping[str, Any] = {"timeout": PATIENCE_S, "trust_env": False, "verify": no_authorities()}
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
            return httpx.post(self._url, json=question, headers=self._headers, **_OPTIONS)
        except httpx.TransportError:
            return None  # Nothing listens yet.


def store_states(service: LocalService) -> Mapping[str, str]:
    """Return the state of each store as the service tells it; empty if it does not, as while a replica restarts."""
    try:
        answer = httpx.get(f"{service.url}/readyz", **_OPTIONS).json()
    except (httpx.TransportError, ValueError):
        return {}
    return answer.get("stores", {}) if isinstance(answer, dict) else {}
