"""A condition means the same everywhere: in :func:`matches`, in Postgres, in Qdrant Edge and over HTTP."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import cycle
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.core.filters import matches, parse
from lamina.core.memories import Category, Message, Note, Role
from lamina.core.paging import Page
from lamina.core.queries import AllOf, AnyOf, Compare, Condition, Failure, FilterField, Filters, Memory, Negation, Query
from lamina.core.scope import Scope
from lamina.core.tiers import Source, Tier, TierName
from lamina.text.words import question_words
from tests.support.application import Application, fused_search, index_of
from tests.support.filtered import compares, nested

MICROSECOND = timedelta(microseconds=1)
TEN = datetime(2026, 3, 1, 10, tzinfo=UTC)
TIMES = (
    TEN,
    TEN + MICROSECOND,
    TEN - timedelta(hours=5, minutes=30),
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_998, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
)
TAGS = ("red", "redder", "salt, pepper", "a') OR 1=1 --", "%", "été", "NULL")
USERS = (None, "ann", "Ann", "john_doe", "%", "日本")
AGENTS = (None, "planner", "a') OR 1=1 --")
SESSIONS = ("s1", "s2", "s%")
SOURCES = ("api", "", "message:1", "x" * 1_024)
FRACTIONS = (0.0, 0.1, 0.1 + 0.2, 0.3, 0.5, 1.0)
ASKED = "the anchor is rusty"


@dataclass(frozen=True)
class Corpus:
    """Memories of one tier that differ in everything a filter may look at."""

    app: Application
    scope: Scope
    name: TierName
    memories: Mapping[UUID, Memory]

    def expected(self, condition: Condition) -> set[UUID]:
        return {id_ for id_, memory in self.memories.items() if matches(condition, memory)}

    async def selected(self, filters: Filters) -> dict[str, set[UUID]]:
        """What each of the tier's sources, and its index alone, finds under the filters."""
        query = self.query(filters)
        outcomes = await self.app.tiers[self.name].searcher.search(query)
        assert not any(isinstance(outcome, Failure) for outcome in outcomes.values()), outcomes
        found = {
            source.value: {hit.memory.id for hit in ranking}
            for source, ranking in outcomes.items()
            if not isinstance(ranking, Failure) and source in ALL_OF_THEM
        }
        index = index_of(self.app, self.name, "notes" if self.name == "notes" else "messages")
        found["index by words"] = {item.place[0] for item in index.by_words(query)}
        if self.name == "notes":
            found["index by vector"] = {item.place[0] for item in index.by_vector(query)}
            page = await self.app.services.reads.notes.page(self.scope, filters, None, Page(1000))
            found["page"] = {note.id for note in page}
        return found

    def query(self, filters: Filters) -> Query:
        (row,) = self.app.model.encode([ASKED])
        generation = fused_search(self.app)._generation
        return Query(ASKED, tuple(question_words(ASKED)), self.scope, 100, filters, row.tobytes(), generation)

    async def searched(self, wire: dict[str, Any]) -> set[UUID]:
        """What the HTTP search of this tier finds."""
        body = {"query": ASKED, "workspace": self.scope.workspace, "tiers": [self.name], "limit": 1000}
        client = self.app.client()
        answer = await client.post("/v1/search", json={**body, "min_confidence": 0, "filters": wire})
        assert answer.status_code == 200, answer.text
        return {UUID(result["id"]) for result in answer.json()["results"]}


# The sources that find everything which is near enough; a cold note, say, is elsewhere.
ALL_OF_THEM = (
    Source.NOTES_HYBRID,
    Source.NOTES_WARM,
    Source.SESSION_VECTORS,
    Source.SESSION_WORDS,
    Source.SESSION_CONTEXT,
)


@pytest.fixture(scope="module")
async def notes(shared_application: Application) -> Corpus:
    app = shared_application.for_tenant("filtered notes")
    at, user, agent, session = cycle(TIMES), cycle(USERS), cycle(AGENTS), cycle((None, *SESSIONS))
    source, importance, confidence, category = cycle(SOURCES), cycle(FRACTIONS), cycle(FRACTIONS[::-1]), cycle(Category)
    scope = Scope(app.tenant, "filters")
    for number in range(40):
        note = Note(
            f"{ASKED} {number}",
            category=next(category),
            importance=next(importance),
            confidence=next(confidence),
            tags=tuple(tag for place, tag in enumerate(TAGS) if (number * 5 >> place) & 1),
            event_at=next(at),
            source=next(source),
        )
        ids = {"user": next(user), "agent": next(agent), "session": next(session)}
        await app.services.recorder.put_notes(scope.narrowed(**ids), [note])
    await app.indexed()
    return Corpus(app, scope, "notes", await _everything(app, scope, "notes"))


