"""A model behind an endpoint of OpenAI's form, played by a server on this machine."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from pydantic import ValidationError

from lamina.errors import Misconfigured, ModelLimit, TextRefused, Unavailable
from lamina.models import retrying
from lamina.models.batching import BatchingEmbedder
from lamina.models.endpoint import EndpointModel
from lamina.models.hashing import HashingModel
from lamina.models.packaged import model_path
from lamina.models.prefixes import Prefixes, endpoint_identity, prefixes_of
from lamina.settings.loading import Settings, load_settings
from lamina.settings.models import PACKAGED_MODEL, EndpointSettings, SentenceTransformersSettings
from lamina.wiring.stores import build_model, model_identity, utc_now
from tests.support.application import running, settings_for
from tests.support.model_endpoint import ModelEndpoint, Reply, serving

DIMENSIONS = 96
SECRET = "the secret of the tenant acme"


def embeddings(_: str, body: Any) -> Any:
    """Answer as OpenAI does, out of order, and with vectors that are not of length 1."""
    rows = 3 * HashingModel(body.get("dimensions", DIMENSIONS)).encode(body["input"])
    data = [{"object": "embedding", "index": place, "embedding": row.tolist()} for place, row in enumerate(rows)]
    return {"object": "list", "data": data[::-1], "model": body["model"], "usage": {"total_tokens": 7 * len(rows)}}


@pytest.fixture
def endpoint() -> Iterator[ModelEndpoint]:
    with serving(ModelEndpoint(embeddings)) as served:
        yield served


def chosen(endpoint: ModelEndpoint, **changes: Any) -> EndpointSettings:
    given = {"url": endpoint.url, "model": "text-embedding-3-small", "dimensions": DIMENSIONS, "backoff_s": 0.001}
    return EndpointSettings(**(given | changes))


def model_of(endpoint: ModelEndpoint, **changes: Any) -> EndpointModel:
    return EndpointModel(chosen(endpoint, **changes), utc_now)


def test_each_text_has_its_own_unit_vector_whatever_the_order_of_the_answer(endpoint: ModelEndpoint) -> None:
    texts = ["green boats", "красный трамвай", "漁船が港に入る", "🚲 bicycle"]

    rows = model_of(endpoint, api_key="k").encode(texts)

    assert np.allclose(rows, HashingModel(DIMENSIONS).encode(texts), atol=1e-6)
    assert rows.dtype == np.float32
    assert endpoint.paths == ["/v1/embeddings"]
    assert endpoint.keys == ["Bearer k"]
    assert endpoint.asked == [{"model": "text-embedding-3-small", "input": texts, "encoding_format": "float"}]


def test_a_model_that_shortens_its_vectors_is_asked_for_their_length(endpoint: ModelEndpoint) -> None:
    rows = model_of(endpoint, dimensions=48, sends_dimensions=True, url=f"{endpoint.url}/").encode(["tea"])

    assert rows.shape == (1, 48)
    assert endpoint.asked[0]["dimensions"] == 48
    assert endpoint.paths == ["/v1/embeddings"]
    assert endpoint.keys == [None]


def test_calls_hold_no_more_texts_or_tokens_than_are_set(endpoint: ModelEndpoint) -> None:
    texts = [f"text {number} " + "word " * (40 if number % 3 == 0 else 2) for number in range(20)]

    rows = model_of(endpoint, batch_texts=4, batch_tokens=128).encode(texts)

    assert [text for body in endpoint.asked for text in body["input"]] == texts
    assert all(len(body["input"]) <= 4 for body in endpoint.asked)
    sizes = [sum(1 + len(text) // 3 for text in body["input"]) for body in endpoint.asked]
    assert all(size <= 128 or len(body["input"]) == 1 for size, body in zip(sizes, endpoint.asked, strict=True))
    assert np.allclose(rows, HashingModel(DIMENSIONS).encode(texts), atol=1e-6)


def test_a_blank_text_has_a_vector_without_being_sent(endpoint: ModelEndpoint) -> None:
    rows = model_of(endpoint).encode(["", "tea", " \n"])

    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert endpoint.asked[0]["input"] == ["tea"]
    assert model_of(endpoint).encode([""]).shape == (1, DIMENSIONS)


@pytest.mark.parametrize(
    "text", ["a word " * 3_000, "漁船" * 4_000, "x" * 9_000, "🚲" * 3_000, "é\n\n" * 2_000, "tea", ""]
)
def test_a_long_text_of_any_script_is_cut_into_chunks_that_cover_it(endpoint: ModelEndpoint, text: str) -> None:
    model = model_of(endpoint, text_tokens=200, document_prefix="passage: ")

    spans = model.spans(text)

    assert "".join(text[start:end] for start, end in spans) == text
    assert all(model.lengths([f"passage: {text[start:end]}"])[0] <= 200 + 1 for start, end in spans)


@pytest.mark.parametrize(
    "failure",
    [
        (429, {"Retry-After": "0"}, {"error": {"message": SECRET}}),
        (503, {}, SECRET.encode()),
        (500, {"Retry-After": "soon"}, b""),
        (408, {"Retry-After": format_datetime(datetime.now(UTC) - timedelta(hours=1))}, b""),
    ],
)
def test_what_may_pass_is_tried_again(endpoint: ModelEndpoint, failure: Reply) -> None:
    endpoint.failing += [failure, failure]

    rows = model_of(endpoint).encode(["tea"])

    assert rows.shape == (1, DIMENSIONS)
    assert len(endpoint.asked) == 3


@pytest.mark.parametrize(
    ("failure", "said", "tries"),
    [
        ((401, {}, {"error": SECRET}), "its endpoint answers 401, it refuses the key", 1),
        ((400, {}, {"error": SECRET}), "its endpoint answers 400", 1),
        ((404, {}, SECRET.encode()), "its endpoint answers 404, it knows no such address or model", 1),
        ((302, {"Location": "http://127.0.0.1:1/"}, b""), "its endpoint answers 302", 1),
        ((429, {"Retry-After": "3600"}, {"error": SECRET}), "its endpoint answers 429, its limit is reached", 1),
        ((500, {}, SECRET.encode()), "its endpoint answers 500", 3),
        ((200, {}, SECRET.encode()), "its endpoint answers something that is no JSON", 1),
        ((200, {}, {"error": SECRET}), "its endpoint's answer is no list of embeddings", 1),
        ((200, {}, [SECRET]), "its endpoint's answer is no list of embeddings", 1),
        ((200, {}, {"data": [{"index": 0, "embedding": SECRET}]}), "no list of embeddings", 1),
        ((200, {}, {"data": [{"index": 0, "embedding": [0.5] * 8}]}), "vectors of 8 numbers for 1 texts", 1),
        ((200, {}, {"data": [{"index": 0, "embedding": [0.0] * 96}]}), "a vector without a direction", 1),
        ((200, {}, {"data": [{"index": 0, "embedding": [1e999] * 96}]}), "a vector without a direction", 1),
        ((200, {}, {"data": [{"index": 1, "embedding": [1.0] * 96}]}), "no list of embeddings", 1),
    ],
)
def test_a_bad_answer_names_the_fault_and_tells_nothing_of_its_text(
    endpoint: ModelEndpoint, failure: Reply, said: str, tries: int
) -> None:
    endpoint.failing += [failure] * 9

    with pytest.raises(Unavailable) as refusal:
        model_of(endpoint, max_retries=2).encode(["tea"])

    assert said in str(refusal.value)
    assert "embedder is not available" in str(refusal.value)
    assert "secret" not in str(refusal.value)
    assert len(endpoint.asked) == tries


@pytest.mark.parametrize("status", [400, 413, 415, 422, 451])
def test_a_refusal_of_the_texts_is_told_from_other_failures(endpoint: ModelEndpoint, status: int) -> None:
    endpoint.failing.append((status, {}, b""))

    with pytest.raises(TextRefused, match=f"answers {status}"):
        model_of(endpoint).encode(["tea"])


@pytest.mark.parametrize("status", [302, 401, 402, 403, 404, 405, 407, 408, 409, 425, 429, 500, 503])
def test_what_any_text_would_meet_is_no_refusal_of_these(endpoint: ModelEndpoint, status: int) -> None:
    endpoint.failing += [(status, {}, b"")] * 9

    with pytest.raises(Unavailable, match=f"answers {status}") as raised:
        model_of(endpoint).encode(["tea"])

    assert type(raised.value) is (ModelLimit if status == 429 else Unavailable)


def test_a_limit_that_lasts_is_told_with_its_time(endpoint: ModelEndpoint) -> None:
    endpoint.failing.append((429, {"Retry-After": "3600"}, b""))

    with pytest.raises(Unavailable) as refusal:
        model_of(endpoint).encode(["tea"])

    assert refusal.value.retry_after_s == 3600


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1", "http://no-such-host.invalid/v1"])
def test_an_endpoint_that_is_not_there_is_named(url: str) -> None:
    settings = EndpointSettings(url=url, model="m", dimensions=8, max_retries=1, backoff_s=0.001)

    with pytest.raises(Unavailable, match="its endpoint did not answer"):
        EndpointModel(settings, utc_now).encode(["tea"])


def test_an_answer_that_never_comes_is_given_up(endpoint: ModelEndpoint) -> None:
    endpoint.delay_s = 0.6

    with pytest.raises(Unavailable, match="did not answer"):
        model_of(endpoint, timeout_s=0.05, deadline_s=0.1).encode(["tea"])


def test_the_budget_of_a_day_counts_what_the_endpoint_says_and_begins_anew(endpoint: ModelEndpoint) -> None:
    now = [datetime(2026, 3, 1, 23, tzinfo=UTC)]
    model = EndpointModel(chosen(endpoint, daily_tokens=20), lambda: now[0])
    text = "four words of tea"

    model.encode([text])
    model.encode([text])
    with pytest.raises(ModelLimit, match=r"embedding\.daily_tokens") as refusal:
        model.encode([text, text])
    now[0] += timedelta(hours=2)
    model.encode([text, text])

    assert refusal.value.retry_after_s == 3_600
    assert len(endpoint.asked) == 3


@pytest.mark.parametrize("failure", [(429, {}, b""), (401, {}, b""), (503, {}, b"")])
def test_an_endpoint_that_refuses_spends_none_of_the_days_tokens(endpoint: ModelEndpoint, failure: Reply) -> None:
    model = model_of(endpoint, daily_tokens=20, max_retries=0)
    endpoint.failing += [failure] * 5

    for _ in range(5):
        with pytest.raises(Unavailable, match="its endpoint answers"):
            model.encode(["four words of tea"])

    assert model.encode(["four words of tea"]).shape == (1, DIMENSIONS)


def test_an_endpoint_that_may_have_worked_spends_the_days_tokens(endpoint: ModelEndpoint) -> None:
    model = model_of(endpoint, daily_tokens=10, max_retries=0)
    endpoint.failing.append((200, {}, b"no JSON"))

    with pytest.raises(Unavailable, match="no JSON"):
        model.encode(["four words of tea"])
    with pytest.raises(Unavailable, match=r"embedding\.daily_tokens"):
        model.encode(["four words of tea"])


def test_an_answer_that_comes_byte_by_byte_is_given_up(endpoint: ModelEndpoint) -> None:
    def drip() -> Iterator[bytes]:
        for _ in range(2_000):
            time.sleep(0.01)
            yield b" "

    endpoint.failing.append((200, {}, drip()))

    with pytest.raises(Unavailable, match="did not answer in time"):
        model_of(endpoint, timeout_s=0.2, max_retries=0).encode(["tea"])


def test_an_answer_without_an_end_is_given_up(endpoint: ModelEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying, "MOST_ANSWER_BYTES", 1_000)
    endpoint.failing.append((200, {}, b" " * 100_000))

    with pytest.raises(Unavailable, match="DecodingError"):
        model_of(endpoint, max_retries=0).encode(["tea"])


async def test_questions_and_texts_carry_their_prefixes_and_are_remembered_apart(endpoint: ModelEndpoint) -> None:
    settings = chosen(endpoint, query_prefix="query: ", document_prefix="passage: ")
    embedder = BatchingEmbedder(EndpointModel(settings, utc_now), prefixes=prefixes_of(settings))

    [(written,)] = await embedder.embed_chunks(["green boats"], "acme")
    [(asked,)] = await embedder.embed_questions(["green boats"], "acme")
    [(again,)] = await embedder.embed_chunks(["green boats"], "acme")

    assert [body["input"] for body in endpoint.asked] == [["passage: green boats"], ["query: green boats"]]
    assert written.embedding == again.embedding != asked.embedding
    assert (written.start, written.end) == (0, len("green boats"))


def test_other_prefixes_make_another_model(endpoint: ModelEndpoint) -> None:
    plain, prefixed = chosen(endpoint), chosen(endpoint, query_prefix="query: ")

    assert endpoint_identity(plain).model == "text-embedding-3-small"
    assert endpoint_identity(prefixed).model == "text-embedding-3-small [query: |]"
    assert model_of(endpoint, query_prefix="query: ").identity == endpoint_identity(prefixed)


@pytest.mark.parametrize(
    "wrong",
    [
        {"dimensions": 4_001},
        {"dimensions": 0},
        {"url": "api.openai.com/v1"},
        {"url": "https:///v1"},
        {"model": ""},
        {"query_prefix": "x" * 600},
        {"text_tokens": 10},
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EndpointSettings(**({"url": "https://api.openai.com/v1", "model": "m", "dimensions": 1_536} | wrong))


def test_the_key_comes_from_a_file_and_is_never_shown(
    tmp_path: Path, endpoint: ModelEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text("sk-123\n")
    for name, value in {
        "KIND": "endpoint",
        "URL": endpoint.url,
        "MODEL": "m",
        "DIMENSIONS": str(DIMENSIONS),
        "API_KEY_FILE": str(tmp_path / "key"),
    }.items():
        monkeypatch.setenv(f"LAMINA_EMBEDDING__{name}", value)

    settings = load_settings()
    build_model(settings, "cpu").encode(["tea"])

    assert endpoint.keys == ["Bearer sk-123"]
    assert "sk-123" not in repr(settings)
    assert "sk-123" not in settings.model_dump_json()
    assert model_identity(settings).dimension == DIMENSIONS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose description alone is read."""
    copied = tmp_path / "model"
    copied.mkdir()
    for file in Path(model_path(PACKAGED_MODEL)).iterdir():
        if (file.is_file() and file.name != "config_sentence_transformers.json") or file.is_dir():
            (copied / file.name).symlink_to(file)
    return copied


