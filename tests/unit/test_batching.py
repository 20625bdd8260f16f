import asyncio
import os
import threading
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lamina.aio.priority import NICENESS
from lamina.core.memories import Chunk
from lamina.core.ports import ModelIdentity
from lamina.core.quotas import Resource, counted_spending
from lamina.errors import Overloaded, Unavailable
from lamina.models.batching import (
    MOST_NAMES,
    NAMES_S,
    BatchingEmbedder,
    checked,
    embed_chunks,
    mean_vector,
    question_part,
)
from lamina.models.hashing import HashingModel
from lamina.models.lanes import LEAST_TOKENS, QUIET_S, ModelLanes

SPAN = 10


class Letters:
    """Counts letters into 26 places, ten characters a chunk; it notes its batches and can be held up."""

    identity = ModelIdentity("letters", 26)
    pass_tokens = 4_096

    def __init__(self, at_once: int = 1) -> None:
        self.passes_at_once = at_once
        self.batches: list[list[str]] = []
        self.threads: set[int] = set()
        self.niceness: dict[str, int] = {}
        self.running = threading.Event()
        self.go = threading.Event()
        self.go.set()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.batches.append(list(texts))
        self.threads.add(threading.get_ident())
        self.niceness |= dict.fromkeys(texts, os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        self.running.set()
        self.go.wait(5)
        rows = np.full((len(texts), 26), 0.01, dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for letter in text:
                row[ord(letter) % 26] += 1
        unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        return [(start, min(start + SPAN, len(text))) for start in range(0, max(1, len(text)), SPAN)]

    def lengths(self, texts: Sequence[str]) -> Sequence[int]:
        return [1 + len(text) for text in texts]


class OneTooFew(Letters):
    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return super().encode(texts)[:-1]


class Broken(Letters):
    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = super().encode(texts)
        rows[0, 0] = np.nan
        return rows


class FailsOn(Letters):
    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = super().encode(texts)
        if "poison" in texts:
            raise RuntimeError("out of memory")
        return rows


@given(st.lists(st.text("abcd ", max_size=45), min_size=1, max_size=5))
def test_chunks_cover_their_text_in_order(texts: list[str]) -> None:
    embedded = embed_chunks(Letters(), texts)

    for text, chunks in zip(texts, embedded, strict=True):
        assert "".join(text[chunk.start : chunk.end] for chunk in chunks) == text


@given(st.lists(st.text("abcd ", max_size=25), min_size=1, max_size=5))
def test_every_chunk_has_the_vector_of_its_own_stretch(texts: list[str]) -> None:
    model = Letters()

    embedded = embed_chunks(model, texts)

    for text, chunks in zip(texts, embedded, strict=True):
        for chunk in chunks:
            (expected,) = model.encode([text[chunk.start : chunk.end]])
            assert np.array_equal(chunk.vector(), expected)


def test_equal_texts_are_embedded_once() -> None:
    model = Letters()

    first, other, again = embed_chunks(model, ["tea", "milk", "tea"])

    assert model.batches == [["tea", "milk"]]
    assert first == again
    assert first != other


def test_equal_chunks_of_different_texts_are_embedded_once() -> None:
    model = Letters()

    embed_chunks(model, ["a" * SPAN + "b", "a" * SPAN + "c"])

    assert model.batches == [["a" * SPAN, "b", "c"]]


@pytest.mark.parametrize("shape", [(2, 4), (4, 4), (3, 5), (0, 4), (12,), (3, 4, 1)])
def test_rows_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    rows = np.ones(shape, dtype=np.float32)

    with pytest.raises(Unavailable, match="shape") as refused:
        checked(rows, 3, 4)

    assert refused.value.part == "embedder"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_is_refused(value: float) -> None:
    rows = np.ones((3, 4), dtype=np.float32)
    rows[1, 2] = value

    with pytest.raises(Unavailable, match="finite"):
        checked(rows, 3, 4)


def test_rows_of_another_precision_become_float32() -> None:
    rows = checked(np.ones((3, 4), dtype=np.float16), 3, 4)

    assert rows.dtype == np.float32


@pytest.mark.parametrize("model", [OneTooFew(), Broken()])
async def test_a_model_that_returns_something_else_is_not_available(model: Letters) -> None:
    embedder = BatchingEmbedder(model)

    with pytest.raises(Unavailable):
        await embedder.embed(["a", "b", "c"])


async def test_a_text_becomes_one_unit_row_of_float32() -> None:
    rows = await BatchingEmbedder(Letters()).embed(["tea", "a text of several chunks", ""])

    assert rows.shape == (3, 26)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)


async def test_no_texts_become_no_rows_without_asking_the_model() -> None:
    model = Letters()
    embedder = BatchingEmbedder(model)

    assert (await embedder.embed([])).shape == (0, 26)
    assert list(await embedder.embed_chunks([])) == []
    assert model.batches == []


async def test_the_model_works_off_the_event_loop() -> None:
    model = Letters()

    await BatchingEmbedder(model).embed(["tea"])

    assert threading.get_ident() not in model.threads


async def test_what_is_written_stands_back_behind_questions_for_the_processors() -> None:
    model = Letters()
    embedder = BatchingEmbedder(model)
    usual = os.getpriority(os.PRIO_PROCESS, 0)

    await embedder.embed_chunks(["written"])
    await embedder.embed_questions(["asked"])

    assert model.niceness == {"written": min(usual + NICENESS, 19), "asked": usual}


async def test_texts_that_arrive_while_a_batch_runs_make_up_the_next_one_each_with_its_own_answer() -> None:
    model = Letters()
    embedder = BatchingEmbedder(model)
    model.go.clear()

    calls = [asyncio.create_task(embedder.embed([text])) for text in ("aaa", "bbb", "ccc", "bbb")]
    await asyncio.to_thread(model.running.wait, 5)
    model.go.set()
    rows = [row for (row,) in await asyncio.gather(*calls)]

    assert model.batches == [["aaa"], ["bbb", "ccc"]]
    assert [int(np.argmax(row)) for row in rows] == [ord(letter) % 26 for letter in "abcb"]


def a_long_text(chunks: int) -> str:
    return "".join(f"{chr(ord('a') + place % 26)}{place:09}" for place in range(chunks))


def a_book(chunks: int) -> str:
    return "".join(f"{chr(ord('a') + place % 26)}{chr(ord('a') + place // 26 % 26)}y ships " for place in range(chunks))


async def test_a_long_text_is_embedded_slice_by_slice_in_turn_with_others() -> None:
    model = Letters()
    embedder = BatchingEmbedder(model, max_items=4)
    model.go.clear()

    long = a_book(120)
    calls = [asyncio.create_task(embedder.embed_chunks([text])) for text in ("first", long, "b", "c", "d")]
    await asyncio.to_thread(model.running.wait, 5)
    model.go.set()
    _, (chunks,), *_ = await asyncio.gather(*calls)

    order = [text for batch in model.batches for text in batch]
    assert max(order.index(short) for short in "bcd") < 40
    assert max(map(len, model.batches)) == 4
    assert [(chunk.start, chunk.end) for chunk in chunks] == model.spans(long)
    assert chunks == embed_chunks(Letters(), [long])[0]


async def test_what_is_embedded_together_is_of_one_length() -> None:
    model = Letters()
    embedder = BatchingEmbedder(model, max_items=4)
    model.go.clear()

    texts = ["first", *(letter * (9 if place % 2 else 2) for place, letter in enumerate("abcdefgh"))]
    calls = [asyncio.create_task(embedder.embed_chunks([text])) for text in texts]
    await asyncio.to_thread(model.running.wait, 5)
    model.go.set()
    await asyncio.gather(*calls)

    assert [sorted({len(text) for text in batch}) for batch in model.batches] == [[5], [2], [9]]


async def test_a_question_waits_for_one_batch_of_a_long_text_at_most() -> None:
    model = Letters()
    embedder = BatchingEmbedder(model, max_items=4)
    model.go.clear()

    book = asyncio.create_task(embedder.embed_chunks([a_long_text(40), a_long_text(4)]))
    await asyncio.to_thread(model.running.wait, 5)
    question = asyncio.create_task(embedder.embed(["who?"]))
    await asyncio.sleep(0)
    model.go.set()
    await question
    batches_before_the_answer = len(model.batches)
    await book

    assert model.batches[1] == ["who?"]
    assert batches_before_the_answer < 5
    assert len(model.batches) == 11


async def test_questions_that_never_end_do_not_starve_what_is_written() -> None:
    model = Letters()
    embedder = BatchingEmbedder(model, max_items=1)
    model.go.clear()

    questions = [asyncio.create_task(embedder.embed([f"{number}?"])) for number in range(30)]
    write = asyncio.create_task(embedder.embed_chunks(["a note", "another"]))
    await asyncio.to_thread(model.running.wait, 5)
    model.go.set()
    await asyncio.gather(write, *questions)

    order = [text for (text,) in model.batches]
    assert order.index("a note") < 8
    assert order.index("another") < 14


async def test_a_caller_that_gives_up_takes_nobody_with_it() -> None:
    model = Letters()
    embedder = BatchingEmbedder(model, max_items=2)
    model.go.clear()

    book = asyncio.create_task(embedder.embed_chunks([a_long_text(30)]))
    await asyncio.to_thread(model.running.wait, 5)
    note = asyncio.create_task(embedder.embed_chunks(["tea"]))
    await asyncio.sleep(0)
    book.cancel()
    model.go.set()
    (chunks,) = await note

    assert len(chunks) == 1
    assert len(model.batches) == 2


@pytest.mark.parametrize(
    ("seconds_per_token", "expected"), [(1e-6, 16_384), (1e-4, 1_000), (1e-3, LEAST_TOKENS), (10, LEAST_TOKENS)]
)
async def test_the_size_of_a_pass_follows_the_speed_of_the_model(seconds_per_token: float, expected: int) -> None:
    now = 0.0
    passes: list[int] = []

    async def encode(texts: Sequence[str], tokens: Sequence[int], is_question: bool) -> Sequence[bytes]:
        nonlocal now
        now += sum(tokens) * seconds_per_token
        passes.append(sum(tokens))
        return [b""] * len(texts)

    lanes = ModelLanes(encode, most_texts=10_000, most_tokens=16_384, clock=lambda: now)
    await lanes.submit(["x"] * 20_000, [10] * 20_000, tenant="a", is_question=False)

    assert max(passes[-8:]) == pytest.approx(expected, rel=0.1)


async def test_questions_are_embedded_between_the_passes_of_a_plan() -> None:
    model = Letters()
    model.pass_tokens = 44
    embedder = BatchingEmbedder(model)
    model.go.clear()

    book = asyncio.create_task(embedder.embed_chunks([a_long_text(16)]))
    await asyncio.to_thread(model.running.wait, 5)
    question = asyncio.create_task(embedder.embed(["who?"]))
    await asyncio.sleep(0)
    model.go.set()
    await asyncio.gather(book, question)

    assert [len(batch) for batch in model.batches] == [4, 1, 4, 4, 4]
    assert model.batches[1] == ["who?"]


async def test_passes_run_side_by_side_and_questions_keep_one_place() -> None:
    most, running = 0, 0
    go = asyncio.Event()

    async def encode(texts: Sequence[str], tokens: Sequence[int], is_question: bool) -> Sequence[bytes]:
        nonlocal most, running
        running += 1
        most = max(most, running)
        await go.wait()
        running -= 1
        return [text.encode() for text in texts]

    now = 0.0
    lanes = ModelLanes(encode, most_texts=1, most_tokens=100, at_once=3, clock=lambda: now)
    write = asyncio.create_task(lanes.submit(["a", "b", "c", "d", "e"], [1] * 5, tenant="t", is_question=False))
    await asyncio.sleep(0.01)
    alone = running
    go.set()
    await write
    go.clear()

    question = asyncio.create_task(lanes.submit(["?"], [1], tenant="t", is_question=True))
    await asyncio.sleep(0)
    write = asyncio.create_task(lanes.submit(["a", "b", "c", "d", "e"], [1] * 5, tenant="t", is_question=False))
    await asyncio.sleep(0.01)
    beside = running
    go.set()
    found = await asyncio.gather(question, write)

    assert (alone, beside) == (3, 3)
    assert found == [[b"?"], [b"a", b"b", b"c", b"d", b"e"]]

    go.clear()
    write = asyncio.create_task(lanes.submit(["f", "g", "h"], [1] * 3, tenant="t", is_question=False))
    await asyncio.sleep(0.01)
    after_a_question = running
    now = QUIET_S
    go.set()
    await write

    assert after_a_question == 2
    assert most == 3


@pytest.mark.parametrize(("tokens", "expected"), [(10, [1, 5]), (60, [1, 1, 1, 1, 1, 1])])
async def test_questions_gather_beside_the_pass_of_another_until_they_fill_one(
    tokens: int, expected: list[int]
) -> None:
    sizes, go = list[int](), asyncio.Event()

    async def encode(texts: Sequence[str], _: Sequence[int], is_question: bool) -> Sequence[bytes]:
        sizes.append(len(texts))
        await go.wait()
        return [text.encode() for text in texts]

    lanes = ModelLanes(encode, most_texts=64, most_tokens=60, at_once=2)
    calls = [
        asyncio.create_task(lanes.submit([f"{number}?"], [tokens], tenant="t", is_question=True)) for number in range(6)
    ]
    await asyncio.sleep(0.01)
    at_once = len(sizes)
    go.set()
    found = await asyncio.gather(*calls)

    assert at_once == (2 if tokens == 60 else 1)
    assert sizes == expected
    assert found == [[f"{number}?".encode()] for number in range(6)]


async def test_questions_of_one_tenant_leave_the_last_place_to_another_that_asked_lately() -> None:
    running, go, now = list[str](), asyncio.Event(), 0.0

    async def encode(texts: Sequence[str], _: Sequence[int], is_question: bool) -> Sequence[bytes]:
        running.extend(texts)
        await go.wait()
        return [b""] * len(texts)

    async def embed_all() -> None:
        go.set()
        await asyncio.gather(*calls)
        go.clear()
        running.clear()
        calls.clear()

    async def ask(text: str, tenant: str, tokens: int, pieces: int = 1) -> None:
        asked = lanes.submit([text] * pieces, [tokens] * pieces, tenant=tenant, is_question=True)
        calls.append(asyncio.create_task(asked))
        for _ in range(5):
            await asyncio.sleep(0)

    lanes = ModelLanes(encode, most_texts=64, most_tokens=250, at_once=2, clock=lambda: now)
    calls: list[asyncio.Task[list[bytes]]] = []
    await ask("who?", "other", 10)
    await embed_all()

    await ask("long", "greedy", 250, pieces=6)
    beside = list(running)
    await ask("where?", "other", 10)
    with_another = list(running)
    await embed_all()
    await ask("long", "greedy", 250)
    await ask("when?", "other", 10)
    beside_the_last = list(running)
    await embed_all()
    now += QUIET_S
    await ask("long", "greedy", 250, pieces=6)
    alone = list(running)
    await embed_all()

    assert beside == ["long"]
    assert with_another == ["long", "where?"]
    assert beside_the_last == ["long", "when?"]
    assert alone == ["long", "long"]


async def test_a_tenant_waits_for_no_book_of_another_tenant() -> None:
    model = Letters()
    embedder = BatchingEmbedder(model, max_items=4)
    model.go.clear()

    books = [asyncio.create_task(embedder.embed_chunks([f"{number} {a_book(200)}"], "greedy")) for number in range(20)]
    await asyncio.to_thread(model.running.wait, 5)
    note = asyncio.create_task(embedder.embed_chunks(["tea"], "other"))
    await asyncio.sleep(0)
    model.go.set()
    await note
    passes_before = len(model.batches)
    for book in books:
        book.cancel()
    await asyncio.gather(*books, return_exceptions=True)

    assert passes_before <= 4


async def test_one_small_call_after_another_does_not_hold_up_what_is_planned() -> None:
    order: list[str] = []

    async def encode(texts: Sequence[str], _: Sequence[int], is_question: bool) -> Sequence[bytes]:
        order.extend(texts)
        await asyncio.sleep(0)
        return [b""] * len(texts)

    lanes = ModelLanes(encode, most_texts=1, most_tokens=256)
    book = asyncio.create_task(lanes.submit(["page"] * 100, [200] * 100, tenant="book", is_question=False))

    async def send_notes() -> None:
        while not book.done():
            await lanes.submit(["note"], [200], tenant="notes", is_question=False)

    await asyncio.wait_for(asyncio.gather(book, send_notes()), 60)

    assert 20 <= order.count("note") <= 140


async def test_a_question_waits_for_one_pass_of_another_tenants_longest_questions() -> None:
    model = Letters()
    embedder = BatchingEmbedder(model, max_items=32)
    model.go.clear()

    longest = [asyncio.create_task(embedder.embed_questions([a_book(500)], "greedy")) for _ in range(50)]
    await asyncio.to_thread(model.running.wait, 5)
    question = asyncio.create_task(embedder.embed_questions(["who?"], "other"))
    await asyncio.sleep(0)
    model.go.set()
    await question
    for call in longest:
        call.cancel()
    await asyncio.gather(*longest, return_exceptions=True)

    assert "who?" in model.batches[1]


async def test_the_tenant_of_the_request_waits_where_none_is_named() -> None:
    embedder = BatchingEmbedder(Letters())

    with counted_spending("harbour"):
        await embedder.embed_chunks(["tea"])

    assert list(embedder._names) == [("harbour", "tea")]


@pytest.mark.parametrize(("tenant", "counted"), [(None, 2), ("harbour", 0)])
async def test_tokens_are_counted_once_where_the_caller_in_the_same_process_names_its_tenant(
    tenant: str | None, counted: int
) -> None:
    with counted_spending("harbour") as spending:
        await BatchingEmbedder(Letters()).embed_chunks(["seven.."], tenant)

    assert spending.amounts.get(Resource.EMBEDDED_TOKENS, 0) == counted


@pytest.mark.parametrize("length", [1, 7_999, 8_000, 8_001, 100_000])
def test_of_a_very_long_question_the_beginning_and_the_end_are_embedded(length: int) -> None:
    question = "".join(chr(ord("a") + place % 26) for place in range(length))

    part = question_part(question)

    assert len(part) == min(length, 8_000)
    assert part[:3_000] == question[:3_000]
    assert part[-3_000:] == question[-3_000:]
    assert question_part(part) == part


async def test_the_longest_question_takes_few_of_the_models_passes() -> None:
    model = Letters()

    await BatchingEmbedder(model).embed([a_book(9_000)])

    assert sum(len(text) for batch in model.batches for text in batch) <= 8_000


async def test_a_name_is_embedded_once_for_a_tenant() -> None:
    model = Letters()
    embedder = BatchingEmbedder(model)

    (first,) = await embedder.embed_chunks(["Ann"], "a")
    (again, new) = await embedder.embed_chunks(["Ann", "Bob"], "a")
    (question,) = await embedder.embed_questions(["Ann"], "a")
    (of_another,) = await embedder.embed_chunks(["Ann"], "b")

    assert first == again == question == of_another
    assert new != first
    assert model.batches == [["Ann"], ["Bob"], ["Ann"]]


async def test_names_are_forgotten_by_number_and_age_and_long_texts_are_not_remembered() -> None:
    embedder = BatchingEmbedder(Letters())

    await embedder.embed_chunks([f"name {number}" for number in range(MOST_NAMES + 50)], "a")
    await embedder.embed_chunks([a_long_text(1), "x" * 9], "a")
    await BatchingEmbedder(model := HashingModel()).embed_chunks(["word " * 100], "a")

    assert len(embedder._names) == MOST_NAMES
    assert embedder._names.ttl == NAMES_S <= 3_600
    assert model.lengths(["word " * 100]) == [126]


async def test_what_is_no_language_is_neither_cut_nor_embedded() -> None:
    model = Letters()
    image = f"data:image/png;base64,{'iVBORw0KGgo' * 5_000}"
    (around, alone, short) = await BatchingEmbedder(model).embed_chunks(
        [f"Look at this. {image} Is it the barometer?", image[30:], image[:40]]
    )

    assert sum(map(len, model.batches)) < 20
    assert around[0].start == 0
    assert around[-1].end == len(image) + 35
    assert [(chunk.start, chunk.end) for chunk in alone] == [(0, 100)]
    assert short[-1].end == 40


async def test_a_failing_batch_fails_alone() -> None:
    embedder = BatchingEmbedder(FailsOn())

    with pytest.raises(RuntimeError, match="out of memory"):
        await embedder.embed(["poison"])

    assert (await embedder.embed(["tea"])).shape == (1, 26)


async def test_a_batch_that_fails_fails_only_the_call_whose_text_it_is() -> None:
    model = FailsOn()
    embedder = BatchingEmbedder(model)
    model.go.clear()
    calls = [asyncio.create_task(embedder.embed([text])) for text in ("first", "tea", "poison", "milk")]
    await asyncio.to_thread(model.running.wait, 5)
    model.go.set()

    outcomes = await asyncio.gather(*calls, return_exceptions=True)

    assert sorted(model.batches[1]) == ["milk", "poison", "tea"]
    assert [isinstance(outcome, RuntimeError) for outcome in outcomes] == [False, False, True, False]


async def test_beyond_its_bound_a_call_is_refused() -> None:
    model = Letters()
    embedder = BatchingEmbedder(model, max_queued=1)
    model.go.clear()
    calls = [asyncio.create_task(embedder.embed([text])) for text in ("a", "b")]
    await asyncio.to_thread(model.running.wait, 5)

    with pytest.raises(Overloaded):
        await embedder.embed(["c"])

    model.go.set()
    assert len(await asyncio.gather(*calls)) == 2


def test_the_mean_of_one_chunk_is_its_vector() -> None:
    (chunks,) = embed_chunks(Letters(), ["tea"])

    assert np.array_equal(mean_vector(chunks), chunks[0].vector())


def test_the_mean_of_chunks_is_a_unit_vector_between_them() -> None:
    east, north = (np.asarray(vector, dtype=np.float32) for vector in ([1, 0], [0, 1]))

    mean = mean_vector([Chunk(0, 1, east.tobytes()), Chunk(1, 2, north.tobytes())])

    assert np.allclose(mean, [np.sqrt(0.5), np.sqrt(0.5)])


def test_chunks_that_cancel_out_still_have_a_unit_mean() -> None:
    east = np.asarray([1, 0], dtype=np.float32)

    mean = mean_vector([Chunk(0, 1, east.tobytes()), Chunk(1, 2, (-east).tobytes())])

    assert np.linalg.norm(mean) == 1


@given(st.lists(st.text(max_size=30), max_size=4))
def test_hashed_words_make_unit_rows(texts: list[str]) -> None:
    model = HashingModel(16)

    rows = model.encode(texts)

    assert rows.shape == (len(texts), 16)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)