@pytest.fixture(scope="module")
async def messages(shared_application: Application) -> Corpus:
    app = shared_application.for_tenant("filtered messages")
    at, user, agent, session, role = cycle(TIMES), cycle(USERS), cycle(AGENTS), cycle(SESSIONS), cycle(Role)
    scope = Scope(app.tenant, "filters")
    for number in range(36):
        message = Message(next(role), f"{ASKED} {number}", occurred_at=next(at))
        ids = {"user": next(user), "agent": next(agent), "session": next(session)}
        await app.services.recorder.record_turn(scope.narrowed(**ids), [message])
    await app.indexed()
    return Corpus(app, scope, "sessions", await _everything(app, scope, "sessions"))


async def _everything(app: Application, scope: Scope, name: TierName) -> dict[UUID, Memory]:
    query = replace(Corpus(app, scope, name, {}).query(Filters(min_confidence=0)), late_rows=False)
    outcomes = await app.tiers[name].searcher.search(query)
    by_words = outcomes[Source.NOTES_WARM if name == "notes" else Source.SESSION_WORDS]
    assert not isinstance(by_words, Failure)
    return {hit.memory.id: hit.memory for hit in by_words if isinstance(hit.memory, Memory)}


_compares = partial(compares, blank_in_lists=False)
COMPARES = st.one_of(
    _compares(FilterField.CATEGORY, tuple(category.value for category in Category)),
    _compares(FilterField.OCCURRED_AT, (*TIMES, TEN - MICROSECOND)),
    _compares(FilterField.TAGS, (*TAGS, "re", "salt")),
    _compares(FilterField.SOURCE, (*SOURCES, *(role.value for role in Role), "no such source")),
    _compares(FilterField.USER, (*filter(None, USERS), "%n%", "nobody")),
    _compares(FilterField.AGENT, (*filter(None, AGENTS), "nobody")),
    _compares(FilterField.SESSION, (*SESSIONS, "nowhere")),
    _compares(FilterField.CONFIDENCE, (*FRACTIONS, -1.0, 2.0, 0.29999999999999993)),
    _compares(FilterField.IMPORTANCE, (*FRACTIONS, 0.7, 5e-324)),
)
CONDITIONS = nested(COMPARES, max_leaves=8)
PICKED: tuple[dict[str, Any], ...] = (
    {},
    {"category": "decision"},
    {"category": None},
    {"not": {"category": None}},
    {"category": {"in": ["note", "decision"]}},
    {"tags": "salt, pepper"},
    {"not": {"tags": "red"}},
    {"tags": {"contains_any": ["red", "été"]}},
    {"user": None},
    {"not": {"user": "ann"}},
    {"not": {"not": {"user": "ann"}}},
    {"not": {"or": [{"user": None}, {"agent": {"in": ["planner"]}}]}},
    {"or": [{"user": "ann"}, {"agent": "a') OR 1=1 --"}, {"session": "s%"}]},
    {"source": ""},
    {"source": "assistant"},
    {"confidence": {"gte": 0.3, "lt": 1}},
    {"importance": 0.3},
    {"not": {"importance": {"gt": 0.3}}},
    {"occurred_at": "2026-03-01T10:00"},
    {"occurred_at": {"gte": "2026-03-01T10:00", "lt": "2026-03-01T10:00:00.000001Z"}},
    {"occurred_at": {"gte": "2026-03-01T10:00+05:30", "lte": "2026-03-01T04:30Z"}},
    {"occurred_at": {"lt": "9999-12-31T23:59:59.999999"}},
    {"and": [{"category": {"in": ["note"]}}, {"not": {"occurred_at": {"lt": "2026-03-01"}}}]},
)
ONE_STORE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def filters_of(condition: Condition) -> Filters:
    return Filters(min_confidence=0, where=condition)


