import asyncio
import gc
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
import ray
from fastapi import FastAPI
from numpy.typing import NDArray
from ray.exceptions import RayTaskError

from actors import instruments
from actors.cache import CacheShardActor
from actors.instruments import RayMeter, process_meter, replica_meter, watch
from deployments import problems
from deployments.handles import ProjectionHandle
from deployments.write_metrics import measured_write
from jobs import runner
from lamina.core.areas import Area
from lamina.core.memories import new_id
from lamina.core.metrics import (
    APPLIED,
    APPLY_FAILURES,
    EMBEDDER_BATCH,
    EMBEDDER_CALLS,
    EMBEDDER_FAILURES,
    EMBEDDER_PADDING,
    EMBEDDER_REMEMBERED,
    EMBEDDER_TEXTS,
    EMBEDDER_TOKENS,
    INSTRUMENTS,
    JOB_ENDS,
    JOB_ROWS,
    LOOP_LAG,
    REFUSALS,
    SEARCHES,
    SHARD_CALLS,
    SOURCE_FAILURES,
    SOURCE_SECONDS,
    TIER_FAILURES,
    TIER_SECONDS,
    UNMEASURED,
    WRITES,
    WRITTEN,
    CallOutcome,
    Instrument,
    InstrumentKind,
)
from lamina.core.ports import Change, Rebuildable
from lamina.core.queries import Failure, Query, Ranking
from lamina.core.runs import Order, Run, RunCounts, RunState
from lamina.core.tiers import TIERS, Source, Tier
from lamina.errors import InvalidInput, Overloaded, Unavailable
from lamina.models.batching import BatchingEmbedder
from lamina.models.hashing import HashingModel
from lamina.search.conversation_context import ConversationContext
from lamina.search.fused_search import Deadlines, Search
from lamina.search.tier_sources import TierSources
from lamina.settings.loading import Settings
from lamina.wiring.caches import shard_limits
from tests.support.embedders import Uncached
from tests.support.virtual_time import in_virtual_time
from tests.unit.builders import NOON, POLICY, Rows, query, request
from tests.unit.test_fused_search import Embeds

BOUNDED = {"tier", "source", "projection", "job_name", "outcome", "layer", "part", "operation"}


class Remembering:
    """A meter that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, float, Mapping[str, str]]] = []

    def record(self, instrument: Instrument, value: float = 1.0, **labels: str) -> None:
        assert set(labels) == set(instrument.labels), instrument.name
        self.told.append((instrument.name, value, labels))

    def of(self, instrument: Instrument) -> list[float]:
        return [value for name, value, _ in self.told if name == instrument.name]

    def labels_of(self, instrument: Instrument) -> list[Mapping[str, str]]:
        return [labels for name, _, labels in self.told if name == instrument.name]


@pytest.mark.parametrize("instrument", INSTRUMENTS, ids=lambda item: item.name)
def test_an_instrument_has_bounded_labels_a_unit_and_a_name_that_prometheus_takes(instrument: Instrument) -> None:
    assert set(instrument.labels) <= BOUNDED
    assert instrument.name.startswith("lamina_")
    assert not instrument.name.endswith(("_total", "_bucket", "_count", "_sum"))
    assert instrument.description.endswith(".")
    assert (instrument.kind is InstrumentKind.HISTOGRAM) == bool(instrument.bounds)
    assert list(instrument.bounds) == sorted(set(instrument.bounds))


def test_every_instrument_is_there_once() -> None:
    assert len({item.name for item in INSTRUMENTS}) == len(INSTRUMENTS) > 20


def test_where_ray_does_not_run_nothing_is_measured_and_nothing_is_started() -> None:
    assert not ray.is_initialized()

    assert process_meter() is replica_meter() is UNMEASURED
    assert not ray.is_initialized()


class Made:
    """One of Ray's metrics."""

    def __init__(self, name: str, told: str, bounds: Sequence[float] = (), *, tag_keys: tuple[str, ...]) -> None:
        self.made_of = (name, told, tuple(bounds), tag_keys)
        self.told: list[tuple[float, Mapping[str, str]]] = []

    def inc(self, value: float, tags: Mapping[str, str]) -> None:
        self.told.append((value, tags))

    set = observe = inc


