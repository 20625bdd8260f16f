"""Embedding again with another model: reads stay up, nothing is lost, nothing is mixed."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
import pytest
from pgvector import Vector

from lamina.core.areas import Area
from lamina.core.documents import passage_text
from lamina.core.memories import Chunk
from lamina.core.ports import Model
from lamina.core.queries import Query
from lamina.core.runs import Order, Run, RunState
from lamina.core.scope import Scope
from lamina.core.tiers import Source
from lamina.errors import Conflict, Misconfigured, ModelLimit, Overloaded, TextRefused, Unavailable
from lamina.ingest.embedding import PROBE
from lamina.maintenance.driver import Driver, fan_out_over
from lamina.maintenance.reembed import ReembedJob, ReembedPolicy
from lamina.maintenance.row_writer import RowWriter
from lamina.maintenance.undo import Undo
from lamina.maintenance.worker import Worker
from lamina.models.batching import BatchingEmbedder
from lamina.models.hashing import HashingModel
from lamina.stores.postgres.generations import activate_generation, begin_building, claim_generation
from lamina.stores.postgres.knowledge import QUERIES
from lamina.stores.postgres.outbox import enqueue_all
from lamina.stores.postgres.vectors import end_refusals
from lamina.text.words import words
from lamina.wiring.jobs import job_limits
from lamina.wiring.stores import utc_now
from tests.support.application import Application, running, settings_for

AT_ONCE = timedelta(0)


class Wordy(HashingModel):
    """Another model, which takes three words at a time: its chunks are other ones, too."""

    def __init__(self) -> None:
        super().__init__(seed=2)

    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        starts = [0, *(place + 1 for place, letter in enumerate(text) if letter == " ")][::3]
        return list(zip(starts, [*starts[1:], len(text)], strict=True))


OLD, NEW = HashingModel(), Wordy()


@dataclass
class Recorded:
    """Embeds and keeps the texts, after a call of ``before``; it may refuse some texts."""

    model: Model
    texts: list[str] = field(default_factory=list)
    before: Callable[[], Awaitable[None]] | None = None
    fails_after: int | None = None
    refuses: str | None = None
    is_away_for: str | None = None
    heals_after: int | None = None
    away: Unavailable = field(default_factory=lambda: Unavailable("embedder", "its endpoint did not answer"))
    failures: int = 0

    async def embed(self, texts: Sequence[str]) -> Any:
        return await BatchingEmbedder(self.model).embed(texts)

    async def embed_chunks(self, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        if self.before is not None:
            await self.before()
        if self.fails_after is not None and len(self.texts) >= self.fails_after:
            raise Unavailable("embedder", "the process was killed")
        is_away = self.is_away_for is not None and any(self.is_away_for in text for text in texts)
        if is_away and self.failures != self.heals_after:
            self.failures += 1
            raise self.away
        if self.refuses is not None and any(self.refuses in text for text in texts):
            raise TextRefused("embedder", "its endpoint answers 413")
        self.texts += texts
        return await BatchingEmbedder(self.model).embed_chunks(texts)


@asynccontextmanager
async def served(url: str, folder: Path, model: Model) -> AsyncIterator[Application]:
    """Run the application as its deployments do: indexes of their generation, which are filled if they are new."""
    async with running(settings_for(url, folder), url, model, follow=False) as app:
        for parts in app.tiers.values():
            for projection in parts.new:
                enqueue_all(url, projection)
        await app.indexed()
        yield app


def job_of(app: Application, embedder: Recorded, page_rows: int = 2) -> ReembedJob:
    policy = ReembedPolicy(embedder.model.identity, page_rows=page_rows)
    return ReembedJob(app.pool, embedder, policy, lambda: begin_building(app.url, policy.identity))


async def reembed(
    app: Application, embedder: Recorded | None = None, *, page_rows: int = 2, moment: datetime | None = None
) -> Run:
    job = job_of(app, embedder or Recorded(NEW), page_rows)
    worker = Worker(app.pool, job, job_limits(app.settings, "reembed"))
    driver = Driver(
        app.url,
        app.pool,
        job_limits(app.settings, "reembed"),
        fan_out_over(worker.work, 2),
        partitions=3,
        undo_window=timedelta(days=30),
        clock=utc_now,
    )
    return await driver.start(Order("reembed", Area(), moment or datetime.now(UTC)))


def rows(url: str, text: str, *values: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(text.encode(), values)
        return cursor.fetchall() if cursor.description else []


async def put(app: Application, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await app.client().post(path, json=body)
    assert answer.status_code in {200, 201}, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def fill(app: Application, workspace: str = "default") -> None:
    """Write some of everything that has vectors."""
    place = {"workspace": workspace}
    messages = [
        {"role": "user", "content": f"Ann Lee moved boat number {n} to the old harbour at noon"} for n in range(5)
    ]
    await put(app, "/v1/turns", {**place, "session": "s", "messages": messages})
    for text in ("the green boat leaks at the stern", "the red boat has a new mast", "harbour fees rose in spring"):
        await put(app, "/v1/notes", {**place, "content": text})
    await put(
        app,
        "/v1/documents",
        {**place, "title": "Boats", "content": "# Care\n\nPaint the hull in spring.\n\n# Sale\n\nNone."},
    )
    await put(app, "/v1/procedures", {**place, "trigger": "the engine of a boat stalls", "action": "check the fuel"})
    await app.indexed()


VECTORS = """
SELECT 'message', m.id, c.generation, c.text_start, c.text_end,
       CASE WHEN m.name IS NULL THEN m.content ELSE m.name || ': ' || m.content END, c.embedding::real[], NULL
