"""Field cases 42, 43, 45, 46 and 47: scores, times, models."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray

from lamina.core.ports import ModelIdentity
from lamina.errors import Misconfigured
from lamina.models.hashing import HashingModel
from lamina.stores.postgres.generations import claim_generation
from tests.support.application import Application, running, settings_for

SUBJECTS = (
    "The quarterly budget review moved to Thursday afternoon in the small meeting room",
    "Grandmother's plum cake needs butter, cinnamon and twelve ripe plums",
    "The telescope mount was aligned on Polaris before the clouds came in",
    "Our replication slot filled the disk because nobody consumed the changes",
)


@pytest.mark.parametrize("subject", SUBJECTS)
async def test_the_identical_text_is_first_with_a_score_near_one_and_others_are_far_below(
    semantic: Application, subject: str
) -> None:
    client = semantic.client()
    await client.post("/v1/notes/batch", json={"notes": list(SUBJECTS)})
    messages = [{"content": text, "ref": str(place)} for place, text in enumerate(SUBJECTS)]
    await client.post("/v1/turns", json={"session": "s", "messages": messages})
    await semantic.indexed()

    hits = (await client.post("/v1/search", json={"query": subject, "explain": True})).json()["results"]

    assert {hit["tier"] for hit in hits[:2]} == {"notes", "sessions"}
    assert [hit["content"] for hit in hits[:2]] == [subject, subject]
    assert [hit["score"] for hit in hits[:2]] == pytest.approx([1.0, 1.0])
    assert all(0 <= hit["score"] <= 0.6 for hit in hits[2:])
    assert sorted((hit["score"] for hit in hits), reverse=True) == [hit["score"] for hit in hits]
    for hit in hits:
        for source, place in hit["explain"].items():
            assert 0 <= place["score"] <= 1, source
            if source == "graph":
                continue  # A path tells how things hang together, not how alike two texts are.
            assert hit["content"] != subject or place["score"] > 0.9, source
            assert hit["content"] == subject or place["score"] < 0.5, source


@pytest.mark.parametrize("query", ["qwertz zzz", "asdf jkl", "xqzv wpfk"])
async def test_a_nonsense_query_scores_below_the_threshold(semantic: Application, query: str) -> None:
    client = semantic.client()
    await client.post("/v1/notes/batch", json={"notes": list(SUBJECTS)})
    turn = {"session": "s", "messages": [{"content": text} for text in SUBJECTS]}
    await client.post("/v1/turns", json=turn)
    await semantic.indexed()

    hits = (await client.post("/v1/search", json={"query": query})).json()["results"]

    assert all(hit["score"] < 0.5 for hit in hits)


async def test_times_with_and_without_offset_sort_and_filter_as_the_same_clock(application: Application) -> None:
    client = application.client()
    written = {
        "naive": "2026-03-01T10:00:00",
        "zulu": "2026-03-01T09:30:00Z",
        "kolkata": "2026-03-01T15:45:00+05:30",
        "new york": "2026-03-01T04:00:00-05:00",
    }
    for name, moment in written.items():
        body = {"content": f"meeting {name}", "event_at": moment}
        assert (await client.post("/v1/notes", json=body)).status_code == 201
    await application.indexed()

    listed = (await client.get("/v1/notes")).json()["notes"]
    window = {"since": "2026-03-01T14:45:00+05:30", "until": "2026-03-01T10:10:00"}
    filtered = (await client.get("/v1/notes", params=window)).json()["notes"]
    found = (await client.post("/v1/search", json={"query": "meeting", **window})).json()["results"]

    assert [note["content"] for note in listed] == [
        "meeting kolkata",
        "meeting naive",
        "meeting zulu",
        "meeting new york",
    ]
    assert [note["event_at"] for note in listed][:2] == ["2026-03-01T10:15:00Z", "2026-03-01T10:00:00Z"]
    assert [note["content"] for note in filtered] == ["meeting naive", "meeting zulu"]
    assert {hit["content"] for hit in found} == {"meeting naive", "meeting zulu"}


async def test_the_servers_time_zone_changes_nothing(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "TZ", "Asia/Kolkata")
    time.tzset()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {_name(database)} SET TimeZone = 'Asia/Kolkata'".encode())
    try:
        async with running(settings_for(database, tmp_path), database, HashingModel()) as app:
            client = app.client()
            await client.post("/v1/notes", json={"content": "noon", "event_at": "2026-03-01T12:00:00"})

            note = (await client.get("/v1/notes", params={"since": "2026-03-01T12:00:00Z"})).json()["notes"][0]
    finally:
        monkeypatch.undo()
        time.tzset()

    assert note["event_at"] == "2026-03-01T12:00:00Z"


async def test_a_window_that_ends_before_it_starts_is_refused(application: Application) -> None:
    window = {"since": "2026-03-02T00:00:00Z", "until": "2026-03-01T00:00:00Z"}

    answer = await application.client().post("/v1/search", json={"query": "x", **window})

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "until"


@pytest.mark.parametrize(
    ("identity", "expected"),
    [
        (ModelIdentity("large", 768), "the stores hold vectors of hashing-384; they cannot be compared; set embedding"),
        (ModelIdentity("larger", 4096), "larger makes vectors of 4096 dimensions, the indexes of Postgres take 4000"),
        (ModelIdentity("other", 384), "the stores hold vectors of hashing-384; they cannot be compared; set embedding"),
    ],
)
def test_another_model_is_refused_with_the_remedy(database: str, identity: ModelIdentity, expected: str) -> None:
    claim_generation(database, HashingModel().identity)

    with pytest.raises(Misconfigured, match=r"embedding\.model") as refusal:
        claim_generation(database, identity)

    assert expected in str(refusal.value)


class ShortModel(HashingModel):
    """Loses the last vector of every batch of several texts."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = super().encode(texts)
        return rows[:-1] if len(texts) > 1 else rows


async def test_an_embedder_that_loses_a_vector_is_an_error_and_stores_nothing(database: str, tmp_path: Path) -> None:
    async with running(settings_for(database, tmp_path), database, ShortModel()) as app:
        client = app.client()

        batch = await client.post("/v1/notes/batch", json={"notes": ["a", "b", "c"]})
        turn = await client.post("/v1/turns", json={"session": "s", "messages": [{"content": "x"}, {"content": "y"}]})

        assert [batch.status_code, turn.status_code] == [503, 503]
        assert "shape (2, 384) for (3, 384)" in batch.json()["detail"]
        assert (await client.get("/v1/notes")).json()["notes"] == []
        assert (await client.get("/v1/sessions/s/messages")).json()["messages"] == []


def _name(url: str) -> str:
    return url.split("/")[3].split("?", maxsplit=1)[0]
