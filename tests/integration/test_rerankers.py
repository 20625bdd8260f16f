"""Rerankers: a cross-encoder on ONNX Runtime, an endpoint, and a service with either."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from lamina.core.metrics import RERANK_SECONDS, RERANKS, CallOutcome
from lamina.errors import Misconfigured, Unavailable
from lamina.models.hashing import HashingModel
from lamina.models.onnx.cross_encoder import OnnxCrossEncoder
from lamina.models.reranking import BatchingReranker, EndpointReranker
from lamina.models.runtimes import is_torch_installed
from lamina.settings.loading import Settings, load_settings
from lamina.settings.models import CrossEncoderSettings, NoRerankSettings, RerankEndpointSettings
from lamina.stores.postgres.generations import claim_generation
from lamina.wiring.caches import fingerprint
from lamina.wiring.reranking import build_reranker
from tests.integration.test_metrics import Remembering
from tests.support.application import Application, running, settings_for
from tests.support.model_endpoint import ModelEndpoint, serving
from tests.support.small_cross_encoders import make_cross_encoder

SECRET = "the secret of the tenant acme"
QUESTION = "which boat leaks at the stern"
TEXTS = ("harbour fees rose", "the green boat leaks at the stern", "a boat", "船が漏れる", "")


def shared(question: str, text: str) -> float:
    words = question.lower().split()
    return float(sum(words.count(word) for word in text.lower().split()))


def encoder(folder: Path, **changes: Any) -> OnnxCrossEncoder:
    return OnnxCrossEncoder(folder, "cpu", **({"batch_size": 2, "max_length": None, "threads": 1} | changes))


@pytest.mark.parametrize("classes", [1, 2])
@pytest.mark.parametrize("name", ["model.onnx", "onnx/model.onnx", "onnx/quantised.onnx"])
def test_a_cross_encoder_in_a_folder_scores_each_pair_by_its_own_text(tmp_path: Path, classes: int, name: str) -> None:
    model = encoder(make_cross_encoder(tmp_path / "model", classes=classes, name=name))

    assert model.score([(QUESTION, text) for text in TEXTS]) == [shared(QUESTION, text) - 1 for text in TEXTS]
    assert model.score([]) == []


def test_a_pair_longer_than_the_model_is_cut(tmp_path: Path) -> None:
    model = encoder(make_cross_encoder(tmp_path / "model"), max_length=32)

    (long,) = model.score([("boat " * 500, "boat " * 5_000)])

    assert 0 < long < 32 * 32


def test_a_model_of_several_classes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="3 classes, expected 1 or 2"):
        encoder(make_cross_encoder(tmp_path / "model", classes=3)).score([("a", "b")])


@pytest.mark.parametrize("missing", ["tokenizer.json", "onnx/model.onnx"])
def test_a_folder_that_lacks_a_part_names_it_with_the_remedy(tmp_path: Path, missing: str) -> None:
    folder = make_cross_encoder(tmp_path / "model")
    (folder / missing).unlink()

    with pytest.raises(Misconfigured, match=r"has no (ONNX file|tokenizer\.json); export it"):
        encoder(folder)


def test_a_graph_that_cannot_be_read_names_its_file(tmp_path: Path) -> None:
    folder = make_cross_encoder(tmp_path / "model")
    (folder / "onnx" / "model.onnx").write_bytes(b"no graph")

    with pytest.raises(Misconfigured, match=r"cannot read .*model\.onnx of rerank\.model"):
        encoder(folder)


def test_the_settings_choose_the_reranker(tmp_path: Path) -> None:
    folder = str(make_cross_encoder(tmp_path / "model"))
    rerank = CrossEncoderSettings(model=folder)

    assert build_reranker(Settings(), "cpu") is None
    assert isinstance(build_reranker(Settings(rerank=rerank), "cpu"), BatchingReranker)
    with pytest.raises(Misconfigured, match=r"rerank\.model no/such is neither a folder nor in the local cache"):
        build_reranker(Settings(rerank=CrossEncoderSettings(model="no/such", runtime="onnx")), "cpu")


@pytest.mark.skipif(is_torch_installed(), reason="says what is missing where torch is")
def test_without_torch_a_model_that_runs_on_it_names_the_extra(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"lamina-memory\[gpu\]"):
        build_reranker(Settings(rerank=CrossEncoderSettings(model=str(tmp_path), runtime="torch")), "cpu")


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "cross_encoder"},
        {"kind": "cross_encoder", "model": ""},
        {"kind": "cross_encoder", "model": "m", "pool": 1},
        {"kind": "endpoint"},
        {"kind": "endpoint", "url": "api.jina.ai"},
        {"kind": "endpoint", "url": "http://x", "form": "other"},
        {"kind": "endpoint", "url": "http://x", "deadline_s": 0},
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(rerank=wrong)  # type: ignore[arg-type]


def ranked(path: str, body: Any) -> Any:
    """Answer in the form of the call: probabilities best first, or logits in any order."""
    if "texts" in body:
        return [{"index": n, "score": 2 * shared(body["query"], text) - 5} for n, text in enumerate(body["texts"])]
    scores = [(shared(body["query"], text) / 10, n) for n, text in enumerate(body["documents"])]
    return {"results": [{"index": n, "relevance_score": score} for score, n in sorted(scores, reverse=True)]}


@pytest.fixture
def endpoint() -> Iterator[ModelEndpoint]:
    with serving(ModelEndpoint(ranked)) as served:
        yield served


@pytest.mark.parametrize(
    ("form", "texts", "more"),
    [
        ("cohere", "documents", {"model": "rerank-v3.5", "top_n": 5}),
        ("jina", "documents", {"model": "rerank-v3.5", "top_n": 5}),
        ("tei", "texts", {"truncate": True}),
    ],
)
async def test_an_endpoint_of_each_form_is_asked_as_it_wants(
    endpoint: ModelEndpoint, form: Any, texts: str, more: dict[str, Any]
) -> None:
    settings = RerankEndpointSettings.model_validate(
        {"url": f"{endpoint.url}/", "form": form, "model": "rerank-v3.5", "api_key": "k", "timeout_s": 60}
    )

    scores = await EndpointReranker(settings).score(QUESTION, TEXTS)

    assert sorted(range(5), key=lambda place: -scores[place])[:2] == [1, 2]
    assert endpoint.asked == [{"query": QUESTION, texts: list(TEXTS), **more}]
    assert endpoint.paths == ["/v1/rerank"]
    assert endpoint.keys == ["Bearer k"]


def test_the_key_comes_from_a_file_and_is_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("sk-123\n")
    monkeypatch.setenv("LAMINA_RERANK__KIND", "endpoint")
    monkeypatch.setenv("LAMINA_RERANK__URL", "https://api.jina.ai/v1")
    monkeypatch.setenv("LAMINA_RERANK__API_KEY_FILE", str(tmp_path / "key"))

    settings = load_settings()

    assert isinstance(settings.rerank, RerankEndpointSettings)
    assert settings.rerank.api_key is not None
    assert settings.rerank.api_key.get_secret_value() == "sk-123"
    assert "sk-123" not in repr(settings) + settings.model_dump_json()


NOTES = (
    "harbour fees rose in spring for every boat at the stern of the quay",
    "Ann asked which of the two harbours has a stern pilot and which has none",
    "the green boat leaks at the stern",
    "a boat which is red has a new mast",
)


async def answers(settings: Settings, database: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a search's answer and a context's, over some notes."""
    async with running(settings, database, HashingModel(), reranker=build_reranker(settings, "cpu")) as app:
        client = app.client()
        for note in NOTES:
            await client.post("/v1/notes", json={"content": note})
        await app.indexed()
        body = {"query": QUESTION, "limit": 2, "explain": True}
        found = (await client.post("/v1/search", json=body)).json()
        block = (await client.post("/v1/context", json={"query": QUESTION, "limit": 2})).json()
        return found, block