@pytest.mark.parametrize(
    ("prompts", "expected"),
    [
        ({"query": "query: ", "document": "passage: "}, Prefixes("query: ", "passage: ")),
        ({"query": "Q: ", "passage": "P: ", "classification": "C: "}, Prefixes("Q: ", "P: ")),
        ({"query": "Instruct: find\nQuery: ", "document": ""}, Prefixes("Instruct: find\nQuery: ", "")),
    ],
)
def test_a_model_names_its_own_prefixes(folder: Path, prompts: dict[str, str], expected: Prefixes) -> None:
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))

    own = SentenceTransformersSettings(model=str(folder), own_prefixes=True)

    assert prefixes_of(own) == expected
    assert model_identity(Settings(embedding=own)).model == f"{folder}{expected.suffix}"
    assert prefixes_of(own.model_copy(update={"own_prefixes": False})) == Prefixes()


@pytest.mark.parametrize(
    ("described", "said"),
    [
        ({"prompts": {"search": "s: "}}, r"names search; set embedding\.query_prefix"),
        ({}, "names none"),
        ({"prompts": {"query": "q: "}, "default_prompt_name": "query"}, "puts one prompt before every text"),
        (None, "cannot be read"),
    ],
)
def test_a_model_without_prefixes_of_its_own_is_refused_with_the_remedy(
    folder: Path, described: dict[str, Any] | None, said: str
) -> None:
    if described is not None:
        (folder / "config_sentence_transformers.json").write_text(json.dumps(described))

    with pytest.raises(Misconfigured, match=said):
        prefixes_of(SentenceTransformersSettings(model=str(folder), own_prefixes=True))