class Metrics:
    """Ray's module of metrics."""

    def __init__(self) -> None:
        self.made: list[Made] = []

    def _make(self, *arguments: Any, **named: Any) -> Made:
        self.made.append(Made(*arguments, **named))
        return self.made[-1]

    Counter = Gauge = Histogram = _make


@pytest.mark.parametrize("instrument", INSTRUMENTS, ids=lambda item: item.name)
def test_a_metric_is_made_once_and_takes_every_value_with_its_labels(instrument: Instrument) -> None:
    metrics = Metrics()
    meter = RayMeter(metrics)
    labels = dict.fromkeys(instrument.labels, "one")

    meter.record(instrument, 2.0, **labels)
    meter.record(instrument, 3.0, **labels)

    (made,) = metrics.made
    assert made.made_of == (instrument.name, instrument.description, instrument.bounds, instrument.labels)
    assert made.told == [(2.0, labels), (3.0, labels)]


def test_a_counter_is_not_told_of_nothing() -> None:
    metrics = Metrics()

    RayMeter(metrics).record(SEARCHES, 0, outcome="ok")

    assert metrics.made == []


class OneTier:
    """A tier that answers, fails or hangs."""

    def __init__(self, error: Exception | None = None, wait_s: float = 0.0) -> None:
        self._error = error
        self._wait_s = wait_s

    async def search(self, query: Query) -> Mapping[Source, Ranking | Failure]:
        await asyncio.sleep(self._wait_s)
        if self._error is not None:
            raise self._error
        return {Source.PROCEDURES: ()}


def search_over(meter: Remembering, **tiers: OneTier) -> Search:
    return Search(
        Uncached(Embeds()),
        {TIERS[name].tier: tier for name, tier in tiers.items()},  # type: ignore[index]  # its name is a literal there
        rows=Rows(),
        generation=1,
        policy=POLICY,
        deadlines=Deadlines(embed_s=60.0, tier_s=60.0),
        clock=lambda: NOON,
        meter=meter,
    )


@in_virtual_time
async def test_a_tier_tells_how_long_it_took_and_that_it_failed() -> None:
    meter = Remembering()
    search = search_over(meter, procedures=OneTier(wait_s=0.02), notes=OneTier(Unavailable("notes", "gone")))

    answer = await search.search(request("where?"))

    assert answer.answered == {Source.PROCEDURES: 0}
    assert max(meter.of(TIER_SECONDS)) >= 0.02
    assert sorted(labels["tier"] for labels in meter.labels_of(TIER_SECONDS)) == ["notes", "procedures"]
    assert meter.labels_of(TIER_FAILURES) == [{"tier": "notes"}]


@in_virtual_time
async def test_a_tier_that_is_given_up_has_failed() -> None:
    meter = Remembering()
    search = search_over(meter, procedures=OneTier(), notes=OneTier(wait_s=3600))

    await search.search(request("where?"))

    assert meter.labels_of(TIER_FAILURES) == [{"tier": "notes"}]


class OneDeployment:
    """A deployment's handle: the deployment takes changes of its projections, or fails."""

    def __init__(self) -> None:
        self.took: list[object] = []
        self.fails = False
        self.switched: int | None = None

    async def _apply(self, projection: str, changes: Sequence[Change[Any]], build: int | None) -> None:
        if self.fails:
            raise RayTaskError("apply", "its traceback", Unavailable("index", "gone"))
        self.took += [(projection, build, change) for change in changes]

    async def _flush(self, projection: str, build: int | None) -> None:
        self.took.append((projection, build, "flushed"))

    async def _switch(self, projection: str, build: int) -> None:
        self.switched = build

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=object.__getattribute__(self, f"_{name}"))


async def test_a_projection_tells_how_many_changes_it_took_in_one_record_a_batch() -> None:
    meter, deployment = Remembering(), OneDeployment()
    notes = ProjectionHandle(deployment, "notes", meter=meter)  # type: ignore[arg-type]

    await notes.apply([1, 2, 3])  # type: ignore[list-item]
    await notes.flush()
    deployment.fails = True
    with pytest.raises(Unavailable, match="index"):
        await notes.apply([4])  # type: ignore[list-item]

    assert deployment.took == [("notes", None, taken) for taken in (1, 2, 3, "flushed")]
    assert meter.of(APPLIED) == [3]
    assert meter.labels_of(APPLY_FAILURES) == [{"projection": "notes"}]


