import pickle
from copy import copy
from uuid import UUID

import pytest

from lamina.core.ids import id_of_number, id_of_text
from lamina.settings.stores import PoolSettings
from lamina.stores.postgres.connection import connect, new_pool, read_rows, read_tuples

ONE = PoolSettings(min_size=0, max_size=1, timeout_s=60)
FEW = [UUID(int=number) for number in (0x48CEC59E_5508_431B_8A84_36946BD16364, 2**64, 3**80)]
NIL, LAST = UUID(int=0), UUID(int=2**128 - 1)


@pytest.mark.parametrize(
    "ids", [[], [NIL], [LAST], FEW, [None], [NIL, None], [None, *FEW], [[NIL, LAST], FEW[:2]]], ids=str
)
async def test_lists_of_ids_come_back_as_they_were_sent(database: str, ids: list[object]) -> None:
    async with new_pool(database, ONE) as pool:
        parameters = {"ids": ids, "others": FEW, "one": LAST}
        statement = b"SELECT %(ids)s::uuid[], %(others)s::uuid[], %(one)s::uuid, array_length(%(ids)s::uuid[], 1)"
        assert await read_tuples(pool, statement, parameters) == [(ids, FEW, LAST, len(ids) or None)]


async def test_an_id_that_was_read_is_like_every_other(database: str) -> None:
    async with new_pool(database, ONE) as pool:
        async with connect(pool) as connection:
            await connection.execute("CREATE TEMP TABLE seen (id uuid)")
            await connection.execute("INSERT INTO seen SELECT unnest(%s::uuid[])", (FEW,))
        (row,) = await read_rows(pool, b"SELECT id, id::text AS text FROM seen WHERE id = %(id)s", {"id": FEW[1]})

    for found in (row["id"], id_of_text(row["text"]), id_of_number(FEW[1].int)):
        assert (found, hash(found), str(found), repr(found)) == (FEW[1], hash(FEW[1]), row["text"], repr(FEW[1]))
        assert found.is_safe is FEW[1].is_safe
        assert found in dict.fromkeys(FEW)
        assert pickle.loads(pickle.dumps(found)) == copy(found) == FEW[1]  # noqa: S301 - of our own


@pytest.mark.parametrize("id_", [NIL, LAST, *FEW], ids=str)
def test_an_id_is_read_from_its_text(id_: UUID) -> None:
    assert id_of_text(str(id_)) == id_
