import asyncio
import threading
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lamina.core.memories import Chunk
from lamina.core.ports import ModelIdentity
from lamina.errors import Overloaded, Unavailable
from lamina.models.batching import BatchingEmbedder, checked, embed_chunks, mean_vector
from lamina.models.hashing import HashingModel
from lamina.models.lanes import ModelLanes

SPAN = 10


class Letters:
    """Counts letters into 26 places, ten characters a chunk; it notes its batches and can be held up."""

    identity = ModelIdentity("letters", 26)

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.threads: set[int] = set()
        self.running = threading.Event()
        self.go = threading.Event()
        self.go.set()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.batches.append(list(texts))
        self.threads.add(threading.get_ident())
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


async def test_a_long_text_is_embedded_slice_by_slice_in_turn_with_others() -> None:
    model = Letters()
    embedder = BatchingEmbedder(model, max_items=4)
    model.go.clear()

    long = a_long_text(10)
    calls = [asyncio.create_task(embedder.embed_chunks([text])) for text in ("first", long, "b", "c", "d")]
    await asyncio.to_thread(model.running.wait, 5)
    model.go.set()
    _, (chunks,), *_ = await asyncio.gather(*calls)

    assert [len(batch) for batch in model.batches] == [1, 4, 4, 4, 1]
    assert model.batches[2][:3] == ["b", "c", "d"]
    assert [(chunk.start, chunk.end) for chunk in chunks] == model.spans(long)
    assert chunks == embed_chunks(Letters(), [long])[0]


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
    note = asyncio.create_task(embedder.embed_chunks(["tea"]))
    await asyncio.to_thread(model.running.wait, 5)
    book.cancel()
    model.go.set()
    (chunks,) = await note

    assert len(chunks) == 1
    assert len(model.batches) == 2


@pytest.mark.parametrize(("seconds_per_char", "least", "most"), [(1e-6, 100_000, 10**7), (1e-3, 2_000, 2_000)])
def test_the_size_of_a_batch_follows_the_speed_of_the_model(seconds_per_char: float, least: int, most: int) -> None:
    async def never(texts: Sequence[str]) -> Sequence[bytes]:
        raise AssertionError

    lanes = ModelLanes(never, max_items=64, max_queued=8)
    for _ in range(20):
        lanes._follow_speed(lanes._chars, lanes._chars * seconds_per_char)
    lanes._follow_speed(10, 0.02)

    assert least <= lanes._chars <= most


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

    assert ["tea", "poison", "milk"] in model.batches
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