async def test_a_projection_that_is_measured_can_still_be_built_anew() -> None:
    meter, deployment = Remembering(), OneDeployment()
    notes = ProjectionHandle(deployment, "notes", meter=meter)  # type: ignore[arg-type]

    await notes.beside(2).apply([1])  # type: ignore[list-item]
    await notes.switch(2)

    assert isinstance(notes, Rebuildable)
    assert (deployment.took, deployment.switched) == ([("notes", 2, 1)], 2)
    assert meter.of(APPLIED) == [1]


async def test_the_embedder_tells_each_batch_once_and_what_it_has_in_hand() -> None:
    meter, model = Remembering(), HashingModel()
    embedder = BatchingEmbedder(model, meter=meter)

    rows = await embedder.embed(["the key", "hangs behind", "the barometer"])

    assert np.array_equal(rows, await BatchingEmbedder(model).embed(["the key", "hangs behind", "the barometer"]))
    assert meter.of(EMBEDDER_BATCH) == meter.of(EMBEDDER_TEXTS) == [3]
    assert meter.of(EMBEDDER_TOKENS) == [2 + 4 + 4]
    assert meter.of(EMBEDDER_PADDING) == [2]
    assert meter.of(EMBEDDER_CALLS) == [1, 0]

    await embedder.embed(["the key"])

    assert meter.of(EMBEDDER_REMEMBERED) == [1]
    assert meter.of(EMBEDDER_TEXTS) == [3]


async def test_a_batch_that_fails_is_counted_and_is_no_text_embedded() -> None:
    class Failing(HashingModel):
        def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
            raise RuntimeError(f"no room for {len(texts)}")

    meter = Remembering()
    embedder = BatchingEmbedder(Failing(), meter=meter)

    with pytest.raises(RuntimeError):
        await embedder.embed(["the key"])

    assert (meter.of(EMBEDDER_FAILURES), meter.of(EMBEDDER_TEXTS)) == ([1.0], [])
    assert meter.of(EMBEDDER_CALLS) == [1, 0]


@pytest.mark.parametrize(
    ("error", "outcomes"),
    [
        (None, [CallOutcome.OK]),
        (InvalidInput("content", "is blank"), []),
        (Unavailable("postgres", "gone"), [CallOutcome.FAILED]),
        (RuntimeError("a bug"), [CallOutcome.FAILED]),
    ],
)
def test_a_write_fails_by_its_stores_and_not_by_its_content(error: Exception | None, outcomes: list[str]) -> None:
    meter = Remembering()

    try:
        with measured_write(meter, Tier.NOTES, 5):
            if error is not None:
                raise error
    except type(error or ValueError):
        pass

    assert [labels["outcome"] for labels in meter.labels_of(WRITES)] == outcomes
    assert meter.of(WRITTEN) == ([] if error else [5])


class Owner:
    """Whoever is watched."""


async def test_what_blocks_the_loop_shows_as_its_lag() -> None:
    meter, owner = Remembering(), Owner()

    watch(owner, "router", meter)
    await asyncio.sleep(0.15)
    time.sleep(0.4)  # noqa: ASYNC251 - it is what is measured
    await asyncio.sleep(0.05)

    assert max(meter.of(LOOP_LAG)) > 0.2
    assert meter.labels_of(LOOP_LAG)[0] == {"part": "router"}


async def test_calls_in_hand_are_told_again_while_they_do_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instruments, "STEP_S", 0.001)
    meter, owner = Remembering(), Owner()
    embedder = BatchingEmbedder(HashingModel(), meter=meter)

    watch(owner, "embedder", meter, tell=embedder.record_calls)
    async with asyncio.timeout(60):
        while len(meter.of(EMBEDDER_CALLS)) < 3:  # noqa: ASYNC110 - the watching tells nobody else
            await asyncio.sleep(0.01)

    assert set(meter.of(EMBEDDER_CALLS)) == {0}


