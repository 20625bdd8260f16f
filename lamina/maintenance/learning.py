"""The job learning: runs of agents with an outcome propose procedures, and strengthen or weaken them."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import Vector
from psycopg.rows import DictRow

from lamina.aio.deadline import deadline
from lamina.core.areas import Area
from lamina.core.memories import JOB_SOURCE
from lamina.core.ports import Embedder, ModelIdentity
from lamina.core.procedures import Procedure, ProcedureOutcome
from lamina.core.runs import RunCounts
from lamina.core.scope import Scope
from lamina.errors import Conflict, TextRefused
from lamina.ingest.embedding import embed_each
from lamina.maintenance.job import Page, PageCursor
from lamina.maintenance.row_writer import RowWriter
from lamina.models.batching import mean_vector
from lamina.policies.retention.learning import (
    LearningPolicy,
    Lesson,
    Lessons,
    TaughtRun,
    action_of,
    learn,
    situation,
    steps_of,
)
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.generations import require_generation
from lamina.stores.postgres.learning import find_learnt, find_live, find_runs, lock_runs, mark_learnt
from lamina.stores.postgres.procedures import (
    LearntOrigin,
    PreparedProcedure,
    insert_procedures,
    report_outcome,
    reword_procedure,
)

SOURCE = f"{JOB_SOURCE}learning"
PAGE_RUNS = 200


@dataclass(frozen=True, slots=True)
class LearningPlan:
    """The changes of one page.

    Args:
        lessons: What each run taught.
        rows: The runs as they were read, by id.
        vectors: Of the triggers of new and reworded procedures, by their ids.
        generation: Of the vectors.
    """

    lessons: Lessons
    rows: Mapping[UUID, DictRow]
    vectors: Mapping[UUID, Vector]
    generation: int


class LearningJob:
    """Learns procedures from runs, each once: an interrupted run of the job goes on with the runs that are left.

    Args:
        pool: Connections to Postgres.
        embedder: Embeds situations.
        identity: Of its model.
        policy: The conditions.
        deadline_s: Seconds after which it gives up on the embedder.
        page_runs: Runs that are learnt from together.
    """

    def __init__(
        self,
        pool: Pool,
        embedder: Embedder,
        identity: ModelIdentity,
        policy: LearningPolicy,
        *,
        deadline_s: float,
        page_runs: int = PAGE_RUNS,
    ) -> None:
        self._pool = pool
        self._embedder = embedder
        self._identity = identity
        self._policy = policy
        self._deadline_s = deadline_s
        self._page_runs = page_runs

    async def decide(self, area: Area, after: PageCursor, moment: datetime) -> Page[LearningPlan]:  # noqa: ARG002 - in their order
        """Read one page of runs, and compare them with the procedures learnt before."""
        rows = await find_runs(self._pool, area, after=after, limit=self._page_runs)
        if not rows:
            return Page(None)
        generation = (await require_generation(self._pool, self._identity)).number
        runs, refusals = await self._read(rows)
        known = await find_learnt(
            self._pool,
            area,
            [run for run in runs if run.situation and run.steps],
            generation=generation,
            min_similarity=self._policy.min_similarity,
        )
        lessons = await asyncio.to_thread(learn, runs, known, self._policy)
        triggers = {id_: item.trigger for id_, item in lessons.proposed.items()} | dict(lessons.reworded)
        embedded = dict(zip(triggers, await self._embed(list(triggers.values())), strict=True))
        vectors = {id_: Vector(one) for id_, one in embedded.items() if not isinstance(one, TextRefused)}
        lessons = _without(lessons, embedded.keys() - vectors.keys())
        last = rows[-1]
        following = {"at": last["recorded_at"].isoformat(), "id": str(last["id"])}
        return Page(
            LearningPlan(lessons, {row["id"]: row for row in rows}, vectors, generation),
            following if len(rows) == self._page_runs else None,
            seen=len(rows),
            planned=len({lesson.procedure for lesson in lessons.of_runs} - {None}),
            problems=refusals,
        )

    async def _read(self, rows: Sequence[DictRow]) -> tuple[list[TaughtRun], tuple[str, ...]]:
        """Return the runs, and in words those whose situation the model refuses: they teach nothing."""
        situations = [situation(row["said"]) for row in rows]
        embedded = iter(await self._embed([text for text in situations if text]))
        runs, refusals = list[TaughtRun](), list[str]()
        for row, text in zip(rows, situations, strict=True):
            vector = next(embedded) if text else np.zeros(0, np.float32)
            steps = steps_of(row["tools"])
            if isinstance(vector, TextRefused):
                refusals.append(f"turn {row['id']}: {vector.part}: {vector.reason}; it teaches no procedure")
                run = TaughtRun(row["id"], row["user_id"], "", steps, row["succeeded"], np.zeros(0, np.float32))
            else:
                run = TaughtRun(row["id"], row["user_id"], text, steps, row["succeeded"], vector)
            runs.append(run)
        return runs, tuple(refusals)

    async def _embed(self, texts: Sequence[str]) -> list[NDArray[np.float32] | TextRefused]:
        if not texts:
            return []
        async with deadline("embedder", self._deadline_s):
            found = await embed_each(self._embedder.embed_chunks, texts)
        return [one if isinstance(one, TextRefused) else mean_vector(one) for one in found]

    async def act(self, writer: RowWriter, area: Area, plan: LearningPlan) -> RunCounts:
        """Write proposals, count outcomes, and mark the runs; runs that were erased meanwhile teach nothing."""
        present = await lock_runs(writer.connection, sorted(plan.rows))
        lessons = [lesson for lesson in plan.lessons.of_runs if lesson.run.id in present]
        names = await self._write_procedures(writer, area, plan, lessons)
        changed: set[UUID] = set()
        taught: dict[UUID, UUID | None] = {}
        for lesson in lessons:
            id_ = None if lesson.procedure is None else names.get(lesson.procedure)
            if lesson.procedure is not None and id_ is None:
                continue  # Its procedure went meanwhile: the next run decides again.
            taught[lesson.run.id] = id_
            if id_ is not None:
                await self._count(writer, area, plan.rows[lesson.run.id], id_)
                changed.add(id_)
        await mark_learnt(writer.connection, taught, writer.moment)
        if changed:
            writer.bump(area.scope(), teaches=True)
        return RunCounts(changed=len(changed))

    async def _write_procedures(
        self, writer: RowWriter, area: Area, plan: LearningPlan, lessons: Sequence[Lesson]
    ) -> Mapping[UUID, UUID]:
        """Insert and reword procedures; return the id of each that is there, by that of the plan."""
        proposed = plan.lessons.proposed
        # The first run that is evidence for a proposal lent it its words: without it there is none.
        words_of: dict[UUID, UUID] = {}
        for lesson in plan.lessons.of_runs:
            if lesson.procedure is not None:
                words_of.setdefault(lesson.procedure, lesson.run.id)
        present = {lesson.run.id for lesson in lessons}
        names: dict[UUID, UUID] = {}
        for id_, item in sorted(proposed.items()):
            if words_of[id_] not in present:
                continue
            procedure = Procedure(
                item.trigger, action_of(item.steps), metadata={"learnt": {"steps": list(item.steps)}}, source=SOURCE
            )
            prepared = [PreparedProcedure(id_, procedure, plan.vectors[id_])]
            scope = area.scope().narrowed(user=item.user)
            origin = LearntOrigin(is_private=item.user is not None)
            [put] = await insert_procedures(
                writer.connection, scope, prepared, plan.generation, writer.moment, learnt=origin
            )
            names[id_] = put.id
        known = {lesson.procedure for lesson in lessons if lesson.procedure is not None} - proposed.keys()
        live = await find_live(writer.connection, sorted(known))
        for id_ in sorted(live & plan.lessons.reworded.keys()):
            trigger = plan.lessons.reworded[id_]
            await reword_procedure(
                writer.connection, area.tenant or "", id_, trigger, plan.vectors[id_], plan.generation, writer.moment
            )
        return names | {id_: id_ for id_ in live}

    async def _count(self, writer: RowWriter, area: Area, row: DictRow, id_: UUID) -> None:
        scope: Scope = area.scope().narrowed(agent=row["agent_id"])
        outcome = ProcedureOutcome(row["succeeded"], run=f"turn {row['id']}")
        # A caller may have reported a run of this name with the other result: that counts, and the turn has taught.
        with suppress(Conflict):
            await report_outcome(
                writer.connection, scope, id_, outcome, writer.moment, row["witness"], learning=self._policy
            )


def _without(lessons: Lessons, procedures: Collection[UUID]) -> Lessons:
    """Return lessons in which nothing teaches these procedures, of whose words the model makes no vector."""
    if not procedures:
        return lessons
    return Lessons(
        tuple(replace(one, procedure=None) if one.procedure in procedures else one for one in lessons.of_runs),
        {id_: item for id_, item in lessons.proposed.items() if id_ not in procedures},
        {id_: words for id_, words in lessons.reworded.items() if id_ not in procedures},
    )
