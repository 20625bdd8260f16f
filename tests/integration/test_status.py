"""The service says how it runs its embedding model."""

from dataclasses import replace
from pathlib import Path

import pytest

from lamina.core.ports import Model, ModelReport
from lamina.core.principals import KeyRole
from lamina.models.hashing import HashingModel
from tests.support.application import running, settings_for


async def test_the_status_tells_the_runtime_and_that_the_graph_was_checked(
    database: str, tmp_path: Path, minilm: Model
) -> None:
    async with running(settings_for(database, tmp_path), database, minilm, follow=False) as app:
        answer = await app.client().get("/v1/status")

    assert answer.json()["model"] == {
        "model": "all-MiniLM-L6-v2",
        "dimension": 384,
        "runtime": "onnx",
        "precision": "float32",
        "device": "CPUExecutionProvider",
        "checked": "recorded vectors",
        "may_be_mixed": True,
    }


async def test_the_status_needs_a_key(database: str, tmp_path: Path) -> None:
    async with running(settings_for(database, tmp_path), database, HashingModel(), follow=False) as app:
        assert (await app.client("wrong").get("/v1/status")).status_code == 401


async def test_an_embedder_that_does_not_answer_is_unavailable(database: str, tmp_path: Path) -> None:
    async with running(settings_for(database, tmp_path), database, HashingModel(), follow=False) as app:
        object.__setattr__(app.services, "report_model", _never)
        answer = await app.client().get("/v1/status")

    assert answer.status_code == 503
    assert "embedder is not available: no answer within" in answer.json()["detail"]


async def _never() -> None:
    raise TimeoutError


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("/srv/models/our-minilm", "our-minilm"),
        ("../models/our-minilm", "our-minilm"),
        ("~/our-minilm", "our-minilm"),
        ("a/b/our-minilm", "our-minilm"),
        (r"C:\models\our-minilm", "our-minilm"),
        ("sentence-transformers/all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"),
        ("all-MiniLM-L6-v2", "all-MiniLM-L6-v2"),
    ],
)
async def test_only_an_admin_sees_the_folder_of_a_model(database: str, tmp_path: Path, name: str, shown: str) -> None:
    model = HashingModel()

    async def report() -> ModelReport:
        return replace(model.report, model=name)

    async with running(settings_for(database, tmp_path), database, model, follow=False) as app:
        object.__setattr__(app.services, "report_model", report)
        answers = [
            await app.client(app.new_key(app.tenant, role)).get("/v1/status")
            for role in (KeyRole.READER, KeyRole.WRITER, KeyRole.ADMIN)
        ]

    assert [answer.json()["model"]["model"] for answer in answers] == [shown, shown, name]