async def test_the_watching_ends_with_its_owner() -> None:
    owner = Owner()
    watch(owner, "ending", Remembering())

    del owner
    gc.collect()
    await asyncio.sleep(0.01)

    assert not [task for task in asyncio.all_tasks() if task.get_name() == "watch ending"]


async def test_nobody_watches_for_a_meter_that_forgets() -> None:
    watch(Owner(), "forgotten", UNMEASURED)

    assert not [task for task in asyncio.all_tasks() if task.get_name() == "watch forgotten"]


class OneSource:
    """A source that answers or fails."""

    def __init__(self, source: Source, error: Exception | None = None) -> None:
        self.source = source
        self._error = error

    async def search(self, query: Query) -> Ranking:
        if self._error is not None:
            raise self._error
        return ()


async def test_every_source_tells_how_long_it_took_and_a_failing_one_that_it_failed() -> None:
    meter = Remembering()
    failing = OneSource(Source.NOTES_WARM, Unavailable("notes", "gone"))
    sources = TierSources([OneSource(Source.NOTES_HYBRID), failing], deadline_s=60.0)

    unmeasured = await sources.search(query("where?"))
    nothing = list(meter.told)
    answer = await replace(sources, meter=meter).search(query("where?"))

    assert answer == unmeasured
    assert nothing == []
    assert meter.labels_of(SOURCE_SECONDS) == [{"source": "notes_hybrid"}, {"source": "notes_warm"}]
    assert meter.labels_of(SOURCE_FAILURES) == [{"source": "notes_warm"}]


async def test_the_ranking_in_context_is_a_source_of_its_own() -> None:
    class Nobody:
        async def around(self, query: Query, ids: Sequence[Any]) -> list[Any]:
            return []

    meter = Remembering()
    context = ConversationContext(Nobody(), candidates=30, min_similarity=0.25)

    await TierSources([OneSource(Source.SESSION_WORDS)], 60.0, context, meter).search(query("where?"))

    assert meter.labels_of(SOURCE_SECONDS) == [{"source": "session_words"}, {"source": "session_context"}]


async def test_a_request_that_is_refused_for_a_full_queue_is_counted_by_whose() -> None:
    meter = Remembering()
    app = FastAPI()
    app.state.services = SimpleNamespace(meter=meter)
    problems.install(app)

    @app.get("/refused")
    async def refused() -> None:
        raise Overloaded("embedder", "512 calls are waiting")

    @app.get("/gone")
    async def gone() -> None:
        raise Unavailable("postgres", "gone")

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://lamina") as client:
        answers = [await client.get("/refused"), await client.get("/gone")]

    assert [answer.status_code for answer in answers] == [503, 503]
    assert meter.labels_of(REFUSALS) == [{"part": "embedder"}]


async def test_a_cache_shard_counts_its_calls_and_those_that_fail() -> None:
    shard = CacheShardActor(shard_limits(Settings().caches))
    shard.meter = meter = Remembering()

    await shard.find([])
    with pytest.raises(AttributeError):
        await shard.find([None])  # type: ignore[list-item]

    assert meter.labels_of(SHARD_CALLS) == [
        {"operation": "find", "outcome": "ok"},
        {"operation": "find", "outcome": "failed"},
    ]


RUN = Run(
    new_id(), Order("sweep", Area(), datetime.now(UTC)), RunState.DONE, datetime.now(UTC), counts=RunCounts(changed=9)
)


async def test_a_run_tells_how_it_ended_and_what_it_changed_since_it_was_taken_up() -> None:
    meter = Remembering()

    async def driven() -> Run:
        return RUN

    run = await runner.with_metrics(meter, "sweep", RunCounts(changed=4), driven())

    assert run is RUN
    assert meter.labels_of(JOB_ENDS) == [{"job_name": "sweep", "outcome": "done"}]
    assert meter.of(JOB_ROWS) == [5]


async def test_a_run_that_raises_has_failed() -> None:
    meter = Remembering()

    async def driven() -> Run:
        raise Unavailable("postgres", "gone")

    with pytest.raises(Unavailable):
        await runner.with_metrics(meter, "sweep", RunCounts(), driven())

    assert meter.labels_of(JOB_ENDS) == [{"job_name": "sweep", "outcome": "failed"}]
    assert meter.of(JOB_ROWS) == []
