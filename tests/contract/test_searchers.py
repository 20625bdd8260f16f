"""What every source of search promises, on its real store."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from lamina.core.documents import Upload
from lamina.core.memories import Message, Note, Role
from lamina.core.paging import Page
from lamina.core.procedures import Procedure
from lamina.core.queries import Failure, Filters, Hit, Memory, Query, Ranking
from lamina.core.scope import Scope
from lamina.core.tiers import TIER_OF, TIERS, Source, Tier
from lamina.ingest.procedures import ProcedureRecorder
from lamina.models.hashing import HashingModel
from lamina.text.words import question_words
from tests.support.application import Application, fused_search, index_of, running, settings_for
from tests.support.jobs import area_of, in_days, run_job

SESSION_SOURCES = (Source.SESSION_VECTORS, Source.SESSION_WORDS, Source.SESSION_CONTEXT)
WARM_SOURCES = (Source.NOTES_HYBRID, Source.NOTES_WARM)
NOTE_SOURCES = (*WARM_SOURCES, Source.NOTES_COLD)
# Messages and notes may belong to a user and be long; procedures belong to a workspace.
WHOLE_SOURCES = (*SESSION_SOURCES, *NOTE_SOURCES)  # A document is found by its passages, one by one.
PERSONAL_SOURCES = (*WHOLE_SOURCES, Source.DOCUMENTS)
SOURCES = (*PERSONAL_SOURCES, Source.PROCEDURES)
TAGGED_SOURCES = (*NOTE_SOURCES, Source.PROCEDURES, Source.DOCUMENTS)
ACTION = "see the handbook"
NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
NEAR, FAR = 0.9, 0.5

ASKED = "The migration to Postgres failed on Friday night"
OTHERS = (
    "Purple elephants dance quietly under silver moons",
    "мой кот любит рыбу по утрам",
    "今日は成語しりとりをした",
    "שלום לכולם ותודה רבה",
    "Quarterly revenue grew eleven percent across every region",
)
OPERATORS = (
    "' OR 1=1; --",
    "& | ! ( :*",
    "a:* <-> b",
    '"unclosed',
    "%s %(x)s {0}",
    "\\",
    "🎉",
    "<|endoftext|>",
    "..",
    "-tea",
)
# Each line has one word of the question more than the next one.
GRADED = tuple(" ".join(ASKED.split()[:count]) + f" and so on {count}" for count in range(8, 2, -1))


@dataclass(frozen=True)
class Stage:
    """One source over an application, with the writes that feed it."""

    source: Source
    app: Application

    @property
    def tier(self) -> Tier:
        return TIER_OF[self.source]

    def scope(self, ids: dict[str, Any]) -> Scope:
        return Scope(**{"tenant": self.app.tenant, **ids})

    async def remember(self, *texts: str, tags: tuple[str, ...] = (), at: datetime = NOON, **ids: Any) -> list[UUID]:
        """Store the texts, as messages or notes, and index them."""
        recorder = self.app.services.recorder
        if self.tier is Tier.SESSIONS:
            scope = self.scope({"session": "s1", **ids})
            messages = [Message(Role.USER, text, occurred_at=at) for text in texts]
            stored = [item.id for item in (await recorder.record_turn(scope, messages)).messages]
        elif self.tier is Tier.PROCEDURES:
            procedures = [Procedure(text, ACTION, tags) for text in texts]
            put = await self._procedure_recorder(at).put(self.scope(ids), procedures)
            stored = [item.id for item in put.procedures]
        elif self.tier is Tier.DOCUMENTS:
            stored = await self._upload(texts, tags, at, ids)
        else:
            notes = [Note(text, tags=tags, event_at=at) for text in texts]
            stored = [item.id for item in (await recorder.put_notes(self.scope(ids), notes)).notes]
        await self.settle(ids)
        return stored

    async def settle(self, ids: dict[str, Any]) -> None:
        """Index what was stored; for the source of cold notes, demote it first."""
        if self.source is Source.NOTES_COLD:
            await run_job(self.app, "sweep", in_days(30), area=area_of(self.scope(ids)))
        await self.app.indexed()

    async def _upload(
        self, texts: Sequence[str], tags: tuple[str, ...], at: datetime, ids: dict[str, Any]
    ) -> list[UUID]:
        """Store each text as a document; return the ids of their passages."""
        parts = self.app.services.documents
        scope = self.scope(ids)
        read = [await parts.recorder.read(scope.tenant, Upload(text, tags=tags, event_at=at)) for text in texts]
        put = (await parts.recorder.put(scope, read)).documents
        passages = [await parts.reads.passages(scope.tenant, item.id, Page(1000)) for item in put]
        return [passage.id for of_document in passages for passage in of_document]

    def _procedure_recorder(self, at: datetime) -> ProcedureRecorder:
        """Return a recorder whose clock stands."""
        used = self.app.services.procedures.recorder
        return ProcedureRecorder(
            self.app.pool,
            used._embedder,
            generation=used._generation,
            clock=lambda: at,
            embed_deadline_s=60,
            metadata_limit=used.metadata_limit,
            learning=used._learning,
            trash=used._trash,
        )

    async def ask(self, text: str, *, limit: int = 10, filters: Filters | None = None, **ids: Any) -> Ranking:
        """Return the source's ranking for a question."""
        parts = self.app.tiers[next(name for name, spec in TIERS.items() if spec.tier is self.tier)]
        outcome = (await parts.searcher.search(self._query(text, limit, filters or Filters(), ids)))[self.source]
        assert not isinstance(outcome, Failure), outcome.reason
        return outcome

    def _query(self, text: str, limit: int, filters: Filters, ids: dict[str, Any]) -> Query:
        (row,) = self.app.model.encode([text])
        generation = fused_search(self.app)._generation
        asked = Query(text, tuple(question_words(text)), self.scope(ids), limit, filters, row.tobytes(), generation)
        return replace(asked, late_rows=False)  # So that the rows are read, and seen, too.


