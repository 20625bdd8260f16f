"""Texts that the model refuses together are embedded by parts, with little work and at the price of one try."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from lamina.core.memories import Chunk
from lamina.core.quotas import Resource, counted_spending, spend, spending_tenant
from lamina.errors import InvalidInput, TextRefused
from lamina.ingest.embedding import PROBE, embed_each, embed_in_time

REFUSED = "unspeakable"
LONG = f"an {REFUSED} text " + "of many words " * 10_000
SHORT = [f"word{number}" for number in range(256)]


@dataclass
class Model:
    """Refuses every call with a text that holds this word, and records the calls."""

    calls: list[Sequence[str]] = field(default_factory=list)
    tenants: set[str] = field(default_factory=set)

    async def embed(self, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        spend(Resource.EMBEDDED_TOKENS, sum(map(len, texts)))
        self.tenants.add(spending_tenant())
        self.calls.append(texts)
        if any(REFUSED in text for text in texts):
            raise TextRefused("embedder", "its endpoint answers 413")
        return [(Chunk(0, len(text), text.encode()),) for text in texts]


@pytest.mark.parametrize("place", [0, 100, 255])
async def test_a_long_text_that_is_refused_is_soon_alone_and_counts_once(place: int) -> None:
    model, texts = Model(), [*SHORT[:place], LONG, *SHORT[place + 1 :]]

    with counted_spending("acme") as spending:
        found = await embed_each(model.embed, texts)

    assert [number for number, one in enumerate(found) if isinstance(one, TextRefused)] == [place]
    assert [one[0].embedding for one in found if not isinstance(one, TextRefused)] == [
        text.encode() for text in texts if text != LONG
    ]
    assert len(model.calls) <= 7
    assert sum(LONG in call for call in model.calls) <= 4
    assert spending.amounts == {Resource.EMBEDDED_TOKENS: sum(map(len, texts))}
    assert model.tenants == {"acme"}


@pytest.mark.parametrize("first", [0, 1, 255])
async def test_a_write_embeds_nothing_after_the_first_text_that_is_refused(first: int) -> None:
    model = Model()
    texts = [f"the {REFUSED} {number}" if number >= first else text for number, text in enumerate(SHORT)]

    with pytest.raises(InvalidInput, match=f"the {REFUSED} {first}'"):
        await embed_in_time(model.embed, texts, 60)

    assert len(model.calls) <= 20
    assert [call for call in model.calls if call[0].startswith(PROBE)] == [model.calls[-2]]
