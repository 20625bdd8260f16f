import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import psycopg
import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from actors.instruments import record_pool
from deployments.metrics.scrape import Part, Scrape
from lamina.core.areas import Area
from lamina.core.metrics import INSTRUMENTS, CallOutcome, Instrument
from lamina.core.runs import JOB_NAMES, Order, RunCounts, RunState
from lamina.errors import Unavailable
from lamina.models.hashing import HashingModel
from lamina.stores.postgres.builds import order_build
from lamina.stores.postgres.job_runs import JobRuns, advance_partition
from lamina.wiring.stores import utc_now
from tests.support.application import Application, running, settings_for
from tests.unit.test_dashboard import collected

NOTHING = RunCounts()


@pytest.fixture
async def app(database: str, tmp_path: Path) -> AsyncIterator[Application]:
    async with running(settings_for(database, tmp_path), database, HashingModel(), follow=False) as one:
        yield one


def families(text: bytes) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(text.decode())}


def values(family: Metric) -> dict[tuple[str, ...], float]:
    return {tuple(sample.labels.values()): sample.value for sample in family.samples}


async def scraped(app: Application) -> dict[str, Metric]:
    """Return what is told to somebody without a key who asks long after everybody else."""
    for part in app.services.metrics.parts:
        part._read_at = float("-inf")
    client = app.client()
    client.headers.pop("Authorization")
    answer = await client.get("/metrics")
    assert answer.status_code == 200
    return families(answer.content)


async def done(runs: JobRuns, job: str, counts: RunCounts = NOTHING) -> None:
    id_ = await runs.add(Order(job, Area(), utc_now(), requested_by="schedule"))  # type: ignore[arg-type]
    await runs.begin(id_, units=1, partitions=1)
    partition = await runs.partition(id_, 0)
    async with runs._pool.connection() as connection:
        await advance_partition(connection, id_, partition, {"after": None}, counts, is_done=True)
    await runs.finish(id_, RunState.DONE)


async def test_what_waits_in_the_outbox_is_told_for_every_projection_until_it_is_applied(app: Application) -> None:
    await app.client().post("/v1/notes", json={"content": "the key hangs behind the barometer"})

    before = await scraped(app)
    await app.indexed()
    after = await scraped(app)

    assert values(before["lamina_outbox_pending"])[("notes",)] == 1
    assert values(before["lamina_outbox_lag_seconds"])[("notes",)] > 0
    assert set(values(after["lamina_outbox_pending"]).values()) == {0}
    assert set(values(after["lamina_outbox_pending"])) == {("messages",), ("notes",), ("cold",), ("documents",)}


async def test_rows_and_bytes_come_from_the_servers_statistics(app: Application) -> None:
    notes = [f"note number{number}" for number in range(50)]
    await app.client().post("/v1/notes/batch", json={"notes": notes})
    with psycopg.connect(app.url, autocommit=True) as connection:
        connection.execute("ANALYZE")
        connection.execute("SELECT pg_stat_force_next_flush()")

    found = await scraped(app)

    rows = values(found["lamina_store_rows"])
    assert 50 <= rows[("notes",)] <= 100  # A session that reports after the analysis is counted twice for a while.
    assert set(rows) == {("sessions",), ("notes",), ("graph",), ("procedures",), ("documents",)}
    assert values(found["lamina_database_bytes"])[()] > 1_000_000
    assert values(found["lamina_embedding_generation"])[()] == 1


async def test_jobs_tell_their_runs_their_last_success_and_how_often_they_are_due(app: Application) -> None:
    runs = JobRuns(app.pool)
    began = utc_now().timestamp()
    await done(runs, "sweep")
    failed = await runs.add(Order("decay", Area(), utc_now()))
    await runs.finish(failed, RunState.FAILED, "told")

    found = await scraped(app)

    states = values(found["lamina_job_runs"])
    assert states[("sweep", "done")] == states[("decay", "failed")] == 1
    assert len(states) == len(JOB_NAMES) * len(RunState)
    succeeded = values(found["lamina_job_last_success_timestamp_seconds"])
    assert set(succeeded) == {("sweep",)}
    assert succeeded[("sweep",)] >= began
    intervals = values(found["lamina_job_interval_seconds"])
    assert (intervals[("sweep",)], intervals[("compaction",)]) == (6 * 3600, 3600)


async def test_drift_is_what_the_last_audit_of_everything_found(app: Application) -> None:
    runs = JobRuns(app.pool)
    nothing = await scraped(app)
    await done(runs, "audit", RunCounts(seen=10, planned=7))
    await done(runs, "audit", RunCounts(seen=12, planned=3))
    await runs.add(Order("audit", Area("acme"), utc_now()))

    found = await scraped(app)

    assert "lamina_audit_drift" not in nothing
    assert values(found["lamina_audit_drift"])[()] == 3
    assert values(found["lamina_audit_memories"])[()] == 12