def contents(ranking: Ranking) -> list[str]:
    return [text_of(hit) for hit in ranking]


def text_of(hit: Hit) -> str:
    """Return what was stored; a procedure is shown with its action."""
    assert isinstance(hit.memory, Memory)
    return hit.memory.content.removeprefix("When: ").removesuffix(f"\nDo: {ACTION}")


def score_of(ranking: Ranking, text: str) -> float:
    return next((hit.score for hit in ranking if text_of(hit) == text), 0.0)


@pytest.fixture(params=SOURCES)
def stage(request: pytest.FixtureRequest, application: Application) -> Stage:
    return Stage(request.param, application)


@pytest.fixture(params=PERSONAL_SOURCES)
def personal_stage(request: pytest.FixtureRequest, application: Application) -> Stage:
    return Stage(request.param, application)


@pytest.fixture(params=TAGGED_SOURCES)
def tagged_stage(request: pytest.FixtureRequest, application: Application) -> Stage:
    return Stage(request.param, application)


@pytest.fixture(params=SESSION_SOURCES)
def session_stage(request: pytest.FixtureRequest, application: Application) -> Stage:
    return Stage(request.param, application)


@pytest.fixture(params=NOTE_SOURCES)
def note_stage(request: pytest.FixtureRequest, application: Application) -> Stage:
    return Stage(request.param, application)


@pytest.fixture(params=SOURCES)
def semantic_stage(request: pytest.FixtureRequest, semantic: Application) -> Stage:
    return Stage(request.param, semantic)


@pytest.fixture(params=WARM_SOURCES)
async def lagging(request: pytest.FixtureRequest, database: str, tmp_path: Path) -> AsyncIterator[Stage]:
    """A source whose index learns of changes only when the test says so."""
    async with running(settings_for(database, tmp_path), database, HashingModel(), follow=False) as app:
        yield Stage(request.param, app)


async def test_the_identical_text_is_first_with_a_score_near_1_and_an_unrelated_one_far_below(stage: Stage) -> None:
    texts = (ASKED, *OTHERS)
    await stage.remember(*texts)

    rankings = {asked: await stage.ask(asked) for asked in texts}

    for asked, ranking in rankings.items():
        assert contents(ranking)[0] == asked
        assert ranking[0].score > NEAR
        assert all(score_of(ranking, other) < FAR for other in texts if other != asked)