async def test_a_service_answers_in_the_order_of_a_cross_encoder(database: str, tmp_path: Path) -> None:
    rerank = CrossEncoderSettings(model=str(make_cross_encoder(tmp_path / "model")), pool=20, deadline_s=60)

    found, block = await answers(settings_for(database, tmp_path, rerank=rerank), database)

    first, second = found["results"]
    assert first["content"] == "the green boat leaks at the stern"
    assert first["score"] == pytest.approx(1 / (1 + 2.718281828 ** -(shared(QUESTION, first["content"]) - 1)))
    assert first["score"] >= second["score"]
    explained = first["explain"]["reranker"]
    assert explained["rank"] == 1
    assert set(explained["raw"]) == {"raw", "fused_rank", "fused_score"}
    assert block["results"][0]["content"] == first["content"]
    assert "reranker" not in found["degraded"]


async def test_a_service_whose_reranker_fails_answers_in_the_first_order(
    database: str, tmp_path: Path, endpoint: ModelEndpoint
) -> None:
    endpoint.failing += [(500, {}, {"error": SECRET})] * 9
    rerank = RerankEndpointSettings(url=endpoint.url, deadline_s=60, timeout_s=60)

    failed, block = await answers(settings_for(database, tmp_path, rerank=rerank), database)
    async with running(settings_for(database, tmp_path), database, HashingModel()) as app:
        await app.indexed()
        plain = (await app.client().post("/v1/search", json={"query": QUESTION, "limit": 2})).json()

    assert [hit["id"] for hit in failed["results"]] == [hit["id"] for hit in plain["results"]]
    assert "reranker" in failed["degraded"]
    assert "reranker" in block["degraded"]
    assert "its endpoint answers 500" in failed["reasons"]["reranker"]
    assert SECRET not in str(failed)
    assert endpoint.asked


