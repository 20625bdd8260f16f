from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.filters import MAX_COMPARISONS, MAX_LEVELS, MAX_VALUES, matches, parse
from lamina.core.queries import AllOf, AnyOf, Compare, Condition, FilterField, Filters, Memory, Negation, Operator
from lamina.core.tiers import Tier
from lamina.errors import InvalidInput
from tests.unit.builders import NOON, memory

DECISION = Compare(FilterField.CATEGORY, Operator.EQ, "decision")
NOTE = Memory(
    **{
        **{name: getattr(memory(1), name) for name in ("id", "tier", "content", "confidence")},
        "kind": "decision",
        "occurred_at": NOON,
        "importance": 0.7,
        "user": "ann",
        "agent": None,
        "session": "s1",
        "tags": ("salt, pepper", "red"),
        "source": "api",
    }
)


@pytest.mark.parametrize(
    ("json", "condition"),
    [
        ({}, AllOf(())),
        ({"category": "decision"}, DECISION),
        ({"category": {"eq": "decision"}}, DECISION),
        ({"category": None}, Compare(FilterField.CATEGORY, Operator.EQ, None)),
        ({"category": {"in": ["note", "decision"]}}, Compare(FilterField.CATEGORY, Operator.IN, ("note", "decision"))),
        ({"tags": "salt, pepper"}, Compare(FilterField.TAGS, Operator.CONTAINS, "salt, pepper")),
        ({"tags": {"contains": "e\u0301"}}, Compare(FilterField.TAGS, Operator.CONTAINS, "\u00e9")),
        (
            {"tags": {"contains_any": ["a", "b"]}},
            AnyOf(tuple(Compare(FilterField.TAGS, Operator.CONTAINS, tag) for tag in "ab")),
        ),
        ({"user": {"eq": None}}, Compare(FilterField.USER, Operator.EQ, None)),
        ({"source": ""}, Compare(FilterField.SOURCE, Operator.EQ, "")),
        ({"confidence": 1}, Compare(FilterField.CONFIDENCE, Operator.EQ, 1.0)),
        (
            {"importance": {"gte": 0.5, "lt": 1}},
            AllOf(
                (
                    Compare(FilterField.IMPORTANCE, Operator.GTE, 0.5),
                    Compare(FilterField.IMPORTANCE, Operator.LT, 1.0),
                )
            ),
        ),
        (
            {"category": "decision", "agent": "a"},
            AllOf((DECISION, Compare(FilterField.AGENT, Operator.EQ, "a"))),
        ),
        ({"and": [{"category": "decision"}]}, AllOf((DECISION,))),
        (
            {"or": [{"category": "decision"}, {"session": "s"}]},
            AnyOf((DECISION, Compare(FilterField.SESSION, Operator.EQ, "s"))),
        ),
        ({"not": {"category": "decision"}}, Negation(DECISION)),
    ],
)
def test_the_wire_form_is_read(json: Any, condition: Condition) -> None:
    assert parse(json, "filters") == condition


@pytest.mark.parametrize(
    "text",
    ["2026-03-01T10:00", "2026-03-01T10:00Z", "2026-03-01T15:30+05:30", "2026-03-01 10:00:00.000", "20260301T10"],
)
def test_times_are_utc_and_a_naive_one_is_taken_as_utc(text: str) -> None:
    expected = Compare(FilterField.OCCURRED_AT, Operator.GTE, datetime(2026, 3, 1, 10, tzinfo=UTC))

    assert parse({"occurred_at": {"gte": text}}, "filters") == expected


