import asyncio

import pytest

from lamina.aio.together import together


async def reply(text: str, turns: int = 0) -> str:
    for _ in range(turns):
        await asyncio.sleep(0)
    return text


@pytest.mark.parametrize("texts", [[], ["a"], ["a", "b", "c"]])
async def test_results_come_in_the_order_of_the_calls(texts: list[str]) -> None:
    assert list(await together([reply(text, len(texts) - place) for place, text in enumerate(texts)])) == texts


async def test_calls_run_at_the_same_time() -> None:
    met = asyncio.Barrier(2)

    async def meet() -> None:
        await met.wait()

    async with asyncio.timeout(60):
        await together([meet(), meet()])
