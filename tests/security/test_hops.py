"""Calls of several tenants that travel between processes together: one that fails, fails alone."""

import asyncio
import pickle
from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from deployments.handles import EmbedderHandle, ProjectionHandle, TierHandle, parts_of
from lamina.core.ports import Change, Record
from lamina.core.queries import Query
from lamina.core.scope import Scope
from lamina.core.tiers import Source

TRANSPORT_BYTES = 4 * 1024 * 1024


class Transport:
    """A deployment's handle that refuses messages of more than 4 MiB, as Ray's does, and holds calls up until told."""

    def __init__(self, *, is_open: bool = True) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.go = asyncio.Event()
        if is_open:
            self.go.set()

    def __getattr__(self, method: str) -> Any:
        async def remote(*arguments: Any) -> Any:
            self.calls.append(arguments)
            await self.go.wait()
            answers = [self._answer(item) for item in arguments[0]] if method != "apply" else None
            for message in (arguments, answers):
                if (size := len(pickle.dumps(message))) > TRANSPORT_BYTES:
                    raise ValueError(f"received message larger than max ({size} vs. {TRANSPORT_BYTES}) of {arguments}")
            return answers

        return SimpleNamespace(remote=remote)

    @staticmethod
    def _answer(item: Any) -> Any:
        if isinstance(item, Query):
            return {Source.NOTES_WARM: ("x" * 5_000_000,) if item.scope.tenant == "evil" else (item.scope.tenant,)}
        return [text.upper() for text in item]


def query_of(tenant: str) -> Query:
    return Query(f"a secret of {tenant}", ("secret",), Scope(tenant), limit=10)


async def started(calls: Sequence[Any]) -> list[asyncio.Task[Any]]:
    tasks = [asyncio.create_task(call) for call in calls]
    await asyncio.sleep(0.01)
    return tasks


async def test_a_reply_that_is_too_large_fails_only_the_query_that_it_answers() -> None:
    transport = Transport(is_open=False)
    tier = TierHandle(transport, "notes")  # type: ignore[arg-type]  # plays a handle
    tenants = ["first", "second", "third", "fourth", "acme", "evil", "beta", "evil", "gamma"]
    tasks = await started([tier.search(query_of(tenant)) for tenant in tenants])

    transport.go.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)

    assert max(len(call[0]) for call in transport.calls) > 1
    for tenant, outcome in zip(tenants, outcomes, strict=True):
        if tenant == "evil":
            assert isinstance(outcome, Exception)
        else:
            assert outcome == {Source.NOTES_WARM: (tenant,)}


async def test_a_text_that_is_too_large_fails_only_the_call_that_sends_it() -> None:
    transport = Transport(is_open=False)
    embedder = EmbedderHandle(transport)  # type: ignore[arg-type]  # plays a handle
    texts = ["a", "b", "c", "d", "tea", "x" * 5_000_000, "milk"]
    tasks = await started([embedder._questions.submit((text,)) for text in texts])

    transport.go.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)

    found = [outcome if isinstance(outcome, list) else None for outcome in outcomes]
    assert found == [["A"], ["B"], ["C"], ["D"], ["TEA"], None, ["MILK"]]


def change_of(number: int, chars: int) -> Change[Record]:
    record = Record(
        tenant="acme",
        workspace="w",
        namespace="n",
        user=None,
        session=None,
        tags=(),
        occurred_at=datetime(2026, 3, 1, tzinfo=UTC),
        confidence=1.0,
        texts=("x" * chars,),
        embeddings=(b"\0" * 1536,),
    )
    return Change(UUID(int=number), record)


@pytest.mark.parametrize("chars", [[10] * 256, [400_000] * 40, [3_000_000, 10, 3_000_000, 10, 10]])
async def test_changes_travel_to_an_index_in_parts_that_the_transport_takes(chars: list[int]) -> None:
    transport = Transport()
    projection = ProjectionHandle(transport, "notes")  # type: ignore[arg-type]  # plays a handle
    changes = [change_of(number, count) for number, count in enumerate(chars)]

    await projection.apply(changes)

    assert [change.id.int for call in transport.calls for change in call[1]] == list(range(len(chars)))
    assert max(len(pickle.dumps(call)) for call in transport.calls) < TRANSPORT_BYTES
    assert list(parts_of([], 10)) == []
