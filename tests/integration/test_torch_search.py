"""One search from end to end with torch, over memories that either runtime embedded."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from lamina.core.ports import Model
from lamina.settings.models import SentenceTransformersSettings
from lamina.wiring.stores import build_model
from tests.support.application import Application, running, settings_for

pytestmark = pytest.mark.torch

SAID = {
    "Visitors sign the red book before they enter the signal tower": "which register do guests of lighthouses fill in?",
    "The fog horn sounds twice every ninety seconds": "how often is the warning tone heard in mist?",
    "Lanterns are filled with rapeseed oil in winter": "what fuel do the lamps burn when it is cold?",
    "Das Boot liegt seit Montag am Nordkai": "Wo liegt das Boot?",
}
EMBEDDING = SentenceTransformersSettings(runtime="torch", threads=2)


async def store(app: Application) -> None:
    for content in SAID:
        answer = await app.client().post("/v1/notes", json={"workspace": "tower", "content": content})
        assert answer.is_success, answer.text
    await app.indexed()


async def first_by_meaning(app: Application) -> Mapping[str, str]:
    found = {}
    for content, question in SAID.items():
        answer = await app.client().post("/v1/search", json={"workspace": "tower", "query": question, "explain": True})
        assert answer.is_success, answer.text
        assert set(answer.json()["degraded"]) <= {"graph"}
        found[content] = answer.json()["results"][0]["content"]
    return found


@pytest.mark.parametrize("writer", ["torch", "onnx"])
async def test_a_search_with_torch_finds_by_meaning_what_either_runtime_wrote(
    database: str, tmp_path: Path, minilm: Model, writer: str
) -> None:
    settings = settings_for(database, tmp_path, embedding=EMBEDDING)
    torch = build_model(settings, "cpu")
    async with running(settings, database, torch if writer == "torch" else minilm) as app:
        await store(app)
        tenant, key = app.tenant, app.key

    async with running(settings, database, torch) as app:
        app.tenant, app.key = tenant, key

        assert await first_by_meaning(app) == {content: content for content in SAID}
    assert type(torch).__module__ == "lamina.models.sentence_transformers"
    assert np.abs(torch.encode(list(SAID)) - minilm.encode(list(SAID))).max() < 1e-1
