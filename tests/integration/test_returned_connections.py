import asyncio

import pytest

from lamina.settings.stores import PoolSettings
from lamina.stores.postgres.connection import connect, new_pool, read_rows

ONE = PoolSettings(min_size=0, max_size=1, timeout_s=60)
TURNS_OF_THE_LOOP = 50


async def test_a_connection_is_kept_when_its_user_is_cancelled_while_it_is_given_back(database: str) -> None:
    may_end = asyncio.Event()

    async def use() -> None:
        async with connect(pool):
            await may_end.wait()

    async with new_pool(database, ONE) as pool:
        await read_rows(pool, b"SELECT 1")
        for _ in range(3):
            may_end.clear()
            user = asyncio.create_task(use())
            await turns()
            async with pool._lock:  # As when many give connections back at once.
                may_end.set()
                await turns()
                user.cancel()
                await turns()
            with pytest.raises(asyncio.CancelledError):
                await user

        assert await read_rows(pool, b"SELECT 7 AS seven") == [{"seven": 7}]


async def turns() -> None:
    for _ in range(TURNS_OF_THE_LOOP):
        await asyncio.sleep(0)