def to_json(condition: Condition) -> dict[str, Any]:
    """The wire form of a condition; what has none (an `and` or `or` of nothing) becomes its equal."""
    match condition:
        case Compare(field=field, operator=operator, value=value):
            shown = value.isoformat() if isinstance(value, datetime) else value
            return {field.value: {operator.value: list(shown) if isinstance(shown, tuple) else shown}}
        case AllOf(parts=parts):
            return {"and": [to_json(part) for part in parts] or [{"confidence": {"gte": 0}}]}
        case AnyOf(parts=parts):
            return {"or": [to_json(part) for part in parts] or [{"confidence": {"lt": 0}}]}
        case Negation(part=part):
            return {"not": to_json(part)}


def test_the_corpora_hold_everything_that_was_stored(notes: Corpus, messages: Corpus) -> None:
    assert len(notes.memories) == 40
    assert len(messages.memories) == 36
    assert {memory.occurred_at for memory in notes.memories.values()} == set(TIMES)
    assert {memory.user for memory in messages.memories.values()} == set(USERS)


@pytest.mark.parametrize("wire", PICKED, ids=str)
async def test_a_picked_condition_selects_the_same_notes_everywhere(notes: Corpus, wire: dict[str, Any]) -> None:
    condition = parse(wire, "filters")
    expected = notes.expected(condition)

    found = await notes.selected(filters_of(condition))

    assert found == dict.fromkeys(found, expected)
    assert len(found) == 5
    assert await notes.searched(wire) == expected


@pytest.mark.parametrize("wire", PICKED, ids=str)
async def test_a_picked_condition_selects_the_same_messages_everywhere(messages: Corpus, wire: dict[str, Any]) -> None:
    condition = parse(wire, "filters")
    expected = messages.expected(condition)

    found = await messages.selected(filters_of(condition))

    assert found == dict.fromkeys(found, expected)
    assert len(found) == 4
    assert await messages.searched(wire) == expected


@ONE_STORE
@given(condition=CONDITIONS)
async def test_any_condition_selects_the_same_notes_everywhere(notes: Corpus, condition: Condition) -> None:
    found = await notes.selected(filters_of(condition))

    assert found == dict.fromkeys(found, notes.expected(condition))


@ONE_STORE
@given(condition=CONDITIONS)
async def test_any_condition_selects_the_same_messages_everywhere(messages: Corpus, condition: Condition) -> None:
    found = await messages.selected(filters_of(condition))

    assert found == dict.fromkeys(found, messages.expected(condition))


@ONE_STORE
@given(condition=CONDITIONS)
async def test_any_condition_selects_the_same_over_http(notes: Corpus, messages: Corpus, condition: Condition) -> None:
    wire = to_json(condition)

    assert await notes.searched(wire) == notes.expected(condition)
    assert await messages.searched(wire) == messages.expected(condition)


@given(condition=CONDITIONS)
def test_a_condition_survives_its_wire_form(condition: Condition) -> None:
    read = parse(to_json(condition), "filters")
    memory = Memory(uuid4(), Tier.NOTES, "note", "", TEN, user="ann", tags=("red",), source="api")

    assert matches(read, memory) is matches(condition, memory)


@pytest.mark.parametrize("as_of", [*TIMES, TEN - MICROSECOND])
async def test_nothing_after_as_of_counts_anywhere(notes: Corpus, messages: Corpus, as_of: datetime) -> None:
    for corpus in (notes, messages):
        found = await corpus.selected(Filters(min_confidence=0, as_of=as_of))
        expected = {id_ for id_, memory in corpus.memories.items() if memory.occurred_at <= as_of}

        assert found == dict.fromkeys(found, expected)


async def test_shared_only_leaves_what_belongs_to_nobody_even_where_its_user_asks(
    notes: Corpus, messages: Corpus
) -> None:
    for corpus in (notes, messages):
        shared = {id_ for id_, memory in corpus.memories.items() if memory.user is None}
        asking = Corpus(corpus.app, corpus.scope.narrowed(user="ann"), corpus.name, corpus.memories)

        for asked in (corpus, asking):
            found = await asked.selected(Filters(min_confidence=0, shared_only=True))

            assert found == dict.fromkeys(found, shared)


async def test_a_filter_narrows_beside_every_other_limit_of_the_request(notes: Corpus) -> None:
    where = parse({"not": {"category": "note"}}, "filters")
    filters = Filters(tags=("red",), since=TEN, until=TEN + timedelta(days=1), min_confidence=0.3, where=where)

    found = await notes.selected(filters)

    assert found == dict.fromkeys(found, notes.expected(filters.condition()))
    assert 0 < len(found["page"]) < len(notes.expected(where))