def test_texts_that_share_words_are_near_and_others_are_not() -> None:
    same, shared, other = HashingModel().encode(["green tea", "TEA, green!", "purple elephants dance"])

    assert same @ shared == pytest.approx(1)
    assert abs(same @ other) < 0.5


def test_the_length_of_hashed_vectors_is_part_of_the_models_identity() -> None:
    assert HashingModel(8).identity != HashingModel(16).identity
    assert HashingModel(8).identity == HashingModel(8).identity


async def test_sixteen_questions_at_a_time_are_few_full_passes_and_one_alone_is_one_at_once() -> None:
    passes: list[int] = []

    async def encode(texts: Sequence[str], tokens: Sequence[int], is_question: bool) -> Sequence[bytes]:
        passes.append(len(texts))
        await asyncio.sleep(0)
        return [b""] * len(texts)

    lanes = ModelLanes(encode, most_texts=64, most_tokens=512, at_once=2, clock=lambda: 0.0)

    async def ask() -> None:
        await lanes.submit(["where?"], [12], tenant="a", is_question=True)

    await ask()
    await asyncio.gather(*(ask() for _ in range(16)))
    await asyncio.gather(*(ask() for _ in range(16)))

    assert passes == [1, 1, 15, 8, 8]


async def test_what_is_written_does_not_take_the_place_of_questions_that_wait_for_more() -> None:
    passes: list[tuple[str, ...]] = []

    async def encode(texts: Sequence[str], tokens: Sequence[int], is_question: bool) -> Sequence[bytes]:
        passes.append(tuple(texts))
        await asyncio.sleep(0)
        return [b""] * len(texts)

    lanes = ModelLanes(encode, most_texts=64, most_tokens=512, clock=lambda: 0.0)

    async def submit(text: str, *, is_question: bool) -> None:
        await lanes.submit([text], [12], tenant="a", is_question=is_question)

    await asyncio.gather(*(submit(f"{number}?", is_question=True) for number in range(16)))
    passes.clear()
    await asyncio.gather(submit("who?", is_question=True), submit("a note", is_question=False))

    assert passes == [("who?",), ("a note",)]


async def test_a_call_that_was_given_up_is_not_embedded_alone_where_its_pass_failed() -> None:
    seen, has_begun, goes_on = list[list[str]](), asyncio.Event(), asyncio.Event()

    async def encode(pieces: Sequence[str], tokens: Sequence[int], is_question: bool) -> list[bytes]:
        seen.append(list(pieces))
        if pieces == ["busy"]:
            has_begun.set()
            await goes_on.wait()
        if len(pieces) > 1:
            raise Unavailable("embedder", "it is away")
        if pieces == ["a"]:
            lost.cancel()
            await asyncio.gather(lost, return_exceptions=True)
        return [b"" for _ in pieces]

    lanes = ModelLanes(encode, most_texts=64, most_tokens=256)
    busy = asyncio.create_task(lanes.submit(["busy"], [1], tenant="t", is_question=False))
    await has_begun.wait()
    first, lost, last = (
        asyncio.create_task(lanes.submit([text], [1], tenant="t", is_question=False)) for text in ("a", "b", "c")
    )
    await asyncio.sleep(0)
    goes_on.set()
    await asyncio.gather(busy, first, last)

    assert seen == [["busy"], ["a", "b", "c"], ["a"], ["c"]]
