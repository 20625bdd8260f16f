"""How the benchmark of the jobs makes its notes, chooses what to measure and judges it."""

from datetime import UTC, datetime

import numpy as np
import pytest

from benchmarks import job_data
from benchmarks.job_data import REPEATS_EVERY, VOCABULARY, NoteBatch, draw, texts, word
from benchmarks.job_runs import Cost, cpu_between
from benchmarks.jobs import ROW_JOBS, chosen_jobs, chosen_sizes, figures, is_measured
from lamina.errors import InvalidInput

SCOPES = 8
NOTES = 1_000


def told(notes: int = NOTES) -> NoteBatch:
    return NoteBatch("tenant", "workspace", notes, SCOPES, datetime(2030, 1, 1, tzinfo=UTC))


def cost(seen: int, elapsed_s: float, *, statements: int = 10, peak_mb: float = 100.0) -> Cost:
    return Cost(seen, seen // 2, elapsed_s, 2 * elapsed_s, statements, peak_mb)


def test_each_number_of_the_vocabulary_is_a_word_of_its_own() -> None:
    words = {word(number) for number in range(VOCABULARY)}

    assert len(words) == VOCABULARY
    assert all(text.isalpha() and len(text) == 6 for text in words)


def test_the_last_of_fifty_texts_repeats_one_of_its_namespace_but_for_a_word() -> None:
    drawn = draw(np.random.default_rng(1), NOTES, SCOPES)

    for place in range(REPEATS_EVERY - 1, NOTES, REPEATS_EVERY):
        assert (drawn[place, 1:] == drawn[place - SCOPES, 1:]).all()
    other = draw(np.random.default_rng(1), NOTES, SCOPES)[REPEATS_EVERY]
    assert not (other[1:] == drawn[REPEATS_EVERY - SCOPES, 1:]).all()


def test_words_follow_their_rank() -> None:
    drawn = draw(np.random.default_rng(1), NOTES, SCOPES)

    assert drawn.min() == 0
    assert drawn.max() < VOCABULARY
    assert (drawn == 0).sum() > (drawn == 3).sum() > (drawn == 30).sum()


def test_texts_are_the_same_each_time_and_as_many_as_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_data, "STAGED_AT_ONCE", 300)

    parts = list(texts(told()))

    assert [len(part) for part in parts] == [300, 300, 300, 100]
    assert parts == list(texts(told()))
    assert parts[0] != parts[1]


def test_sizes_come_in_order_and_once() -> None:
    assert chosen_sizes("100000, 1000,100000") == [1_000, 100_000]


@pytest.mark.parametrize("sizes", ["", "many", "10,1000", "-5"])
def test_sizes_that_are_none_are_refused(sizes: str) -> None:
    with pytest.raises(InvalidInput, match="sizes"):
        chosen_sizes(sizes)


def test_jobs_come_in_the_order_in_which_they_do_not_disturb_each_other() -> None:
    assert chosen_jobs("dedup, sweep") == ["sweep", "dedup"]
    assert chosen_jobs("")[: len(ROW_JOBS)] == list(ROW_JOBS)


def test_a_job_that_is_not_measured_is_refused() -> None:
    with pytest.raises(InvalidInput, match="audit"):
        chosen_jobs("sweep,audit")


def test_many_notes_are_for_jobs_that_make_no_texts() -> None:
    assert is_measured("sweep", 1_000_000)
    assert is_measured("summaries", 10_000)
    assert not is_measured("summaries", 100_000)


def test_growth_is_that_of_the_seconds_a_row_from_the_size_before() -> None:
    costs = {"sweep": {1_000: cost(500, 1.0), 10_000: cost(5_000, 12.0, peak_mb=110)}}

    found = figures(costs, None, {})

    assert "growth" not in found["jobs"]["sweep"]["1000"]
    assert found["jobs"]["sweep"]["10000"]["growth"] == pytest.approx(1.2)
    assert found["jobs"]["sweep"]["10000"]["cpu_growth"] == pytest.approx(1.2)
    assert found["jobs"]["sweep"]["10000"]["memory_growth"] == pytest.approx(1.1)
    assert found["jobs"]["sweep"]["1000"]["rows_per_s"] == pytest.approx(500)
    assert found["jobs"]["sweep"]["1000"]["statements_per_1000_rows"] == pytest.approx(20)


@pytest.mark.parametrize(
    ("larger", "beyond"),
    [
        (cost(5_000, 11.9), []),
        (cost(5_000, 12.1), ["sweep 10000 growth"]),
        (cost(5_000, 9.0, peak_mb=121), ["sweep 10000 memory_growth"]),
    ],
)
def test_what_is_beyond_its_limit_is_named(larger: Cost, beyond: list[str]) -> None:
    found = figures({"sweep": {1_000: cost(500, 1.0), 10_000: larger}}, None, {})

    assert found["beyond"] == beyond
    assert found["ok"] == (not beyond)


def test_a_summary_may_take_many_statements_and_so_may_a_run_over_few_rows() -> None:
    assert figures({"summaries": {10_000: cost(5_000, 1.0, statements=5_000)}}, None, {})["ok"]
    assert figures({"sweep": {1_000: cost(500, 1.0, statements=5_000)}}, None, {})["ok"]
    assert not figures({"sweep": {100_000: cost(50_000, 1.0, statements=5_000)}}, None, {})["ok"]


@pytest.mark.parametrize(("name", "value"), [("p95_ratio", 1.51), ("add_ratio", 2.01)])
def test_a_service_that_is_held_up_is_named(name: str, value: float) -> None:
    found = figures({}, None, {"p95_ratio": 1.5, "add_ratio": 2.0} | {name: value})

    assert found["beyond"] == [name]


def test_cpu_is_that_of_processes_that_are_still_there_and_of_new_ones() -> None:
    assert cpu_between({1: 2.0, 2: 5.0}, {1: 3.0, 3: 0.5}) == pytest.approx(1.5)


def test_a_run_that_saw_nothing_has_figures() -> None:
    assert cost(0, 2.0).figures()["rows_per_s"] == pytest.approx(0.5)
