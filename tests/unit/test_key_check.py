"""API keys are checked by a look-up that everybody shares: one that hangs must end."""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID, uuid4

import pytest

from deployments.services import KeyCheck
from lamina.core.principals import KeyRole, Principal
from lamina.errors import Unavailable
from lamina.stores.postgres.keys import Keys
from tests.support.virtual_time import in_virtual_time


class KeysOfAFrozenServer(Keys):
    """Stands in for a table that answers the first look-up never, and all others at once."""

    def __init__(self) -> None:
        self._is_frozen = True

    async def find(self, keys: Sequence[str]) -> list[Principal | None]:
        if self._is_frozen:
            self._is_frozen = False
            await asyncio.Event().wait()
        return [Principal(uuid4(), "acme", KeyRole.WRITER) for _ in keys]

    async def note_uses(self, uses: Mapping[UUID, datetime]) -> None:
        """Note none."""


@in_virtual_time
async def test_a_look_up_that_hangs_ends_and_the_next_one_goes_out() -> None:
    check = KeyCheck(KeysOfAFrozenServer(), trust_s=0)
    key = f"lamina_{secrets.token_urlsafe(32)}"

    with pytest.raises(Unavailable, match="keys"):
        await check.check(key)

    assert (await check.check(key)).tenant == "acme"
    await check.close()