@pytest.mark.parametrize(
    ("json", "path", "says"),
    [
        pytest.param(
            {"category": {"in": "note"}}, "filters.category.in", "expected a list of 1 to 256", id="field case 34"
        ),
        pytest.param(
            {"a') OR 1=1 --": "x"}, "filters.a') OR 1=1 --", "is no field; expected one of category", id="injection"
        ),
        pytest.param(
            {"category": {"a') OR 1=1": "x"}}, "filters.category.a') OR 1=1", "expected one of eq, in", id="operator"
        ),
        pytest.param({"tier": "notes"}, "filters.tier", "occurred_at", id="unknown field"),
        pytest.param({"metadata.x": 1}, "filters.metadata.x", "is no field", id="metadata"),
        pytest.param({"category": "meeting"}, "filters.category", "interaction", id="unknown category"),
        pytest.param(
            {"category": {"in": ["note", "x"]}}, "filters.category.in.1", '"x"', id="unknown category in a list"
        ),
        pytest.param({"category": {"in": []}}, "filters.category.in", "a list of 0", id="in of nothing"),
        pytest.param(
            {"category": {"in": [["note"]]}}, "filters.category.in.0", "is a list; expected a text", id="list in list"
        ),
        pytest.param({"category": {"in": [None]}}, "filters.category.in.0", "is null", id="null in list"),
        pytest.param(
            {"category": {"in": ["note"] * (MAX_VALUES + 1)}}, "filters.category.in", "a list of 257", id="long list"
        ),
        pytest.param({"category": ["note"]}, "filters.category", "is a list; expected a text", id="list for eq"),
        pytest.param({"category": {}}, "filters.category", "is empty", id="no operator"),
        pytest.param(
            {"category": {"gt": "a"}}, "filters.category.gt", "is no operator of category", id="order of texts"
        ),
        pytest.param({"category": 3}, "filters.category", "is 3; expected a text", id="number for text"),
        pytest.param({"user": 42}, "filters.user", "is 42; expected a text", id="user as a number"),
        pytest.param({"user": True}, "filters.user", "is true", id="user as a boolean"),
        pytest.param({"user": ""}, "filters.user", "is blank", id="blank id"),
        pytest.param({"user": "a\x00"}, "filters.user", "NUL", id="NUL"),
        pytest.param({"source": "a\x00"}, "filters.source", "NUL", id="NUL in a source"),
        pytest.param({"agent": "\ud800"}, "filters.agent", "surrogate", id="surrogate"),
        pytest.param({"tags": "x" * 129}, "filters.tags", "129", id="long tag"),
        pytest.param(
            {"tags": {"in": ["a"]}}, "filters.tags.in", "expected one of contains, contains_any", id="tags in"
        ),
        pytest.param({"tags": {"contains": ["a"]}}, "filters.tags.contains", "is a list", id="contains a list"),
        pytest.param(
            {"tags": {"contains_any": "a"}}, "filters.tags.contains_any", "expected a list", id="any of a text"
        ),
        pytest.param({"tags": None}, "filters.tags", "is null", id="no tags"),
        pytest.param(
            {"confidence": {"gte": float("nan")}}, "filters.confidence.gte", "is nan; expected a number", id="NaN"
        ),
        pytest.param({"confidence": {"gte": float("inf")}}, "filters.confidence.gte", "is inf", id="infinity"),
        pytest.param({"confidence": {"gte": 10**400}}, "filters.confidence.gte", "expected a number", id="huge"),
        pytest.param(
            {"confidence": True}, "filters.confidence", "is true; expected a number", id="boolean as a number"
        ),
        pytest.param({"confidence": "0.5"}, "filters.confidence", 'is the text "0.5"', id="text as a number"),
        pytest.param({"confidence": None}, "filters.confidence", "is null", id="null as a number"),
        pytest.param({"occurred_at": 1700000000}, "filters.occurred_at", "ISO 8601", id="time as a number"),
        pytest.param(
            {"occurred_at": {"gte": "yesterday"}}, "filters.occurred_at.gte", "2026-03-01T10:00Z", id="time in words"
        ),
        pytest.param({"occurred_at": {"gte": None}}, "filters.occurred_at.gte", "is null", id="no time"),
        pytest.param(
            {"occurred_at": {"gte": "0001-01-01T00:00+14:00"}}, "filters.occurred_at.gte", "no UTC", id="before year 1"
        ),
        pytest.param(
            {"and": {"category": "note"}}, "filters.and", "expected a list of conditions", id="and of an object"
        ),
        pytest.param({"or": []}, "filters.or", "is an empty list", id="or of nothing"),
        pytest.param(
            {"not": [{"category": "note"}]}, "filters.not", "is a list; expected an object", id="not of a list"
        ),
        pytest.param({"not": {}}, "filters.not", "is an empty object", id="not of nothing"),
        pytest.param(
            {"and": [{"category": "note"}, "x"]}, "filters.and.1", 'is the text "x"', id="a text for a condition"
        ),
        pytest.param({"AND": []}, "filters.AND", "is no field", id="upper case"),
    ],
)
def test_everything_else_is_refused_naming_the_path_and_what_is_accepted(json: Any, path: str, says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(json, "filters")

    assert refused.value.field == path
    assert says in refused.value.reason


def test_16_levels_are_accepted_and_17_refused() -> None:
    def nested(levels: int) -> Any:
        json: Any = {"category": "note"}
        for _ in range(levels - 1):
            json = {"not": json}
        return json

    assert parse(nested(MAX_LEVELS), "filters")
    with pytest.raises(InvalidInput, match="deeper than 16 levels"):
        parse(nested(MAX_LEVELS + 1), "filters")
    with pytest.raises(InvalidInput, match="deeper than 16 levels"):
        parse(nested(800), "filters")


@pytest.mark.parametrize(
    "many",
    [
        lambda count: {"or": [{"category": "note"}] * count},
        lambda count: {"tags": {"contains_any": [f"tag {number}" for number in range(count)]}},
        lambda count: {"and": [{"or": [{"confidence": {"gte": 0.5}}] * (count - 1)}, {"not": {"user": "ann"}}]},
    ],
)
def test_64_comparisons_are_accepted_and_65_refused(many: Any) -> None:
    assert parse(many(MAX_COMPARISONS), "filters")
    with pytest.raises(InvalidInput, match="more than 64 comparisons"):
        parse(many(MAX_COMPARISONS + 1), "filters")


def test_a_long_key_is_not_repeated_whole() -> None:
    with pytest.raises(InvalidInput) as refused:
        parse({"x" * 100_000: 1}, "filters")

    assert len(refused.value.field) < 100


@pytest.mark.parametrize(
    ("json", "expected"),
    [
        ({}, True),
        ({"category": "decision"}, True),
        ({"category": "note"}, False),
        ({"category": {"in": ["note", "decision"]}}, True),
        ({"tags": "salt, pepper"}, True),
        ({"tags": "salt"}, False),
        ({"tags": {"contains_any": ["salt", "red"]}}, True),
        ({"user": "ann"}, True),
        ({"user": None}, False),
        ({"agent": None}, True),
        ({"agent": "a"}, False),
        ({"not": {"agent": "a"}}, True),
        ({"agent": {"in": ["a"]}}, False),
        ({"importance": {"gt": 0.7}}, False),
        ({"importance": {"gte": 0.7, "lte": 0.7}}, True),
        ({"importance": 0.7}, True),
        ({"confidence": {"lt": 0.95}}, False),
        ({"occurred_at": {"gte": "2026-01-15T12:00"}}, True),
        ({"occurred_at": {"gt": "2026-01-15T12:00"}}, False),
        ({"occurred_at": {"lt": "2026-01-15T17:31+05:30"}}, True),
        ({"category": "decision", "user": "bob"}, False),
        ({"or": [{"category": "note"}, {"and": [{"user": "ann"}, {"not": {"session": "s2"}}]}]}, True),
    ],
)
def test_a_note_matches(json: Any, *, expected: bool) -> None:
    assert matches(parse(json, "filters"), NOTE) is expected


def test_a_message_has_no_category_and_no_tags() -> None:
    message = memory(2, tier=Tier.SESSIONS)

    assert matches(parse({"category": None}, "filters"), message)
    assert not matches(parse({"tags": "x"}, "filters"), message)
    assert matches(parse({"not": {"tags": "x"}}, "filters"), message)


@pytest.mark.parametrize(("offset_s", "counts"), [(-1, True), (0, True), (1, False)])
def test_what_happened_after_as_of_does_not_count(offset_s: int, *, counts: bool) -> None:
    later = replace(NOTE, occurred_at=NOON + timedelta(seconds=offset_s))

    assert matches(Filters(as_of=NOON).condition(), later) is counts


def test_shared_only_lets_nothing_of_a_user_pass() -> None:
    condition = Filters(shared_only=True, where=parse({"or": [{"user": "ann"}, {"user": None}]}, "filters")).condition()

    assert not matches(condition, NOTE)
    assert matches(condition, replace(NOTE, user=None))


@given(st.lists(st.booleans(), max_size=4))
def test_and_or_and_not_are_those_of_logic(values: list[bool]) -> None:
    always, never = AllOf(()), AnyOf(())
    parts = tuple(always if value else never for value in values)

    assert matches(AllOf(parts), NOTE) is all(values)
    assert matches(AnyOf(parts), NOTE) is any(values)
    assert matches(Negation(AllOf(parts)), NOTE) is matches(AnyOf(tuple(map(Negation, parts))), NOTE)