async def test_with_the_real_model_the_identical_text_is_first_and_an_unrelated_one_far_below(
    semantic_stage: Stage,
) -> None:
    for text in (ASKED, *OTHERS):
        await semantic_stage.remember(text, session=f"about {text[:20]}")

    rankings = {asked: await semantic_stage.ask(asked) for asked in (ASKED, OTHERS[0], OTHERS[1])}

    for asked, ranking in rankings.items():
        assert contents(ranking)[0] == asked
        assert ranking[0].score > NEAR
        assert all(hit.score < FAR for hit in ranking[1:])


@pytest.mark.parametrize("source", [Source.SESSION_VECTORS, Source.NOTES_HYBRID])
async def test_with_the_real_model_another_wording_is_found_by_its_meaning(
    semantic: Application, source: Source
) -> None:
    stage = Stage(source, semantic)
    await stage.remember("My favourite drink is tea", *OTHERS)

    ranking = await stage.ask("Which beverage do I like best?")

    assert contents(ranking)[0] == "My favourite drink is tea"


async def test_all_scores_lie_in_0_to_1_best_first_and_each_memory_comes_once(stage: Stage) -> None:
    ids = await stage.remember(*GRADED, *OTHERS, ASKED)

    for asked in (ASKED, "Postgres failed", "migration", OTHERS[2]):
        ranking = await stage.ask(asked)
        found = [hit.memory.id for hit in ranking]

        assert ranking
        assert all(0 <= hit.score <= 1 for hit in ranking)
        assert all(one.score >= other.score for one, other in pairwise(ranking))
        assert len(set(found)) == len(found)
        assert set(found) <= set(ids)


async def test_every_hit_tells_its_tier_and_the_figures_of_its_engine(stage: Stage) -> None:
    (id_,) = await stage.remember(ASKED, workspace="project", user="ann", agent="bot")

    (hit,) = await stage.ask(ASKED, workspace="project", user="ann")

    assert hit.memory.id == id_
    assert hit.memory.tier is stage.tier
    assert hit.memory.user == ("ann" if stage.source in PERSONAL_SOURCES else None)
    assert isinstance(hit.memory, Memory)
    assert hit.memory.agent == "bot"
    assert hit.memory.occurred_at == NOON
    assert hit.raw
    figures = {name for name in hit.raw if not name.startswith("signal_")}
    assert figures <= {"cosine", "bm25", "ts_rank_cd", "prefix", "overlap"}


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        pytest.param({"tenant": "tenant one"}, {"tenant": "tenant two"}, id="tenant"),
        pytest.param({"workspace": "foo"}, {"workspace": "foobar"}, id="workspace that starts alike"),
        pytest.param({"workspace": "foobar"}, {"workspace": "foo"}, id="workspace that goes on"),
        pytest.param({"workspace": "a_c"}, {"workspace": "abc"}, id="workspace like a pattern"),
        pytest.param({"workspace": "%"}, {"workspace": "anything"}, id="workspace of a wildcard"),
        pytest.param({"workspace": "Foo"}, {"workspace": "foo"}, id="workspace in another case"),
        pytest.param({"workspace": "Ünïcode"}, {"workspace": "Unicode"}, id="workspace with accents"),
        pytest.param({}, {"workspace": "other"}, id="default workspace"),
        pytest.param({"namespace": "n1"}, {"namespace": "n2"}, id="namespace"),
        pytest.param({"workspace": "a", "namespace": "b"}, {"workspace": "b", "namespace": "a"}, id="swapped"),
    ],
)
async def test_a_scope_sees_its_own_and_nothing_of_another(
    stage: Stage, mine: dict[str, str], theirs: dict[str, str]
) -> None:
    await _see_their_own(stage, mine, theirs)


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        pytest.param({"user": "john_doe"}, {"user": "johnXdoe"}, id="user like a pattern"),
        pytest.param({"user": "%"}, {"user": "ann"}, id="user of a wildcard"),
        pytest.param({"user": "a"}, {"user": "a&agent=b"}, id="user like a joined key"),
        pytest.param({"user": "ann"}, {"user": "Ann"}, id="user in another case"),
    ],
)
async def test_a_user_sees_their_own_and_nothing_of_another(
    personal_stage: Stage, mine: dict[str, str], theirs: dict[str, str]
) -> None:
    await _see_their_own(personal_stage, mine, theirs)