FROM messages m JOIN message_chunks c ON c.message_id = m.id
UNION ALL SELECT 'compacted', m.id, c.generation, c.text_start, c.text_end, m.content, c.embedding::real[], NULL
FROM messages m JOIN compacted_chunks c ON c.message_id = m.id
UNION ALL SELECT 'note', n.id, c.generation, c.text_start, c.text_end, n.content, c.embedding::real[], c.tsv::text
FROM notes n JOIN note_chunks c ON c.note_id = n.id
UNION ALL SELECT 'passage', p.id, c.generation, c.text_start, c.text_end,
                 d.title || '|' || coalesce(p.heading, '') || '|' || p.content, c.embedding::real[], c.tsv::text
FROM passages p JOIN documents d ON d.id = p.document_id JOIN passage_chunks c ON c.passage_id = p.id
UNION ALL SELECT 'entity', id, generation, 0, NULL, name, embedding::real[], NULL FROM entities
UNION ALL SELECT 'entity', entity_id, o.generation, 0, NULL, e.name, o.embedding::real[], NULL
FROM entity_embeddings o JOIN entities e ON e.id = o.entity_id
UNION ALL SELECT 'procedure', id, generation, 0, NULL, trigger, embedding::real[], NULL FROM procedures
UNION ALL SELECT 'procedure', procedure_id, o.generation, 0, NULL, p.trigger, o.embedding::real[], NULL
FROM procedure_embeddings o JOIN procedures p ON p.id = o.procedure_id
ORDER BY 1, 2, 3, 4
"""


def vectors(url: str, generation: int) -> list[tuple[Any, ...]]:
    return [row for row in rows(url, VECTORS) if row[2] == generation]


def owners(url: str, generation: int) -> set[tuple[str, UUID]]:
    return {(kind.replace("compacted", "message"), id_) for kind, id_, *_ in vectors(url, generation)}


def is_made_by(model: Model, row: tuple[Any, ...]) -> bool:
    kind, _, _, start, end, text, embedding, _ = row
    if kind == "passage":
        title, heading, content = text.split("|")
        text = passage_text(title, heading or None, content)
    if end is None:
        chunks = [text[begin:stop] for begin, stop in model.spans(text)]
        mean = model.encode(chunks).mean(axis=0)
        expected = mean / np.linalg.norm(mean)
    else:
        expected = model.encode([text[start:end]])[0]
    return bool(np.allclose(expected, embedding, atol=1e-5))


async def found(
    app: Application, query: str = "green boat harbour", workspace: str = "default"
) -> list[tuple[Any, ...]]:
    answer = await app.client().post("/v1/search", json={"query": query, "workspace": workspace})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["failed"] == [] if "failed" in body else True
    return [(item["id"], round(item["score"], 6)) for item in body["results"]]


async def nearest(app: Application, text: str, tier: str, source: Source) -> dict[str, float]:
    generation = claim_generation(app.url, app.model.identity).number
    row = app.model.encode([text])[0].astype(np.float32)
    query = Query(
        text, tuple(words(text)), Scope("acme"), 20, embedding=row.tobytes(), generation=generation, late_rows=False
    )
    hits = (await app.tiers[tier].searcher.search(query))[source]  # type: ignore[index]
    assert isinstance(hits, tuple), hits
    return {hit.memory.content: hit.raw["cosine"] for hit in hits if "cosine" in hit.raw}


async def test_reads_stay_up_with_the_old_vectors_while_new_ones_are_made(database: str, tmp_path: Path) -> None:
    async with served(database, tmp_path, OLD) as app:
        await fill(app)
        before, answers = await found(app), []

        async def search() -> None:
            answers.append(await found(app))

        run = await reembed(app, Recorded(NEW, before=search))

        assert run.state is RunState.DONE
        assert len(answers) > 5
        assert all(answer == before for answer in [*answers, await found(app)])
        assert owners(database, 1) == owners(database, 2)
        assert all(is_made_by(OLD, row) for row in vectors(database, 1))
        assert all(is_made_by(NEW, row) for row in vectors(database, 2))
        assert len(vectors(database, 2)) > len(vectors(database, 1))


async def test_after_the_switch_no_search_compares_vectors_of_two_models(database: str, tmp_path: Path) -> None:
    async with served(database, tmp_path, OLD) as app:
        await fill(app)
        await reembed(app)
    async with served(database, tmp_path, NEW) as app:
        for tier, source, text in (
            ("notes", Source.NOTES_HYBRID, "the red boat has a new mast"),
            ("sessions", Source.SESSION_VECTORS, "Ann Lee moved to the old harbour"),
            ("documents", Source.DOCUMENTS, "Boats need paint for the hull"),
        ):
            asked, cosines = NEW.encode([text])[0], await nearest(app, text, tier, source)

            assert cosines
            for excerpt, cosine in cosines.items():
                nearest_of = max(
                    float(np.asarray(row[6]) @ asked) for row in vectors(database, 2) if excerpt.strip() in row[5]
                )
                assert cosine == pytest.approx(nearest_of, abs=0.02), excerpt
        assert all(is_made_by(NEW, row) for row in vectors(database, 2))
        assert all(is_made_by(OLD, row) for row in vectors(database, 1))


@pytest.mark.parametrize("again", ["restored", "written"])
async def test_what_came_back_from_the_trash_after_the_switch_is_found_by_its_new_vector(
    database: str, tmp_path: Path, again: str
) -> None:
    text = "violet zeppelins hover over Quito"
    messages = [{"content": text}]
    async with served(database, tmp_path, OLD) as app:
        await fill(app)
        trashed = [
            ("notes", (await put(app, "/v1/notes", {"content": text}))["id"]),
            ("messages", (await put(app, "/v1/turns", {"session": "t", "messages": messages}))["messages"][0]["id"]),
            ("documents", (await put(app, "/v1/documents", {"title": "Airships", "content": text}))["id"]),
            ("procedures", (await put(app, "/v1/procedures", {"trigger": text, "action": "look up"}))["id"]),
        ]
        for kind, id_ in trashed:
            assert (await app.client().delete(f"/v1/{kind}/{id_}")).status_code == 204
        await reembed(app)
    async with served(database, tmp_path, NEW) as app:
        if again == "written":
            await put(app, "/v1/notes", {"content": text})
        for _, id_ in trashed[again == "written" :]:
            assert (await app.client().post(f"/v1/trash/{id_}/restore")).is_success
        await app.indexed()

        found_by = {
            source: await nearest(app, text, tier, source)
            for tier, source in (
                ("notes", Source.NOTES_HYBRID),
                ("sessions", Source.SESSION_VECTORS),
                ("documents", Source.DOCUMENTS),
            )
        }
        embedded = {id_ for _, id_ in owners(database, 2)}
        late = await reembed(app)

    for source, hits in found_by.items():
        assert max((cosine for content, cosine in hits.items() if "zeppelins" in content), default=0) > 0.5, source
    assert {UUID(id_) for kind, id_ in trashed if kind != "documents"} <= embedded
    assert late.counts.changed == 0


async def nearest_entities(app: Application, name: str, generation: int) -> dict[UUID, float]:
    parameters = {
        "tenant": "acme",
        "workspace": "default",
        "namespace": "default",
        "generation": generation,
        "limit": 10,
        "min_similarity": -1,
        "passages": 0,
        "user_id": None,
        "shared_only": False,
        "keys": [],
        "common": 1,
        "around": 0,
        "entities_ef": "32",
        "embedding": Vector(app.model.encode([name])[0]),
    }
    async with app.pool.connection() as connection:
        cursor = await connection.execute(QUERIES["find_seeds"], parameters)
        return {row["id"]: row["cosine"] async for row in cursor}


async def test_entities_and_procedures_are_compared_by_the_vectors_of_one_model(database: str, tmp_path: Path) -> None:
    async with served(database, tmp_path, OLD) as app:
        await fill(app)
        await reembed(app)
        assert claim_generation(database, NEW.identity).number == 2
        await put(app, "/v1/procedures", {"trigger": "an old replica wrote this", "action": "x"})
    async with served(database, tmp_path, NEW) as app:
        await put(app, "/v1/graph/entities", {"entities": [{"name": "Berta Boat"}]})
        await put(app, "/v1/procedures", {"trigger": "the engine of a boat is loud", "action": "grease it"})
        entities = await nearest_entities(app, "Berta Boat", 2)
        texts = "the engine of a boat stalls", "the engine of a boat is loud", "an old replica wrote this"
        matches = [await nearest(app, text, "procedures", Source.PROCEDURES) for text in texts]

        made = {row[1]: np.asarray(row[6]) for row in vectors(database, 2)}
        assert set(entities) == {row[1] for row in vectors(database, 2) if row[0] == "entity"}
        asked = NEW.encode(["Berta Boat"])[0]
        for id_, cosine in entities.items():
            assert cosine == pytest.approx(float(made[id_] @ asked), abs=1e-5)
        for text, match in zip(texts[:2], matches, strict=False):
            triggers = [np.asarray(row[6]) for row in vectors(database, 2) if row[0] == "procedure"]
            best = max(float(trigger @ NEW.encode([text])[0]) for trigger in triggers)
            assert max(match.values()) == pytest.approx(best, abs=1e-5), text
        assert not any(cosine > 0.9 for cosine in matches[2].values())


async def test_a_trigger_that_changed_since_is_not_found_by_what_it_was(database: str, tmp_path: Path) -> None:
    async with served(database, tmp_path, OLD) as old:
        await fill(old)
        await reembed(old)
        async with served(database, tmp_path, NEW) as app:
            procedure = (await app.client().get("/v1/procedures")).json()["procedures"][0]
            path = f"/v1/procedures/{procedure['id']}"
            await old.client().patch(path, json={"trigger": "sails tear"})
            by_old_replica = await nearest(app, "the engine of a boat stalls", "procedures", Source.PROCEDURES)
            await reembed(app)
            caught_up = await nearest(app, "sails tear", "procedures", Source.PROCEDURES)

            assert by_old_replica == {}
            assert list(caught_up.values()) == [pytest.approx(1)]


async def test_a_second_run_embeds_nothing(database: str, tmp_path: Path) -> None:
    async with served(database, tmp_path, OLD) as app:
        await fill(app)
        first, second, again = Recorded(NEW), Recorded(NEW), Recorded(OLD)
        runs = [await reembed(app, embedder) for embedder in (first, second, again)]

        assert runs[0].counts.changed == runs[0].counts.planned == len(first.texts) == len(owners(database, 2))
        assert [run.counts.planned for run in runs[1:]] == [0, 0]
        assert second.texts == again.texts == []


REFUSED = "the green boat leaks at the stern"


async def found_by_words(app: Application, text: str) -> list[str]:
    generation = claim_generation(app.url, app.model.identity).number
    query = Query(text, tuple(words(text)), Scope("acme"), 20, generation=generation, late_rows=False)
    hits = (await app.tiers["notes"].searcher.search(query))[Source.NOTES_WARM]
    assert isinstance(hits, tuple), hits
    return [hit.memory.content for hit in hits]


@pytest.mark.parametrize("page_rows", [2, 256])
async def test_a_text_that_the_model_refuses_is_named_and_found_by_words_and_holds_up_no_other(
    database: str, tmp_path: Path, page_rows: int
) -> None:
    async with served(database, tmp_path, OLD) as app:
        await fill(app)
        [(refused,)] = rows(database, "SELECT id FROM notes WHERE content = %s", REFUSED)

        run = await reembed(app, Recorded(NEW, refuses=REFUSED), page_rows=page_rows)

        assert run.state is RunState.DONE
        [problem] = run.problems
        assert str(refused) in problem
        assert "answers 413" in problem
        assert run.counts.planned - run.counts.changed == 1
    async with served(database, tmp_path, NEW) as app:
        near = await nearest(app, REFUSED, "notes", Source.NOTES_HYBRID)
        by_words = await found_by_words(app, "leaks stern")
        again = await reembed(app, Recorded(NEW, refuses=REFUSED), page_rows=page_rows)
        accepting = Recorded(NEW)
        late = await reembed(app, accepting, page_rows=page_rows)
        last = Recorded(NEW)
        await reembed(app, last, page_rows=page_rows)

    assert claim_generation(database, NEW.identity).number == 2
    assert owners(database, 1) == owners(database, 2)
    assert by_words == [REFUSED]
    assert near.get(REFUSED, 0) < 0.3
    assert (again.problems, again.counts.changed) == (run.problems, 0)
    assert (late.problems, late.counts.changed, accepting.texts) == ((), 1, [REFUSED])
    assert all(is_made_by(NEW, row) for row in vectors(database, 2))
    assert last.texts == []
    assert rows(database, "SELECT count(*) FROM refused_texts") == [(0,)]


async def test_a_text_at_which_the_model_fails_each_time_holds_up_no_other(database: str, tmp_path: Path) -> None:
    async with served(database, tmp_path, OLD) as app:
        await fill(app)
        failing = Recorded(NEW, is_away_for=REFUSED)

        run = await reembed(app, failing)
        late = await reembed(app)

    assert run.state is RunState.DONE
    [problem] = run.problems
    assert "did not answer" in problem
    assert failing.failures >= 4
    assert run.counts.planned - run.counts.changed == 1
    assert (late.problems, late.counts.changed) == ((), 1)
    assert all(is_made_by(NEW, row) for row in vectors(database, 2))


async def test_a_text_that_was_embedded_at_the_second_try_is_not_refused(database: str, tmp_path: Path) -> None:
    async with served(database, tmp_path, OLD) as app:
        await fill(app)
        run = await reembed(app, Recorded(NEW, is_away_for=REFUSED, heals_after=2))

    assert (run.state, run.problems) == (RunState.DONE, ())
    assert rows(database, "SELECT count(*) FROM refused_texts") == [(0,)]
    assert all(is_made_by(NEW, row) for row in vectors(database, 2))


@pytest.mark.parametrize("kind", [ModelLimit, Overloaded])
async def test_a_limit_that_a_long_text_meets_and_a_short_one_does_not_refuses_no_text(
    database: str, tmp_path: Path, kind: type[Unavailable]
) -> None:
    async with served(database, tmp_path, OLD) as app:
        await fill(app)

        with pytest.raises(kind):
            await reembed(app, Recorded(NEW, is_away_for=REFUSED, away=kind("embedder", "its limit is reached")))

        assert rows(database, "SELECT count(*) FROM refused_texts") == [(0,)]


async def test_refused_texts_of_every_kind_are_tried_again_and_near_to_nothing(database: str, tmp_path: Path) -> None:
    async with served(database, tmp_path, OLD) as app:
        await fill(app)
        run = await reembed(app, Recorded(NEW, refuses="n"))
        stand_ins = [np.asarray(row[6]) for row in vectors(database, 2) if not is_made_by(NEW, row)]
        kinds = {row[0] for row in vectors(database, 2) if not is_made_by(NEW, row)}
        number = activate_generation(database, NEW.identity, grace=timedelta(seconds=-60)).number
        late = await reembed(app)

    distinct = {tuple(row.round(5)): row for row in stand_ins}
    nearness = [abs(float(one @ other)) for one in distinct.values() for other in distinct.values() if one is not other]
    assert run.state is RunState.DONE
    assert kinds == {"message", "note", "passage", "entity", "procedure"}
    assert max(nearness) < 0.3
    assert number == 2
    assert late.problems == ()
    assert all(is_made_by(NEW, row) for row in vectors(database, 2))


@pytest.mark.parametrize(
    "embedder", [Recorded(NEW, refuses=""), Recorded(NEW, refuses=REFUSED, is_away_for=PROBE)], ids=["all", "probe"]
)
async def test_a_model_that_takes_nothing_or_is_away_holds_the_run_up_and_refuses_no_text(
    database: str, tmp_path: Path, embedder: Recorded
) -> None:
    async with served(database, tmp_path, OLD) as app:
        await fill(app)

        with pytest.raises(Unavailable):
            await reembed(app, embedder)
        refused = rows(database, "SELECT count(*) FROM refused_texts")
        run = await reembed(app)

    assert refused == [(0,)]
    assert run.problems == ()
    assert owners(database, 1) == owners(database, 2)
    assert all(is_made_by(NEW, row) for row in vectors(database, 2))


async def test_a_refused_text_that_is_changed_or_deleted_meanwhile_is_forgotten(database: str, tmp_path: Path) -> None:
    async with served(database, tmp_path, OLD) as app:
        await fill(app)
        await reembed(app, Recorded(NEW, refuses="boat"))
    async with served(database, tmp_path, NEW) as app:
        notes = {note["content"]: note["id"] for note in (await app.client().get("/v1/notes")).json()["notes"]}
        await app.client().patch(f"/v1/notes/{notes[REFUSED]}", json={"content": "the ferry was sold"})

        embedder = Recorded(NEW, refuses="boat")
        run = await reembed(app, embedder)
        rows(database, "DELETE FROM notes")
        await end_refusals(app.pool)

        assert not any(notes[REFUSED] in problem for problem in run.problems)
        assert "the ferry was sold" in embedder.texts
        assert rows(database, "SELECT count(*) FROM refused_texts JOIN messages USING (id)")[0][0] > 0
        assert rows(
            database, "SELECT count(*) FROM refused_texts WHERE id = ANY(%s)", list(map(UUID, notes.values()))
        ) == [(0,)]


@pytest.mark.parametrize("killed_after", [1, 8])
async def test_a_run_that_was_killed_goes_on_where_it_stood(database: str, tmp_path: Path, killed_after: int) -> None:
    async with served(database, tmp_path, OLD) as app:
        await fill(app)
        killed, resumed = Recorded(NEW, fails_after=killed_after), Recorded(NEW)
        with pytest.raises(Unavailable):
            await reembed(app, killed)
        partly = owners(database, 2)
        await reembed(app, resumed)

        assert 0 < len(partly) < len(owners(database, 2)) == len(owners(database, 1))
        assert len(killed.texts) + len(resumed.texts) == len(owners(database, 2))
        assert all(is_made_by(NEW, row) for row in vectors(database, 2))


async def test_what_is_written_while_vectors_are_made_is_caught_up(database: str, tmp_path: Path) -> None:
    async with served(database, tmp_path, OLD) as app:
        await fill(app)
        await reembed(app)
        note, other, *_ = (await app.client().get("/v1/notes")).json()["notes"]
        procedure = (await app.client().get("/v1/procedures")).json()["procedures"][0]
        await app.client().patch(f"/v1/notes/{note['id']}", json={"content": "the boat sank"})
        await app.client().patch(f"/v1/procedures/{procedure['id']}", json={"trigger": "the boat is on fire"})
        await app.client().delete(f"/v1/notes/{other['id']}")
        await fill(app, "later")

        with pytest.raises(Misconfigured, match=r"4 notes, .* are left\)"):
            activate_generation(database, NEW.identity, grace=timedelta(seconds=-60))
        embedder = Recorded(NEW)
        await reembed(app, embedder)

        assert {"the boat sank", "the boat is on fire"} < set(embedder.texts)
        assert embedder.texts.count(other["content"]) == 1  # The one of the other workspace.
        assert activate_generation(database, NEW.identity, grace=timedelta(seconds=-60)).number == 2
        assert all(is_made_by(NEW, row) for row in vectors(database, 2))


async def test_only_what_is_young_may_be_left_at_the_switch(database: str, tmp_path: Path) -> None:
    async with served(database, tmp_path, OLD) as app:
        await fill(app)
        await reembed(app)
        await put(app, "/v1/notes", {"content": "written between the run and the switch"})

        with pytest.raises(Misconfigured, match=r"\(1 notes are left\)"):
            activate_generation(database, NEW.identity, grace=AT_ONCE)
        assert claim_generation(database, OLD.identity).number == 1
        assert claim_generation(database, NEW.identity).number == 2


async def test_a_generation_that_lacks_anything_older_is_refused(database: str, tmp_path: Path) -> None:
    lost = {
        "procedures": "procedure_embeddings",
        "entities": "entity_embeddings",
        "passages": "passage_chunks",
        "notes": "note_chunks",
        "messages": "message_chunks",
    }
    async with served(database, tmp_path, OLD) as app:
        await fill(app)
        await reembed(app)
        for kind, table in lost.items():
            kept = f"SELECT * FROM {table} WHERE generation = 2"  # noqa: S608 - a table's name
            rows(database, f"CREATE TABLE kept_{kind} AS {kept}")
            rows(database, f"DELETE FROM {table} WHERE generation = 2")  # noqa: S608

            with pytest.raises(Misconfigured, match=rf"\(\d+ {kind} are left\)"):
                activate_generation(database, NEW.identity, grace=AT_ONCE)
            rows(database, f"INSERT INTO {table} SELECT * FROM kept_{kind}")  # noqa: S608
        assert activate_generation(database, NEW.identity, grace=AT_ONCE).number == 2


async def test_what_replicas_of_the_old_model_wrote_after_the_switch_is_caught_up_and_found(
    database: str, tmp_path: Path
) -> None:
    async with served(database, tmp_path, OLD) as before:
        await fill(before)
        await reembed(before)
        async with served(database, tmp_path, NEW) as after:
            await put(before, "/v1/notes", {"content": "the anchor lies at buoy seven"})
            await put(before, "/v1/procedures", {"trigger": "the anchor slips", "action": "let out more chain"})
            await after.indexed()
            lost = await found(after, "anchor buoy seven")
            run = await reembed(after)
            await after.indexed()
            caught = await found(after, "anchor buoy seven")

            assert run.counts.changed >= 2
            anchor = rows(database, "SELECT id FROM notes WHERE content LIKE '%%anchor%%'")[0][0]
            assert str(anchor) not in {id_ for id_, _ in lost}
            assert str(anchor) in {id_ for id_, _ in caught}
            assert all(is_made_by(NEW, row) for row in vectors(database, 2))
            assert owners(database, 1) == owners(database, 2)


async def test_cold_notes_and_compacted_messages_stay_where_they_are(database: str, tmp_path: Path) -> None:
    async with served(database, tmp_path, OLD) as app:
        await fill(app)
        rows(database, "UPDATE notes SET temperature = 'cold' WHERE content LIKE '%%mast%%'")
        rows(database, "UPDATE note_chunks SET tsv = NULL FROM notes WHERE id = note_id AND temperature = 'cold'")
        rows(database, "UPDATE messages SET compacted_at = now() WHERE position <= 2")
        copied = "INSERT INTO compacted_chunks SELECT c.* FROM message_chunks c JOIN messages m ON m.id = message_id"
        rows(database, f"{copied} WHERE compacted_at IS NOT NULL")
        rows(database, "DELETE FROM message_chunks USING messages WHERE id = message_id AND compacted_at IS NOT NULL")
        await reembed(app)

        made = vectors(database, 2)
        words_of = {(row[5], row[7] is None) for row in made if row[0] == "note"}
        assert {is_blank for text, is_blank in words_of if "mast" in text} == {True}
        assert {is_blank for text, is_blank in words_of if "mast" not in text} == {False}
        live, compacted = ({row[1] for row in made if row[0] == kind} for kind in ("message", "compacted"))
        assert (len(compacted), live & compacted) == (2, set())
        assert owners(database, 1) == owners(database, 2)


async def test_chunks_that_a_compaction_left_behind_go_where_they_belong(database: str, tmp_path: Path) -> None:
    async with served(database, tmp_path, OLD) as app:
        await fill(app)
        await reembed(app)
        rows(database, "UPDATE messages SET compacted_at = now() WHERE position = 1")
        await reembed(app)

        first = rows(database, "SELECT id FROM messages WHERE position = 1")[0][0]
        assert {row[0] for row in vectors(database, 2) if row[1] == first} == {"compacted"}


async def test_what_changes_between_reading_and_writing_is_left_to_the_next_run(database: str, tmp_path: Path) -> None:
    async with served(database, tmp_path, OLD) as app:
        await fill(app)

        async def change() -> None:
            embedder.before = None
            rows(database, "UPDATE notes SET content = 'x', content_hash = sha256('x') WHERE content LIKE '%%mast%%'")
            rows(database, "UPDATE notes SET deleted_at = now() WHERE content LIKE '%%fees%%'")
            rows(database, "DELETE FROM documents")
            rows(database, "UPDATE procedures SET trigger = 'y'")

        job = job_of(app, embedder := Recorded(NEW), page_rows=50)
        area, at = Area("acme", "default", "default"), datetime.now(UTC)
        pages = [await job.decide(area, {"step": step, "id": None}, at) for step in ("notes", "passages", "procedures")]
        await change()
        async with app.pool.connection() as connection:
            counts = [await job.act(RowWriter(connection, None, at), area, page.plan) for page in pages]  # type: ignore[arg-type]

        assert pages[0].planned > 2
        assert [count.changed for count in counts] == [pages[0].planned - 2, 0, 0]
        assert all(is_made_by(NEW, row) for row in vectors(database, 2))


async def test_the_vectors_before_the_switch_go_once_one_cannot_go_back_any_more(database: str, tmp_path: Path) -> None:
    async with served(database, tmp_path, OLD) as app:
        await fill(app)
        await reembed(app)
    async with served(database, tmp_path, NEW) as app:
        before = await found(app)
        kept = await reembed(app, moment=datetime.now(UTC) + timedelta(days=29))
        has_old = bool(vectors(database, 1))
        gone = await reembed(app, moment=datetime.now(UTC) + timedelta(days=31))
        again = await reembed(app, moment=datetime.now(UTC) + timedelta(days=31))

        assert (kept.counts.changed, has_old) == (0, True)
        assert gone.counts.changed == gone.counts.planned > 5
        assert {row[0] for row in vectors(database, 1)} == {"entity", "procedure"}  # In their rows, for nothing.
        assert again.counts.planned == 0
        assert await found(app) == before


async def test_one_can_go_back_to_the_model_before(database: str, tmp_path: Path) -> None:
    async with served(database, tmp_path, OLD) as app:
        await fill(app)
        first = await found(app)
        await reembed(app)
    async with served(database, tmp_path, NEW) as app:
        await put(app, "/v1/notes", {"content": "written with the new model", "workspace": "later"})
        back = Recorded(OLD)
        await reembed(app, back)
    async with served(database, tmp_path, OLD) as app:
        assert back.texts == ["written with the new model"]
        assert await found(app) == first
        assert await found(app, "written model", "later")
        assert all(is_made_by(OLD, row) for row in vectors(database, 1))


async def test_an_undo_drops_what_is_being_built_and_leaves_what_searches_read(database: str, tmp_path: Path) -> None:
    async with served(database, tmp_path, OLD) as app:
        await fill(app)
        before = vectors(database, 1)
        run = await reembed(app)
        undo = Undo(database, app.pool, job_of(app, Recorded(NEW)), window=timedelta(days=1))
        undone = await undo.undo(run.id, datetime.now(UTC))

        assert undone.changed == len(owners(database, 1))
        assert (vectors(database, 1), vectors(database, 2)) == (before, [])

        run = await reembed(app)
        activate_generation(database, NEW.identity)
        with pytest.raises(Conflict, match="searches read the vectors of hashing-384-2; to go back"):
            await undo.undo(run.id, datetime.now(UTC))
        assert owners(database, 2) == owners(database, 1)


async def test_where_nothing_is_written_a_run_still_begins_the_generation(database: str, tmp_path: Path) -> None:
    async with served(database, tmp_path, OLD) as app:
        note = await put(app, "/v1/notes", {"content": "a"})
        await app.client().delete(f"/v1/notes/{note['id']}")
        run = await reembed(app)

        assert run.counts.changed == 0
        assert activate_generation(database, NEW.identity, grace=AT_ONCE).number == 2