async def test_a_late_endpoint_is_not_waited_for(database: str, tmp_path: Path, endpoint: ModelEndpoint) -> None:
    endpoint.delay_s = 1.0
    rerank = RerankEndpointSettings(url=endpoint.url, deadline_s=0.05)

    found, _ = await answers(settings_for(database, tmp_path, rerank=rerank), database)

    assert found["results"]
    assert "reranker" in found["degraded"]


@pytest.mark.parametrize("by_default", [True, False])
async def test_a_call_says_whether_the_reranker_orders_its_hits(
    database: str, tmp_path: Path, *, by_default: bool
) -> None:
    model = str(make_cross_encoder(tmp_path / "model"))
    rerank = CrossEncoderSettings(model=model, deadline_s=60, by_default=by_default)
    settings, meter = settings_for(database, tmp_path, rerank=rerank), Remembering()
    async with running(
        settings, database, HashingModel(), reranker=build_reranker(settings, "cpu"), meter=meter
    ) as app:
        client = app.client()
        for note in NOTES:
            await client.post("/v1/notes", json={"content": note})
        await app.indexed()

        async def is_reranked(path: str, **chosen: Any) -> bool:
            answer = await client.post(path, json={"query": QUESTION, "explain": True, **chosen})
            assert answer.is_success, answer.text
            return all("reranker" in hit["explain"] for hit in answer.json()["results"])

        for path in ("/v1/search", "/v1/context"):
            asked = [
                await is_reranked(path, **chosen) for chosen in ({}, *({"rerank": x} for x in (True, False, model)))
            ]
            assert asked == [by_default, True, False, True]
        refused = await client.post("/v1/search", json={"query": QUESTION, "rerank": "another"})
        ready = (await client.get("/readyz")).json()

    assert refused.status_code == 422
    assert model in refused.json()["detail"]
    assert ready["reranker"] == "ok"
    outcomes = {labels["outcome"] for _, labels in meter.of(RERANKS)}
    assert outcomes == {CallOutcome.OK}
    assert len(meter.of(RERANK_SECONDS)) == len(meter.of(RERANKS))


async def test_after_its_failures_it_is_paused_and_the_service_is_ready(
    database: str, tmp_path: Path, endpoint: ModelEndpoint
) -> None:
    endpoint.failing += [(500, {}, {})] * 9
    rerank = RerankEndpointSettings(url=endpoint.url, deadline_s=60, timeout_s=60, failures=2, pause_s=3600)
    settings, meter = settings_for(database, tmp_path, rerank=rerank), Remembering()
    async with running(
        settings, database, HashingModel(), reranker=build_reranker(settings, "cpu"), meter=meter
    ) as app:
        client, states = app.client(), []
        await client.post("/v1/notes", json={"content": NOTES[2]})
        await app.indexed()
        for _ in range(3):
            states.append((await client.get("/readyz")).json()["reranker"])
            await client.post("/v1/search", json={"query": QUESTION, "cache": False})
        ready = (await client.get("/readyz")).json()

    assert (*states, ready["reranker"]) == ("ok", "ok", "paused", "paused")
    assert ready["ready"]
    # The third did not go out, and took no time.
    failed = CallOutcome.FAILED
    assert [labels["outcome"] for _, labels in meter.of(RERANKS)] == [failed, failed, CallOutcome.REFUSED]
    assert len(meter.of(RERANK_SECONDS)) == 2


async def test_once_its_pause_is_over_it_is_not_called_paused_though_nobody_searched(
    database: str, tmp_path: Path, endpoint: ModelEndpoint
) -> None:
    endpoint.failing += [(500, {}, {})] * 9
    rerank = RerankEndpointSettings(url=endpoint.url, deadline_s=60, timeout_s=60, failures=1, pause_s=1e-9)
    settings = settings_for(database, tmp_path, rerank=rerank)
    async with running(settings, database, HashingModel(), reranker=build_reranker(settings, "cpu")) as app:
        client = app.client()
        await client.post("/v1/notes", json={"content": NOTES[2]})
        await app.indexed()
        found = (await client.post("/v1/search", json={"query": QUESTION, "cache": False})).json()
        ready = (await client.get("/readyz")).json()

    assert "reranker" in found["degraded"]
    assert ready["reranker"] == "ok"


async def test_where_there_is_none_a_call_that_asks_for_one_is_refused(application: Application) -> None:
    client = application.client()
    answers = [
        await client.post("/v1/search", json={"query": QUESTION, "rerank": chosen}) for chosen in (True, "a", False)
    ]

    assert [answer.status_code for answer in answers] == [422, 422, 200]
    assert "none is configured" in answers[0].json()["detail"]
    assert (await client.get("/readyz")).json()["reranker"] is None


def test_answers_of_another_order_are_cached_apart(database: str, tmp_path: Path) -> None:
    generation = claim_generation(database, HashingModel().identity)
    chosen = [NoRerankSettings(), *(RerankEndpointSettings(url="http://x", pool=pool) for pool in (20, 50))]

    prints = {fingerprint(settings_for(database, tmp_path, rerank=rerank), generation) for rerank in chosen}

    assert len(prints) == 3