async def _see_their_own(stage: Stage, mine: dict[str, str], theirs: dict[str, str]) -> None:
    own = await stage.remember(ASKED, **mine, session="s1")
    other = await stage.remember(ASKED, **theirs, session="s2")

    seen, seen_by_other = await stage.ask(ASKED, **mine), await stage.ask(ASKED, **theirs)

    assert [hit.memory.id for hit in seen] == own
    assert [hit.memory.id for hit in seen_by_other] == other


async def test_a_user_sees_the_shared_memories_too(personal_stage: Stage) -> None:
    shared = await personal_stage.remember(ASKED, session="s1")
    own = await personal_stage.remember(ASKED, user="ann", session="s2")
    await personal_stage.remember(ASKED, user="bob", session="s3")

    seen = await personal_stage.ask(ASKED, user="ann")

    assert {hit.memory.id for hit in seen} == {*shared, *own}


async def test_a_session_narrows_the_messages(session_stage: Stage) -> None:
    await session_stage.remember(ASKED, session="s1")
    wanted = await session_stage.remember(ASKED, session="s2")

    assert [hit.memory.id for hit in await session_stage.ask(ASKED, session="s2")] == wanted
    assert len(await session_stage.ask(ASKED)) == 2


async def test_a_session_does_not_narrow_the_notes(note_stage: Stage) -> None:
    stored = await note_stage.remember(ASKED, session="s1")

    assert [hit.memory.id for hit in await note_stage.ask(ASKED, session="s2")] == stored


async def test_better_matches_of_another_session_do_not_hide_those_of_the_one_that_is_asked(
    session_stage: Stage,
) -> None:
    await session_stage.remember(*(f"{ASKED} {number}" for number in range(40)), session="other")
    wanted = await session_stage.remember(f"{ASKED}, said somebody somewhere", session="mine")

    ranking = await session_stage.ask(ASKED, session="mine", limit=1)

    assert [hit.memory.id for hit in ranking] == wanted


async def test_better_matches_of_another_user_do_not_hide_those_of_the_one_that_is_asked(personal_stage: Stage) -> None:
    await personal_stage.remember(*(f"{ASKED} {number}" for number in range(40)), user="other", session="other")
    wanted = await personal_stage.remember(f"{ASKED}, said somebody somewhere", user="ann", session="mine")

    ranking = await personal_stage.ask(ASKED, user="ann", limit=1)

    assert [hit.memory.id for hit in ranking] == wanted


async def test_a_shorter_limit_returns_the_top_of_a_longer_one(stage: Stage) -> None:
    await stage.remember(*GRADED)
    asked = " ".join(ASKED.split()[:3])

    whole = await stage.ask(asked, limit=6)

    assert len(whole) == 6
    for limit in (1, 2, 3, 5):
        assert contents(await stage.ask(asked, limit=limit)) == contents(whole)[:limit]


@pytest.mark.parametrize("source", WHOLE_SOURCES)
async def test_a_long_memory_that_matches_all_over_leaves_room_for_others(
    application: Application, source: Source
) -> None:
    stage = Stage(source, application)
    long = "zebra crossing " * 1_500
    ids = await stage.remember(long, "a zebra grazes", "the zebra sleeps")

    ranking = await stage.ask("zebra", limit=3)

    assert {hit.memory.id for hit in ranking} == set(ids)


@pytest.mark.parametrize("source", [Source.SESSION_WORDS, *WARM_SOURCES])
async def test_a_word_anywhere_in_a_long_memory_is_found_and_shown(application: Application, source: Source) -> None:
    stage = Stage(source, application)
    filler = [f"Sentence {number} tells of item {number * 7}." for number in range(600)]
    filler[450] = "Here the axolotl waits."
    (id_,) = await stage.remember(" ".join(filler))

    ranking = await stage.ask("axolotl waits")

    assert [hit.memory.id for hit in ranking] == [id_]
    assert "axolotl waits" in ranking[0].memory.content


async def test_case_and_marks_of_the_question_do_not_matter(stage: Stage) -> None:
    axolotl, *_ = await stage.remember("axolotl", *OTHERS)

    found = [(await stage.ask(asked))[0].memory.id for asked in ("axolotl", "Axolotl!", "AXOLOTL?")]

    assert found == [axolotl] * 3


