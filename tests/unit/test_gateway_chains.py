"""The session of a chain at a router: its own note of it until the table has it, then the table's."""

from collections.abc import Sequence
from datetime import datetime
from typing import cast

from deployments.gateway_chains import GatewayChains
from lamina.core.principals import KeyRole, new_principal
from lamina.core.scope import Scope
from lamina.stores.postgres.response_chains import ResponseChains
from lamina.wiring.stores import utc_now


class Table:
    """A table in memory."""

    def __init__(self) -> None:
        self.sessions: dict[str, str] = {}

    async def find(self, scope: Scope, chain: str, now: datetime) -> str | None:
        return self.sessions.get(chain)

    async def put(self, scope: Scope, chains: Sequence[str], now: datetime, made: str | None) -> None:
        self.sessions |= dict.fromkeys(chains, str(scope.session))


async def test_a_router_follows_the_renaming_of_a_session_whose_turn_is_recorded() -> None:
    table = Table()
    chains = GatewayChains(cast("ResponseChains", table))
    principal = new_principal("acme", KeyRole.WRITER, utc_now())
    chains.note(principal, {}, "s", ["resp_1"])
    before = await chains.find(principal, {}, "resp_1")

    await chains.put(principal, {}, "s", ["resp_1"], made="resp_1")
    table.sessions["resp_1"] = "renamed"

    assert (before, await chains.find(principal, {}, "resp_1")) == ("s", "renamed")
