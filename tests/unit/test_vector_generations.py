"""The choice of the generation that a run of embedding again fills."""

from datetime import UTC, datetime, timedelta

import pytest

from lamina.models.hashing import HashingModel
from lamina.policies.retention.vector_generations import GenerationStatus, GenerationTarget, choose_target

FIRST, SECOND = HashingModel(), HashingModel(seed=2)
NOW = datetime(2026, 5, 1, tzinfo=UTC)
MONTH = timedelta(days=30)


def generation(number: int, model: HashingModel, state: str, retired_days: float | None = None) -> GenerationStatus:
    retired = None if retired_days is None else NOW - timedelta(days=retired_days)
    return GenerationStatus(number, model.identity, state, retired)


OLD = generation(1, FIRST, "retired", 31)


@pytest.mark.parametrize(
    ("generations", "expected"),
    [
        ([], GenerationTarget()),
        ([generation(1, FIRST, "active")], GenerationTarget()),
        ([generation(1, SECOND, "active")], GenerationTarget(1, is_begun=True)),
        ([generation(1, FIRST, "active"), generation(2, SECOND, "building")], GenerationTarget(2, is_begun=True)),
        ([generation(1, FIRST, "active"), generation(2, SECOND, "retired", 5)], GenerationTarget(2)),
        ([OLD, generation(2, SECOND, "active")], GenerationTarget(2, is_begun=True, outdated=(1,))),
        ([generation(1, FIRST, "retired", 29), generation(2, SECOND, "active")], GenerationTarget(2, is_begun=True)),
        (
            [OLD, generation(2, HashingModel(seed=3), "active"), generation(3, SECOND, "building")],
            GenerationTarget(3, is_begun=True),
        ),
    ],
)
def test_a_run_fills_the_generation_of_its_model(
    generations: list[GenerationStatus], expected: GenerationTarget
) -> None:
    assert choose_target(generations, SECOND.identity, NOW, MONTH) == expected