async def test_a_real_scrape_tells_everything_that_the_dashboard_may_ask_for(app: Application) -> None:
    await done(JobRuns(app.pool), "audit", RunCounts(seen=10, planned=1))
    order_build(app.url, "notes")

    found = await scraped(app)

    told = {sample.name: set(sample.labels) for family in found.values() for sample in family.samples}
    assert told == collected()
    assert values(found["lamina_build_pending"]) == {("notes",): 0}
    assert set(values(found["lamina_up"]).values()) == {1}


async def test_without_postgres_the_caches_are_told_and_the_others_named_as_down(app: Application) -> None:
    await app.client().post("/v1/notes", json={"content": "the key hangs behind the barometer"})
    await app.pool.close()

    found = await scraped(app)

    assert values(found["lamina_up"]) == {
        ("caches",): 1,
        ("outbox",): 0,
        ("builds",): 0,
        ("postgres",): 0,
        ("jobs",): 0,
        ("generations",): 0,
    }
    assert "lamina_cache_requests" in found
    assert "lamina_outbox_pending" not in found


async def test_many_scrapers_at_once_are_one_collection() -> None:
    read = 0

    async def slowly() -> Sequence[Metric]:
        nonlocal read
        read += 1
        await asyncio.sleep(0.05)
        return ()

    scrape = Scrape([Part("slow", slowly, max_age_s=2)])

    texts = await asyncio.gather(*(scrape.text() for _ in range(50)))
    await scrape.text()
    at_first = read
    await asyncio.sleep(2.1)
    await scrape.text()

    assert len(set(texts)) == 1
    assert (at_first, read) == (1, 2)


async def test_a_part_that_hangs_is_left_out_after_its_deadline_and_a_scraper_that_gives_up_ends_no_reading() -> None:
    ended = asyncio.Event()

    async def hangs() -> Sequence[Metric]:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return ()

    scrape = Scrape([Part("hung", hangs, deadline_s=0.2)])
    impatient = asyncio.create_task(scrape.text())
    await asyncio.sleep(0.05)
    impatient.cancel()

    found = families(await scrape.text())

    assert values(found["lamina_up"]) == {("hung",): 0}
    assert ended.is_set()


async def test_an_outage_is_logged_once_and_again_only_after_the_part_came_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    is_down = True

    async def read() -> Sequence[Metric]:
        if is_down:
            raise Unavailable("postgres", "gone")
        return ()

    scrape = Scrape([Part("stores", read, max_age_s=0)])

    for is_down in (True, True, True, False, True):  # noqa: B007 - read above
        await scrape.text()

    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


class Remembering:
    """A meter that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, float, Mapping[str, str]]] = []

    def record(self, instrument: Instrument, value: float = 1.0, **labels: str) -> None:
        assert set(labels) == set(instrument.labels), instrument.name
        self.told.append((instrument.name, value, labels))

    def of(self, instrument: Instrument) -> list[tuple[float, Mapping[str, str]]]:
        return [(value, labels) for name, value, labels in self.told if name == instrument.name]


async def test_the_labels_that_are_told_are_those_of_the_instrument(database: str, tmp_path: Path) -> None:
    meter = Remembering()
    async with running(settings_for(database, tmp_path), database, HashingModel(), meter=meter) as app:
        client = app.client()
        turn = {"session": "s", "messages": [{"content": "We ship on Fridays."}, {"content": "Noted."}]}
        await client.post("/v1/turns", json=turn)
        await client.post("/v1/notes", json={"content": "the key hangs behind the barometer"})
        found = await client.post("/v1/search", json={"query": "where is the key?", "cache": False})
        app.tiers["notes"].close()
        record_pool("router", meter, app.pool)
        degraded = await client.post("/v1/search", json={"query": "where is the key?", "cache": False})

    outcomes = [labels["outcome"] for _, labels in meter.of(instrument("lamina_searches"))]
    assert "graph" in found.json()["degraded"]  # Switched off, not missing.
    assert outcomes == [CallOutcome.OK, CallOutcome.DEGRADED]
    assert degraded.json()["degraded"]
    missing = {labels["source"] for _, labels in meter.of(instrument("lamina_degraded_answers"))}
    assert "notes_hybrid" in missing
    assert "graph" not in missing
    asked = {labels["tier"] for _, labels in meter.of(instrument("lamina_tier_seconds"))}
    assert asked == {"sessions", "notes"}  # The others hold nothing.
    assert (2, {"tier": "sessions"}) in meter.of(instrument("lamina_memories_written"))
    assert meter.of(instrument("lamina_pool_limit")) == [(8, {"part": "router"})]
    assert meter.of(instrument("lamina_pool_connections"))[0][0] >= 1
    assert meter.of(instrument("lamina_pool_waiting")) == [(0, {"part": "router"})]
    writes = [tuple(labels.values()) for _, labels in meter.of(instrument("lamina_writes"))]
    assert writes == [("sessions", CallOutcome.OK), ("notes", CallOutcome.OK)]


def instrument(name: str) -> Instrument:
    return next(item for item in INSTRUMENTS if item.name == name)
