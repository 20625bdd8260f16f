"""The labelled sentences of the extraction benchmark, by the figures that the rules must not fall below."""

from functools import cache

import pytest

from benchmarks.extraction import FOLDER, Judged, judge, read_items, total


@cache
def judged(name: str) -> list[Judged]:
    return [judge(item) for item in read_items(FOLDER / f"{name}.jsonl")]


@pytest.mark.parametrize(
    ("name", "precision", "recall"),
    [("own", 0.99, 0.98), ("own_kinds", 0.99, 0.97), ("other_hand", 0.97, 0.98), ("other_hand_2a", 0.99, 0.98)],
)
def test_nearly_all_that_is_drawn_was_stated_and_nearly_all_that_was_stated_is_drawn(
    name: str, precision: float, recall: float
) -> None:
    figures = total(judged(name))

    assert figures["precision"] >= precision
    assert figures["recall"] >= recall


@pytest.mark.parametrize("kind", sorted({item["kinds"][0] for item in read_items(FOLDER / "own_kinds.jsonl")}))
def test_no_kind_of_sentence_gives_what_it_does_not_say(kind: str) -> None:
    false = [item for item in judged("own_kinds") if item.item["kinds"] == [kind] and item.false]

    assert len(false) <= 1, [(item.item["messages"], item.false) for item in false]