def test_given_prefixes_and_the_models_own_exclude_each_other() -> None:
    with pytest.raises(ValidationError, match="leave one of them out"):
        SentenceTransformersSettings(own_prefixes=True, query_prefix="query: ")


async def test_a_service_over_an_endpoint_writes_and_finds_and_outlives_its_outage(
    database: str, tmp_path: Path, endpoint: ModelEndpoint
) -> None:
    embedding = chosen(endpoint, query_prefix="query: ", document_prefix="passage: ", max_retries=0)
    settings = settings_for(database, tmp_path, embedding=embedding)
    with ExitStack() as closing:
        model = EndpointModel(embedding, utc_now)
        closing.callback(model._client.close)
        async with running(settings, database, model) as app:
            client = app.client()
            await client.post("/v1/notes", json={"content": "the green boat leaks at the stern"})
            await app.indexed()
            found = (await client.post("/v1/search", json={"query": "which boat leaks"})).json()
            endpoint.failing += [(500, {}, {"error": SECRET})] * 20
            without = await client.post("/v1/search", json={"query": "the boat at the stern"})
            refused = await client.post("/v1/notes", json={"content": "the red boat"})

    assert found["results"][0]["content"] == "the green boat leaks at the stern"
    assert without.json()["results"][0]["content"] == "the green boat leaks at the stern"
    assert "embedder" in without.json()["degraded"]
    assert refused.status_code == 503
    assert SECRET not in without.text + refused.text
    with psycopg.connect(database) as connection:
        row = connection.execute("SELECT vector_dims(embedding) FROM note_chunks").fetchone()
    assert row == (DIMENSIONS,)
