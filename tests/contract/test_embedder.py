"""What every embedding model promises, and the embedder over it."""

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from lamina.core.ports import Model
from lamina.models.batching import BatchingEmbedder, embed_chunks
from lamina.models.hashing import HashingModel
from lamina.models.sentence_transformers import SentenceTransformerModel
from lamina.settings.models import SentenceTransformersSettings
from lamina.text.words import words

LENGTH = 100_000
EVERY = 1_000
TEXTS = (
    "We chose Postgres because it is boring and proven.",
    "The cat sleeps on the warm windowsill all day.",
    "мой кот любит рыбу",
    "今日は成語しりとりをした",
    "tea",
)


@pytest.fixture(params=["hashing", "minilm", pytest.param("minilm_torch", marks=pytest.mark.torch)])
def model(request: pytest.FixtureRequest) -> Model:
    found: Model = HashingModel() if request.param == "hashing" else request.getfixturevalue(request.param)
    return found


def marked_text() -> tuple[str, list[str]]:
    """A text of 100 000 characters that nothing repeats, and the markers that stand a thousand characters apart."""
    body = " ".join(f"Sentence {number} tells of item {number * 7} in room {number * 13}." for number in range(2_500))
    text = body[:LENGTH]
    markers = [f" marker{number:03} " for number in range(LENGTH // EVERY)]
    for number, marker in enumerate(markers):
        start = number * EVERY + EVERY // 3
        text = text[:start] + marker + text[start + len(marker) :]
    return text, [marker.strip() for marker in markers]


def pieces(model: Model, text: str) -> list[str]:
    return [text[start:end] for start, end in model.spans(text)]


def test_every_text_becomes_one_unit_row_of_float32(model: Model) -> None:
    rows = model.encode(TEXTS)

    assert rows.shape == (len(TEXTS), model.identity.dimension)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-4)


def test_the_vectors_are_as_long_as_the_stores_hold_them_and_normalised(model: Model) -> None:
    assert model.identity.dimension == 384
    assert model.identity.normalised


def test_the_same_texts_have_the_same_vectors_again(model: Model) -> None:
    assert np.array_equal(model.encode(TEXTS), model.encode(TEXTS))


def test_the_rows_are_in_the_order_of_the_texts_whatever_travels_with_them(model: Model) -> None:
    together = model.encode(TEXTS)
    backwards = model.encode(TEXTS[::-1])[::-1]
    alone = np.concatenate([model.encode([text]) for text in TEXTS])

    assert np.allclose(together, backwards, atol=1e-4)
    assert np.allclose(together, alone, atol=1e-4)


@pytest.mark.parametrize("text", TEXTS)
def test_the_identical_text_is_as_near_as_can_be_and_an_unrelated_one_is_not(model: Model, text: str) -> None:
    one, same, other = model.encode([text, text, "Quarterly revenue of the steel industry"])

    assert one @ same == pytest.approx(1, abs=1e-4)
    assert one @ other < 0.5


@pytest.mark.parametrize(
    "texts", [("мой кот", "שלום", "🎉"), ("мой кот", "твой пёс"), ("שלום", "תודה"), ("成語", "猫")]
)
def test_a_text_of_any_script_reaches_the_model_as_it_is_written(model: Model, texts: Sequence[str]) -> None:
    rows = model.encode(texts)

    similarities = rows @ rows.T - np.eye(len(texts))
    assert similarities.max() < 0.99


@pytest.mark.parametrize("text", ["", "🎉", " ", "?!", "<|endoftext|>", "[CLS] [SEP] [MASK]"])
def test_a_text_of_no_words_still_has_a_unit_vector(model: Model, text: str) -> None:
    (row,) = model.encode([text])

    assert np.linalg.norm(row) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("text", [*TEXTS, ""])
def test_a_short_text_is_one_chunk(model: Model, text: str) -> None:
    assert list(model.spans(text)) == [(0, len(text))]


def test_a_long_text_is_cut_into_chunks_that_need_no_further_cut(model: Model) -> None:
    text, _ = marked_text()

    chunks = pieces(model, text)

    assert len(text) == LENGTH
    assert len(chunks) > 50
    assert all(list(model.spans(chunk)) == [(0, len(chunk))] for chunk in chunks)


def test_the_chunks_of_a_long_text_are_in_order_and_do_not_overlap(model: Model) -> None:
    text, _ = marked_text()

    spans = list(model.spans(text))

    ends = [0, *(end for _, end in spans)]
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(before <= start for before, (start, _) in zip(ends, spans, strict=False))


def test_the_chunks_of_a_long_text_cover_a_marker_in_each_thousand_characters(model: Model) -> None:
    text, markers = marked_text()

    chunks = pieces(model, text)

    assert len(markers) == 100
    assert [marker for marker in markers if not any(marker in chunk for chunk in chunks)] == []


def test_the_chunks_of_a_long_text_cover_every_word_whole(model: Model) -> None:
    text, _ = marked_text()

    assert [word for chunk in pieces(model, text) for word in words(chunk)] == words(text)


@pytest.mark.parametrize(
    "text", ["成語しりとりをした" * 500, "x" * 10_000, "a b\n" * 5_000, "🎉" * 5_000, "word" + " " * 9_000]
)
def test_a_long_text_without_sentences_is_covered_to_its_last_character(model: Model, text: str) -> None:
    chunks = pieces(model, text)

    assert "".join("".join(chunks).split()) == "".join(text.split())


def test_what_stands_at_the_end_of_a_long_text_changes_its_last_vector(model: Model) -> None:
    text, _ = marked_text()
    text = text[: LENGTH // 10]

    plain, changed = embed_chunks(model, [text, f"{text[:-40]} and then the zebra escaped from the zoo."])

    assert plain[0] == changed[0]
    assert plain[-1].vector() @ changed[-1].vector() < 0.999


async def test_the_embedder_gives_each_text_its_own_chunks_and_row(model: Model) -> None:
    embedder = BatchingEmbedder(model)
    long = marked_text()[0][: LENGTH // 10]

    rows = await embedder.embed([TEXTS[0], long, TEXTS[1]])
    chunks = await embedder.embed_chunks([TEXTS[0], long, TEXTS[1]])

    assert rows.shape == (3, 384)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-4)
    assert np.allclose(rows[[0, 2]], model.encode([TEXTS[0], TEXTS[1]]), atol=1e-4)
    assert [len(found) for found in chunks] == [1, len(model.spans(long)), 1]


def test_a_length_is_told_for_each_text_and_no_chunk_is_longer_than_a_pass(model: Model) -> None:
    text, _ = marked_text()
    chunks = pieces(model, text[: LENGTH // 10])

    short, long = model.lengths(["tea", "tea and toast with marmalade and butter"])

    assert 1 <= short < long
    assert all(1 <= length <= model.pass_tokens for length in model.lengths([*TEXTS, "", *chunks]))
    assert sum(model.lengths(chunks)) > len(chunks) * 30
    assert model.passes_at_once >= 1


async def test_texts_of_tenants_that_are_embedded_together_each_have_their_own_vector(model: Model) -> None:
    embedder = BatchingEmbedder(model)
    texts = [f"{text} {'and so on, ' * (number % 7)}{number}" for number in range(8) for text in TEXTS]

    calls = [embedder.embed_chunks([text], f"tenant {number % 3}") for number, text in enumerate(texts)]
    questions = [embedder.embed_questions([text], "tenant 0") for text in texts[:10]]
    found = await asyncio.gather(*calls, *questions)

    rows = model.encode([*texts, *texts[:10]])
    assert all(np.allclose(chunks[0].vector(), row, atol=1e-4) for (chunks,), row in zip(found, rows, strict=True))


@pytest.mark.torch
def test_half_precision_points_where_full_precision_does(minilm_torch: Model) -> None:
    half = SentenceTransformerModel(SentenceTransformersSettings(precision="bfloat16"), "cpu")
    texts = ["We chose Postgres because it is boring and proven.", "мой кот", "a " * 200]

    cosines = (half.encode(texts) * minilm_torch.encode(texts)).sum(axis=1)

    assert half.identity == minilm_torch.identity
    assert cosines.min() > 0.999
