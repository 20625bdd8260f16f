"""The session that a request continues whose history lies at the model's endpoint, at any router."""

import asyncio
import time
from collections.abc import Mapping, Sequence

from cachetools import TTLCache

from deployments.access import OWN_MEMORIES
from lamina.core.principals import Principal, ScopeField, bound_ids
from lamina.core.scope import Scope
from lamina.policies.caching.cache_keys import digest
from lamina.stores.postgres.response_chains import ResponseChains
from lamina.wiring.stores import utc_now

OWN_CHAINS, OWN_S = 10_000, 60.0
"""Seconds for which a router knows a chain by itself, unless its row stands before."""
WAIT_S, LOOK_S = 3.0, 0.1
"""Longest time for which a turn waits for the record of the one that it continues, and between two looks for it."""


class GatewayChains:
    """Finds and keeps the sessions of responses and conversations, which are called chains here.

    Args:
        table: Where all routers find them.
    """

    def __init__(self, table: ResponseChains) -> None:
        self._table = table
        self._own: TTLCache[bytes, str] = TTLCache(OWN_CHAINS, OWN_S)

    async def find(self, principal: Principal, ids: Mapping[str, str], chain: str) -> str | None:
        """Return the session of a chain; ``None`` if it is not known yet.

        Raises:
            LaminaError: If the scope is none or reaches further than the key, or the store does not answer.
        """
        scope = _scope_of(principal, ids)
        return self._own.get(_key(scope, chain)) or await self._table.find(scope, chain, utc_now())

    async def find_recorded(self, principal: Principal, ids: Mapping[str, str], response: str) -> str | None:
        """Do the same for a response whose turn may be recorded only now, at another router: wait a while for it.

        Raises:
            LaminaError: As :meth:`find`.
        """
        give_up = time.monotonic() + WAIT_S
        found = await self.find(principal, ids, response)
        while found is None and time.monotonic() < give_up:
            await asyncio.sleep(LOOK_S)
            found = await self.find(principal, ids, response)
        return found

    def note(self, principal: Principal, ids: Mapping[str, str], session: str, chains: Sequence[str]) -> None:
        """Keep the session of chains at this router, while their turn is recorded.

        Raises:
            LaminaError: If the scope is none, or reaches further than the key.
        """
        scope = _scope_of(principal, ids)
        for chain in chains:
            self._own.setdefault(_key(scope, chain), session)

    async def put(
        self, principal: Principal, ids: Mapping[str, str], session: str, chains: Sequence[str], made: str | None
    ) -> None:
        """Keep the session of chains for all routers, once their turn is recorded.

        Args:
            principal: Who asked.
            ids: Of the scope of the turn.
            session: In which it was recorded.
            chains: That belong to this session, where they have none yet.
            made: The one of them that this turn made.

        Raises:
            LaminaError: If the scope is none or reaches further than the key, or the store does not answer.
        """
        scope = _scope_of(principal, {**ids, "session": session})
        await self._table.put(scope, chains, utc_now(), made=made)
        # From now on the table alone knows them: the session may be renamed at any router.
        for chain in chains:
            self._own.pop(_key(scope, chain), None)


def _key(scope: Scope, chain: str) -> bytes:
    return digest(scope.tenant, scope.workspace, scope.namespace, chain)


def _scope_of(principal: Principal, ids: Mapping[str, str]) -> Scope:
    """Return the scope in which a turn with these ids is recorded."""
    filled = bound_ids(principal.bounds, OWN_MEMORIES, {field: ids.get(field.value) for field in ScopeField})
    return Scope(principal.tenant, **{**ids, **{field.value: id_ for field, id_ in filled.items()}})