@pytest.mark.parametrize("path", ["/v1/search", "/v1/context"])
@pytest.mark.parametrize(
    ("filters", "field"),
    [
        ({"category": {"in": "note"}}, "filters.category.in"),
        ({"a') OR 1=1 --": "x"}, "filters.a') OR 1=1 --"),
        ({"user": "\ud800"}, "filters.user"),
        ({"tags": "a\x00b"}, "filters.tags"),
        ({"\ud800": 1}, "filters.?"),
        ({"confidence": {"gte": float("nan")}}, "body"),  # NaN is no JSON.
        ([{"category": "note"}], "filters"),
        ("category", "filters"),
        (None, "filters"),
    ],
)
async def test_what_is_no_filter_is_refused_naming_its_place(
    application: Application, path: str, filters: Any, field: str
) -> None:
    body = json.dumps({"query": "anything", "filters": filters})

    answer = await application.client().post(path, content=body, headers={"Content-Type": "application/json"})

    assert answer.status_code == 422, answer.text
    assert [error["field"] for error in answer.json()["errors"]] == [field]


async def test_a_context_block_obeys_the_filters(notes: Corpus) -> None:
    answer = await notes.app.client().post(
        "/v1/context",
        json={"query": ASKED, "workspace": "filters", "tiers": ["notes"], "filters": {"tags": "salt, pepper"}},
    )

    shown = answer.json()["results"]
    assert shown
    assert all("salt, pepper" in result["tags"] for result in shown)


@pytest.mark.parametrize(
    ("gte", "expected"),
    [
        ("2026-03-01T10:00+05:30", {"indian", "utc", "naive"}),
        ("2026-03-01T10:00", {"utc", "naive"}),
        ("2026-03-01T10:00:00.000001Z", set()),
    ],
)
async def test_times_with_and_without_an_offset_filter_right_in_one_scope(
    application: Application, gte: str, expected: set[str]
) -> None:
    client = application.client()
    times = {"naive": "2026-03-01T10:00", "utc": "2026-03-01T10:00Z", "indian": "2026-03-01T10:00+05:30"}
    for name, event_at in times.items():
        await client.post("/v1/notes", json={"content": f"{ASKED}: {name}", "event_at": event_at})
    await application.indexed()

    answer = await client.post("/v1/search", json={"query": ASKED, "filters": {"occurred_at": {"gte": gte}}})

    assert {result["content"].split(": ")[1] for result in answer.json()["results"]} == expected


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({}, {"January", "February", "March"}),
        ({"since": "2026-02-01T00:00Z"}, {"February", "March"}),
        ({"until": "2026-02-01T00:00Z"}, {"January"}),
        ({"as_of": "2026-02-15T00:00Z"}, {"January", "February"}),
        ({"tags": ["odd"]}, {"January", "March"}),
        ({"filters": {"occurred_at": {"gte": "2026-02-01", "lt": "2026-03-01"}}}, {"February"}),
        ({"filters": {"not": {"category": {"in": ["decision"]}}}}, {"February", "March"}),
        ({"filters": {"or": [{"importance": {"gt": 0.8}}, {"source": "diary"}]}}, {"February", "March"}),
    ],
)
async def test_what_the_graph_adds_obeys_every_filter(
    application: Application, sent: dict[str, Any], expected: set[str]
) -> None:
    client = application.client()
    fields: dict[str, dict[str, Any]] = {
        "January": {"tags": ["odd"], "category": "decision"},
        "February": {"importance": 0.9},
        "March": {"tags": ["odd"], "source": "diary"},
    }
    await client.post("/v1/graph/entities", json={"entities": [{"name": "Marta Keller"}]})
    for number, (month, rest) in enumerate(fields.items(), start=1):
        content = f"Marta Keller repaired the anchor in {month}"
        await client.post("/v1/notes", json={"content": content, "event_at": f"2026-0{number}-10T00:00Z", **rest})
    await application.indexed()

    answer = await client.post(
        "/v1/search", json={"query": "Marta Keller repaired the anchor", "tiers": ["graph"], "min_score": 0, **sent}
    )

    notes = {result["content"].split()[-1] for result in answer.json()["results"] if result["tier"] == "notes"}
    assert notes == expected
