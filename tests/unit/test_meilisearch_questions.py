"""What Meilisearch is asked, what its answers say, and what its documents are."""

import json
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from lamina.settings.stores import MeilisearchSettings
from lamina.stores.index.meilisearch.documents import floats_of, missing_settings, payloads, wanted_settings
from lamina.stores.index.meilisearch.filters import EVERYTHING, token
from lamina.stores.index.meilisearch.queries import IndexQuestion, read_discovery, search_terms
from lamina.stores.index.ports import chunk_id

ONE, TWO = UUID(int=1), UUID(int=2)
SETTINGS = MeilisearchSettings(url="http://words:7700")


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("green tea", ["green", "tea"]),
        ("tea tea tea", ["tea"]),
        ("What did Ann say?", ["Ann", "say?"]),
        ("who are you", ["who", "are", "you"]),
        ('the "green tea" of „Köln“', ["green", "tea", "Köln"]),
        ("tea -milk --sugar −5", ["tea", "milk", "sugar", "5"]),
        ("order 84-213-77", ["order", "84-213-77"]),
        ("今日は成語 しりとり", ["今日は成語", "しりとり"]),
        ('"', []),
        ("--- ... 🎉", ["🎉"]),
        ("thanks🎉 to 👨‍👩‍👧", ["thanks", "🎉", "👨‍👩‍👧"]),
        ("... ?", ["...", "?"]),
        (" ".join(f"word{number}" for number in range(30)), [f"word{number}" for number in range(10)]),
    ],
)
def test_a_question_becomes_at_most_ten_words_that_say_something(text: str, terms: list[str]) -> None:
    assert search_terms(text) == terms


def question(*terms: str, vector: list[float] | None = None) -> IndexQuestion:
    return IndexQuestion("lamina_notes", terms, vector, EVERYTHING, 0.7)


def test_a_script_without_spaces_is_asked_for_by_any_of_its_words() -> None:
    _, run, word = question("今日は成語しりとり", "tea").discovery(10, by_vector=False)

    assert (run["matchingStrategy"], word["matchingStrategy"]) == ("frequency", "all")


def test_the_nearest_are_asked_for_only_where_they_are_wanted_and_there_is_a_vector() -> None:
    with_vector, without = question("tea", vector=[1.0]), question("tea")

    asked = [len(one.discovery(10, by_vector=wanted)) for one in (with_vector, without) for wanted in (True, False)]

    assert asked == [3, 2, 2, 2]


def hit(id_: UUID, chunk: int, similarity: float | None = None) -> dict[str, Any]:
    place = {"id": str(chunk_id(id_, chunk)), "memory": token(str(id_)), "chunk": chunk}
    return {**place, "_rankingScoreDetails": {"vectorSort": {"order": 0, "similarity": similarity}}}


def test_a_word_that_nothing_has_counts_nothing_and_one_that_all_have_a_little() -> None:
    answers = [
        {"hits": [], "estimatedTotalHits": 2},
        {"hits": [hit(ONE, 0), hit(TWO, 0)], "estimatedTotalHits": 2},
        {"hits": [], "estimatedTotalHits": 0},
    ]

    found = read_discovery(question("tea", "xylophone"), answers, 10).by_words()

    assert [item.place for item in found] == [(ONE, 0), (TWO, 0)]
    assert all(item.bm25 is not None and 0 < item.bm25 < 1 for item in found)


def test_a_count_that_is_an_estimate_never_makes_a_weight_negative() -> None:
    answers = [{"hits": [], "estimatedTotalHits": 1}, {"hits": [hit(ONE, 0)], "estimatedTotalHits": 900}]

    (found,) = read_discovery(question("tea"), answers, 10).by_words()

    assert found.bm25 is not None
    assert found.bm25 > 0


def test_the_nearest_come_by_their_cosine_and_what_has_no_vector_is_not_among_them() -> None:
    answers = [{"hits": [hit(ONE, 0, 0.2), hit(TWO, 1, 0.9), hit(TWO, 2)], "estimatedTotalHits": 3}]

    found = read_discovery(question(vector=[1.0]), answers, 10).by_vector()

    assert [(item.place, item.cosine) for item in found] == [((TWO, 1), 0.9), ((ONE, 0), 0.2)]


def test_payloads_hold_whole_documents_below_the_bound_and_one_that_is_larger_alone() -> None:
    documents = [{"id": number, "text": "é" * length} for number, length in enumerate((10, 10, 500, 10))]

    sent = list(payloads(documents, 120))

    assert [[json.loads(line)["id"] for line in body.splitlines()] for body in sent] == [[0, 1], [2], [3]]
    assert len(sent[0]) <= 120
    assert list(payloads([], 120)) == []


def test_lines_are_lines_whatever_a_text_contains() -> None:
    text = "one\ntwo\r\u2028three\x85"

    (body,) = payloads([{"text": text}, {"text": text}], 1000)

    assert [json.loads(line)["text"] for line in body.split(b"\n")] == [text, text]


def test_a_vector_sent_as_text_keeps_its_cosines() -> None:
    rows = np.random.default_rng(5).normal(size=(50, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)

    sent = np.array([floats_of(row.tobytes()) for row in rows])

    assert np.abs(sent @ sent.T - rows @ rows.T).max() < 1e-6


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("filterableAttributes", ["tenant"]),
        ("stopWords", ["the"]),
        ("rankingRules", ["typo", "words", "proximity", "exactness"]),
        ("typoTolerance", {"enabled": False}),
        ("localizedAttributes", None),
        ("pagination", {"maxTotalHits": 1000}),
        ("embedders", {}),
        ("searchCutoffMs", None),
    ],
)
def test_only_a_setting_that_differs_is_changed(name: str, other: Any) -> None:
    wanted = wanted_settings(SETTINGS, 384, (1, 50))

    assert missing_settings(wanted, wanted) == {}
    assert missing_settings(wanted, {**wanted, name: other}) == {name: wanted[name]}


def test_languages_are_guessed_where_none_are_set() -> None:
    wanted = wanted_settings(SETTINGS.model_copy(update={"locales": ()}), None, (1, 13))

    assert wanted["localizedAttributes"] is None
    assert "embedders" not in wanted
