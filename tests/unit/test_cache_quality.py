"""How the benchmark of the semantic cache counts hits."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import cache_quality
from benchmarks.cache_quality import Labelled, measure_quality, quality_tables
from lamina.errors import Misconfigured


def _labelled(*rows: tuple[float, bool, bool]) -> Labelled:
    cosines, same, passes = zip(*rows, strict=True)
    held_out = np.arange(len(rows)) % 2 == 1
    return Labelled(np.array(cosines, dtype=np.float32), np.array(same), np.array(passes), held_out)


FOUR = ((0.99, True, True), (0.97, False, False), (0.96, True, True), (0.90, True, False), (0.88, False, True))


def test_figures_are_precision_recall_and_the_share_of_negatives_that_are_hit() -> None:
    labelled = _labelled(*FOUR)

    assert labelled.figures(0.95, guarded=False) == (2 / 3, 2 / 3, 1 / 2)
    assert labelled.figures(0.95, guarded=True) == (1, 2 / 3, 0)


def test_figures_of_no_hits_and_no_negatives_are_nought() -> None:
    assert _labelled((0.5, True, False)).figures(0.95, guarded=True) == (0, 0, 0)


def test_equal_recall_is_taken_at_the_highest_threshold_that_finds_as_many() -> None:
    guard_refuses_one = _labelled((0.98, True, False), (0.96, True, True), (0.92, True, True), (0.90, False, True))

    figures = cache_quality._at(guard_refuses_one, 0.95)

    assert figures["recall_at_095"] == 2 / 3
    assert figures["equal_recall_threshold_at_095"] == pytest.approx(0.92, abs=0.0011)
    assert figures["equal_recall_precision_at_095"] == 1


def test_equal_recall_has_no_figures_where_the_guard_never_finds_as_many() -> None:
    assert "equal_recall_precision_at_095" not in cache_quality._at(_labelled((0.98, True, False)), 0.95)


def test_the_lowest_threshold_that_stays_right_often_enough_is_recommended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_quality, "LEAST_HITS", 2)
    right = [(0.97, True, True), (0.96, True, True)]

    assert cache_quality._recommended(_labelled(*right, (0.9405, False, True))) == pytest.approx(0.941)
    assert cache_quality._recommended(_labelled((0.97, False, True), *right)) is None


def test_what_comes_right_again_below_a_wrong_hit_is_not_recommended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_quality, "LEAST_HITS", 2)
    many = [(0.90, True, True)] * 40

    labelled = _labelled((0.97, True, True), (0.96, True, True), (0.9405, False, True), *many)

    assert cache_quality._recommended(labelled) == pytest.approx(0.941)


def test_a_threshold_that_hits_next_to_nothing_says_nothing_of_those_below(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_quality, "LEAST_HITS", 2)
    many = [(0.95, True, True)] * 20

    assert cache_quality._recommended(_labelled((0.994, False, True), *many)) == pytest.approx(0.851)


def test_figures_and_tables_hold_the_held_out_pairs_by_themselves() -> None:
    labelled = _labelled(*FOUR)
    figures = cache_quality._measured(labelled, 0.95)
    figures["held_out"] = cache_quality._measured(labelled.part(labelled.held_out), 0.95)

    assert figures["held_out"]["pairs"] == 2
    assert figures["held_out"]["precision_at_095"] == 0
    assert [shown.row_count for shown in quality_tables(figures)] == [4, 4]
    assert "0.950, precision 1.000, recall 0.667" in str(quality_tables(figures)[0].caption)


def test_the_pairs_of_a_folder_are_measured_all_and_held_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"text_a": "Where is it?", "text_b": f"Where is it {place}?", "label": place % 2} for place in range(50)]
    with gzip.open(tmp_path / "qqp_pairs_50.jsonl.gz", "wt") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)
    monkeypatch.setattr(
        cache_quality, "_embedded", lambda texts: dict.fromkeys(texts, np.array([1.0, 0.0], dtype=np.float32))
    )

    figures = measure_quality(tmp_path)

    held_out = sum(cache_quality._is_held_out(row["text_a"], row["text_b"]) for row in rows)
    assert (figures["pairs"], figures["held_out"]["pairs"]) == (50, held_out)
    assert (figures["precision_at_095"], figures["guarded_recall_at_095"]) == (0.5, 0)
    assert figures["false_hits_per_thousand"] == figures["false_merges_per_thousand"] == 0
    assert figures["kept_of_right_hits"] == 0
    assert [shown.row_count for shown in quality_tables(figures)] == [4, 4, 4]
    assert measure_quality(tmp_path, sample=20)["pairs"] == 20


def test_the_guard_makes_no_mistake_on_the_pairs_by_hand() -> None:
    figures = cache_quality.measure_pairs_by_hand()

    assert figures["pairs"] > 250
    assert figures["languages"] > 30
    assert figures["false_hits_per_thousand"] == figures["false_merges_per_thousand"] == 0
    assert figures["right_hits"] == figures["right_merges"] == 1
    assert cache_quality.pairs_by_hand_table(figures).row_count == 2


def test_a_folder_without_pairs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="--pairs"):
        measure_quality(tmp_path)


def test_a_pair_is_held_out_whatever_else_is_read() -> None:
    halves = [cache_quality._is_held_out("Where is it?", f"Where is {place}?") for place in range(200)]

    assert 70 < sum(halves) < 130
    assert halves == [cache_quality._is_held_out("Where is it?", f"Where is {place}?") for place in range(200)]
