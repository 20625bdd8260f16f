import random
from pathlib import Path

import pytest

from lamina.models.passes import CPU_TOKENS, ENOUGH_TOKENS, padding, passes
from lamina.models.processors import model_threads, processors


@pytest.mark.parametrize(("lengths", "expected"), [([], 0), ([5], 0), ([5, 5], 0), ([1, 5, 3], 6)])
def test_padding_is_what_all_lack_to_the_longest(lengths: list[int], expected: int) -> None:
    assert padding(lengths) == expected


def test_a_pass_that_is_large_enough_takes_no_text_that_pads_all_others() -> None:
    lengths = [40] * 4 + [60] * 3 + [5]

    found = [[lengths[number] for number in numbers] for numbers in passes(lengths, most_texts=64, most_tokens=4_096)]

    assert found == [[5, 40, 40, 40, 40], [60, 60, 60]]


@pytest.mark.parametrize("lengths", [[10, 250], [10, 12, 250, 250], [3, 128]])
def test_a_short_text_is_not_padded_to_one_that_is_a_pass_by_itself(lengths: list[int]) -> None:
    first, *rest = passes(lengths, most_texts=64, most_tokens=CPU_TOKENS)

    assert [lengths[number] for number in first] == [length for length in lengths if length < ENOUGH_TOKENS]
    assert [lengths[number] for numbers in rest for number in numbers] == lengths[len(first) :]


def test_messages_of_mixed_lengths_are_hardly_padded() -> None:
    spread = random.Random(16)  # noqa: S311 - the same lengths each time
    lengths = [min(256, max(4, int(spread.lognormvariate(3.6, 0.8)))) for _ in range(2_000)]

    found = [
        [lengths[start + number] for number in numbers]
        for start in range(0, len(lengths), 40)
        for numbers in passes(lengths[start : start + 40], most_texts=64, most_tokens=CPU_TOKENS)
    ]

    assert sum(map(padding, found)) < 0.15 * sum(lengths)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 64),
        ({"cpu.max": "max 100000"}, 64),
        ({"cpu.max": "200000 100000\n"}, 2),
        ({"cpu.max": "50000 100000"}, 1),
        ({"cpu.max": "9900000 100000"}, 64),
        ({"cpu.max": "?"}, 64),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 64),
    ],
)
def test_a_container_has_as_many_processors_as_its_quota(
    files: dict[str, str], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(64)))
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    assert processors(tmp_path) == expected


@pytest.mark.parametrize(
    ("wanted", "found", "expected"), [(None, 2, 2), (None, 64, 4), (1, 2, 1), (8, 2, 2), (8, 64, 8)]
)
def test_a_model_has_no_more_threads_than_there_are_processors(
    wanted: int | None, found: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(found)))
    monkeypatch.setattr("lamina.models.processors.CGROUP", Path("/nowhere"))

    assert model_threads(wanted) == expected
