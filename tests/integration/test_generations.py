"""Generations of vectors: which is active, how another one takes its place, what each keeps for itself."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import psycopg
import pytest

from deployments.searcher import SearcherDeployment
from lamina.core.ports import Change, ModelIdentity
from lamina.core.queries import Query
from lamina.core.scope import Scope
from lamina.errors import Misconfigured, Unavailable
from lamina.models.hashing import HashingModel
from lamina.projections.locations import index_path
from lamina.projections.ownership import OwnedProjection, owner_check
from lamina.settings.loading import Settings
from lamina.settings.models import HashingSettings, ThresholdName
from lamina.stores.postgres.generations import (
    Generation,
    activate_generation,
    claim_generation,
    list_generations,
)
from lamina.wiring.stores import build_model, build_pool, model_identity, with_thresholds
from tests.support.application import settings_for

FIRST, SECOND = HashingModel(), HashingModel(seed=2)


def execute(url: str, text: str, *values: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(text.encode(), values)
        return cursor.fetchall() if cursor.description else []


def begin_building(url: str, identity: ModelIdentity) -> None:
    execute(
        url,
        "INSERT INTO embedding_generations (model, dimension, normalised, is_active, activations)"
        " VALUES (%s, %s, true, false, 0)",
        identity.model,
        identity.dimension,
    )


def states(url: str) -> list[tuple[Any, ...]]:
    return execute(url, "SELECT generation, model, state, activations FROM embedding_generations ORDER BY 1")


def test_a_model_without_a_generation_is_refused_with_the_remedy(database: str) -> None:
    claim_generation(database, FIRST.identity)

    with pytest.raises(
        Misconfigured, match=r"they cannot be compared; set embedding\.model to hashing-384, or first run"
    ) as refusal:
        claim_generation(database, SECOND.identity)

    assert "`python -m jobs reembed` with hashing-384-2" in str(refusal.value)
    assert states(database) == [(1, "hashing-384", "active", 1)]


def test_a_generation_that_lacks_nothing_becomes_active_and_the_one_before_is_kept(database: str) -> None:
    first = claim_generation(database, FIRST.identity)
    begin_building(database, SECOND.identity)

    second = claim_generation(database, SECOND.identity)

    assert (first.number, second.number, second.identity) == (1, 2, SECOND.identity)
    assert states(database) == [(1, "hashing-384", "retired", 1), (2, "hashing-384-2", "active", 1)]
    assert claim_generation(database, SECOND.identity) == second


def test_going_back_and_forth_makes_indexes_begin_anew_each_time(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path)
    first = claim_generation(database, FIRST.identity)
    begin_building(database, SECOND.identity)
    switched = [activate_generation(database, model.identity) for model in (SECOND, FIRST, SECOND)]

    paths = [index_path(settings, "notes", generation).name for generation in (first, *switched)]

    assert paths == ["notes", "notes-2-1", "notes-1-2", "notes-2-2"]
    assert index_path(settings, "notes").name == "notes"


def test_several_that_switch_at_the_same_time_switch_once(database: str) -> None:
    claim_generation(database, FIRST.identity)
    begin_building(database, SECOND.identity)

    with ThreadPoolExecutor(4) as threads:
        switched = list(threads.map(lambda _: claim_generation(database, SECOND.identity), range(8)))

    assert {generation.activations for generation in switched} == {1}
    assert states(database) == [(1, "hashing-384", "retired", 1), (2, "hashing-384-2", "active", 1)]


def test_claiming_again_and_again_takes_no_numbers(database: str) -> None:
    for _ in range(5):
        claim_generation(database, FIRST.identity)
    begin_building(database, SECOND.identity)

    assert [number for number, *_ in states(database)] == [1, 2]


def test_every_epoch_rises_with_a_switch(database: str) -> None:
    claim_generation(database, FIRST.identity)
    begin_building(database, SECOND.identity)
    execute(database, "INSERT INTO epochs VALUES ('a', 'w', 'n', 4), ('b', 'w', 'n', 7)")

    activate_generation(database, SECOND.identity)

    assert execute(database, "SELECT tenant, epoch FROM epochs ORDER BY 1") == [("a", 5), ("b", 8)]


def test_a_generation_of_another_dimension_becomes_active_as_any_other_does(database: str) -> None:
    claim_generation(database, FIRST.identity)
    begin_building(database, ModelIdentity("large", 768))

    assert claim_generation(database, ModelIdentity("large", 768)).number == 2
    assert claim_generation(database, FIRST.identity).number == 1


async def test_an_index_takes_no_changes_once_another_generation_is_active(database: str, tmp_path: Path) -> None:
    class Taken:
        def __init__(self) -> None:
            self.changes: list[Any] = []

        async def apply(self, changes: Any) -> None:
            self.changes += changes

        async def flush(self) -> None: ...

        async def inventory(self, tenant: str) -> dict[Any, str]:
            return {}

    first = claim_generation(database, FIRST.identity)
    begin_building(database, SECOND.identity)
    inner = Taken()
    async with build_pool(settings_for(database, tmp_path)) as pool:
        projection = OwnedProjection(inner, owner_check(pool, "notes", "here", first), "here")
        await projection.apply([Change(None, 1)])  # type: ignore[arg-type]
        activate_generation(database, SECOND.identity)
        with pytest.raises(Unavailable, match="vectors of hashing-384 are not the active ones"):
            await projection.apply([Change(None, 2)])  # type: ignore[arg-type]
        activate_generation(database, FIRST.identity)
        with pytest.raises(Unavailable):  # What changed meanwhile has passed it by.
            await projection.apply([Change(None, 3)])  # type: ignore[arg-type]

        assert [change.record for change in inner.changes] == [1]
        assert [known.state for known in await list_generations(pool)] == ["active", "retired"]


async def test_a_question_of_another_generation_is_answered_by_words_alone(database: str, tmp_path: Path) -> None:
    own = replace(claim_generation(database, FIRST.identity), number=2)
    searcher = SearcherDeployment("procedures", settings_for(database, tmp_path), own)
    mine = Query("boats", ("boats",), Scope("acme"), 5, embedding=b"vector", generation=2)

    assert searcher._comparable(mine) == mine
    assert searcher._comparable(replace(mine, generation=1)) == replace(mine, embedding=None)


def test_thresholds_are_kept_with_the_generation_and_win_over_the_settings(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path, search={"min_similarity": 0.3})
    kept = claim_generation(database, FIRST.identity, {"write.near_duplicate": 0.9})

    without = claim_generation(database, FIRST.identity)
    changed = claim_generation(
        database, FIRST.identity, {"caches.semantic.threshold": 0.5, "search.min_similarity": 0.1}
    )
    used = with_thresholds(settings, changed)

    assert kept == without
    assert with_thresholds(settings, kept).write.near_duplicate == 0.9
    assert with_thresholds(settings, kept).search.min_similarity == 0.3
    assert (used.caches.semantic.threshold, used.search.min_similarity) == (0.5, 0.1)
    assert used.write == settings.write
    assert with_thresholds(settings, Generation(1, FIRST.identity)) == settings


def test_every_threshold_that_may_be_kept_is_a_setting(tmp_path: Path) -> None:
    every = dict.fromkeys(get_args(ThresholdName), 0.5)
    settings = Settings(data_dir=tmp_path, embedding=HashingSettings(thresholds=every))  # type: ignore[arg-type]

    used = with_thresholds(settings, Generation(1, FIRST.identity, thresholds=settings.embedding.thresholds))

    assert used.jobs.consolidation.cosine == used.search.graph_min_similarity == used.write.near_duplicate == 0.5
    assert used.caches.semantic.threshold == used.search.min_similarity == 0.5
    with pytest.raises(ValueError, match="near_duplicates"):
        HashingSettings(thresholds={"write.near_duplicates": 0.5})  # type: ignore[dict-item]


def test_another_seed_makes_another_model(tmp_path: Path) -> None:
    chosen = Settings(data_dir=tmp_path, embedding=HashingSettings(seed=2))

    assert model_identity(chosen) == SECOND.identity
    assert build_model(chosen, "cpu").identity == SECOND.identity
    near = float((FIRST.encode(["green boats sail"]) * SECOND.encode(["green boats sail"])).sum())
    assert near < 0.7