async def test_a_question_of_operators_is_only_text(stage: Stage) -> None:
    await stage.remember(*OTHERS)

    rankings = [await stage.ask(asked) for asked in OPERATORS]

    assert all(0 <= hit.score <= 1 for ranking in rankings for hit in ranking)


async def test_where_nothing_is_stored_nothing_is_found(stage: Stage) -> None:
    assert await stage.ask(ASKED, workspace="empty") == ()


async def test_a_window_of_time_holds_for_every_source(stage: Stage) -> None:
    hours = [NOON + timedelta(hours=number) for number in range(3)]
    ids = [(await stage.remember(f"{ASKED} {place}", at=at))[0] for place, at in enumerate(hours)]

    since = await stage.ask(ASKED, filters=Filters(since=hours[1]))
    until = await stage.ask(ASKED, filters=Filters(until=hours[1]))
    between = await stage.ask(ASKED, filters=Filters(since=hours[1], until=hours[2]))

    assert {hit.memory.id for hit in since} == set(ids[1:])
    assert {hit.memory.id for hit in until} == {ids[0]}
    assert {hit.memory.id for hit in between} == {ids[1]}


async def test_a_memory_must_have_all_tags_that_are_asked_for(tagged_stage: Stage) -> None:
    await tagged_stage.remember(f"{ASKED} one", tags=("red",))
    both = await tagged_stage.remember(f"{ASKED} two", tags=("red", "blue"))
    await tagged_stage.remember(f"{ASKED} three", tags=("redder", "blue"))

    ranking = await tagged_stage.ask(ASKED, filters=Filters(tags=("red", "blue")))

    assert [hit.memory.id for hit in ranking] == both


async def test_messages_have_no_tags(session_stage: Stage) -> None:
    await session_stage.remember(ASKED)

    assert await session_stage.ask(ASKED, filters=Filters(tags=("red",))) == ()


async def test_a_note_less_sure_than_asked_for_is_left_out(note_stage: Stage) -> None:
    notes = [Note(f"{ASKED} {confidence}", confidence=confidence) for confidence in (0.2, 0.5, 0.9)]
    await note_stage.app.services.recorder.put_notes(note_stage.scope({}), notes)
    await note_stage.settle({})

    found = {
        least: {hit.memory.confidence for hit in await note_stage.ask(ASKED, filters=Filters(min_confidence=least))}
        for least in (0.0, 0.5, 0.6, 1.0)
    }

    assert found == {0.0: {0.2, 0.5, 0.9}, 0.5: {0.5, 0.9}, 0.6: {0.9}, 1.0: set()}


async def test_a_deleted_note_is_never_returned_even_before_the_index_hears_of_it(lagging: Stage) -> None:
    gone, kept = await lagging.remember(ASKED, f"{ASKED} again")
    before = await lagging.ask(ASKED)

    await lagging.app.services.recorder.delete_note(lagging.app.tenant, gone)
    unheard = await lagging.ask(ASKED)
    await lagging.app.indexed()
    heard = await lagging.ask(ASKED)

    assert [hit.memory.id for hit in before] == [gone, kept]
    assert [hit.memory.id for hit in unheard] == [hit.memory.id for hit in heard] == [kept]
    assert index_of(lagging.app, "notes", "notes").count() == 1


async def test_a_changed_note_is_shown_as_it_is_now_even_before_the_index_hears_of_it(lagging: Stage) -> None:
    (id_,) = await lagging.remember("The meeting is on Monday")

    await lagging.app.services.recorder.change_note(lagging.app.tenant, id_, {"content": "The meeting is on Tuesday"})
    unheard = await lagging.ask("The meeting is")
    await lagging.app.indexed()
    heard = await lagging.ask("The meeting is on Tuesday")

    assert contents(unheard) == contents(heard) == ["The meeting is on Tuesday"]
    assert heard[0].score > NEAR


async def test_a_note_whose_text_became_shorter_is_not_found_by_what_it_lost(lagging: Stage) -> None:
    long = " ".join([f"Sentence {number} tells of item {number * 7}." for number in range(600)] + ["Axolotl!"])
    (id_,) = await lagging.remember(long)

    await lagging.app.services.recorder.change_note(lagging.app.tenant, id_, {"content": "Short now"})
    await lagging.app.indexed()

    assert await lagging.ask("axolotl") == ()
    assert contents(await lagging.ask("short now")) == ["Short now"]
