"""Memories and conditions that differ in everything a filter may look at, for tests without a database."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import cycle
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from lamina.core.memories import Category
from lamina.core.ports import Record
from lamina.core.queries import AllOf, AnyOf, Compare, Condition, FilterField, Memory, Negation, Operator
from lamina.core.tiers import Tier

MICROSECOND = timedelta(microseconds=1)
TEN = datetime(2026, 3, 1, 10, tzinfo=UTC)
TIMES = (
    TEN,
    TEN + MICROSECOND,
    TEN - timedelta(hours=5, minutes=30),
    datetime.min.replace(tzinfo=UTC),
    datetime(2255, 6, 5, 23, 47, 34, 740_993, tzinfo=UTC),
    datetime(2255, 6, 5, 23, 47, 34, 740_992, tzinfo=UTC),
    datetime.max.replace(tzinfo=UTC) - MICROSECOND,
    datetime.max.replace(tzinfo=UTC),
)
STRANGE = (
    *("a-b", "_", "%", "a", "A", "à", "\uff41", "a ", "123e4567-e89b-12d3-a456-426614174000", "x@y.z", "a&agent=b"),
    *("Ünïcode", "мой кот 🎉 שלום 今日は", "x" * 127 + "y", "x" * 128, "' OR 1=1 --", 'a "quoted" \\ one', '\\"', "\\"),
    *("NULL", "NOT", "EXISTS", "1e3", "1000", "inf", "nan", "a') OR 1=1 --", "john_doe", "johnXdoe"),
)
TAGS = ("red", "redder", "Red", "salt, pepper", "a') OR 1=1 --", "%", "été", "NULL", "1e1", "10")
SOURCES = ("api", "API", "", "message:1", "x" * 1_024, "x" * 1_023 + "y")
FRACTIONS = (0.0, 0.1, 0.1 + 0.2, 0.3, 0.29999999999999993, 0.5, 1.0)


def _memories() -> tuple[Memory, ...]:
    at, user, agent, session = cycle(TIMES), cycle((None, *STRANGE)), cycle((None, *STRANGE[::-1])), cycle(STRANGE)
    source, importance, confidence, category = cycle(SOURCES), cycle(FRACTIONS), cycle(FRACTIONS[::-1]), cycle(Category)
    return tuple(
        Memory(
            UUID(int=number),
            Tier.NOTES,
            next(category).value,
            "tea",
            next(at),
            confidence=next(confidence),
            importance=next(importance),
            user=next(user),
            agent=next(agent),
            session=next(session),
            source=next(source),
            tags=tuple(tag for place, tag in enumerate(TAGS) if (number * 7 >> place) & 1),
        )
        for number in range(1, 61)
    )


MEMORIES = _memories()


def state_of(memory: Memory, texts: Sequence[str] = ("tea",), embeddings: Sequence[bytes] = (b"",)) -> Record:
    """Return what an index keeps of a memory."""
    return Record(
        tenant="acme",
        workspace="default",
        namespace="default",
        user=memory.user,
        session=memory.session,
        tags=memory.tags,
        occurred_at=memory.occurred_at,
        confidence=memory.confidence,
        texts=tuple(texts),
        embeddings=tuple(embeddings),
        category=memory.kind,
        agent=memory.agent,
        source=memory.source,
        importance=memory.importance,
    )


def compares(field: FilterField, values: Sequence[Any], *, blank_in_lists: bool = True) -> st.SearchStrategy[Compare]:
    """Return comparisons of a field with these values, as its type allows them; HTTP refuses lists with blank texts."""
    value = st.sampled_from(values)
    match field:
        case FilterField.TAGS:
            return st.builds(Compare, st.just(field), st.just(Operator.CONTAINS), value)
        case FilterField.OCCURRED_AT | FilterField.CONFIDENCE | FilterField.IMPORTANCE:
            operators = (Operator.EQ, Operator.GT, Operator.GTE, Operator.LT, Operator.LTE)
            return st.builds(Compare, st.just(field), st.sampled_from(operators), value)
        case _:
            equal = st.builds(Compare, st.just(field), st.just(Operator.EQ), st.one_of(st.none(), value))
            texts = st.lists(value if blank_in_lists else value.filter(bool), min_size=1, max_size=3).map(tuple)
            return st.one_of(equal, st.builds(Compare, st.just(field), st.just(Operator.IN), texts))


COMPARES = st.one_of(
    compares(FilterField.CATEGORY, tuple(category.value for category in Category)),
    compares(FilterField.OCCURRED_AT, (*TIMES, TEN - MICROSECOND)),
    compares(FilterField.TAGS, (*TAGS, "re", "salt", "RED")),
    compares(FilterField.SOURCE, (*SOURCES, "no such source")),
    compares(FilterField.USER, (*STRANGE, "nobody")),
    compares(FilterField.AGENT, (*STRANGE, "nobody")),
    compares(FilterField.SESSION, (*STRANGE, "nowhere")),
    compares(FilterField.CONFIDENCE, (*FRACTIONS, -1.0, 2.0)),
    compares(FilterField.IMPORTANCE, (*FRACTIONS, 0.7, 5e-324, -0.0)),
)


def nested(parts: st.SearchStrategy[Compare], *, max_leaves: int) -> st.SearchStrategy[Condition]:
    """Return conditions of these comparisons, nested by and, or and not."""
    return st.recursive(
        parts,
        lambda inner: st.one_of(
            st.builds(AllOf, st.lists(inner, max_size=3).map(tuple)),
            st.builds(AnyOf, st.lists(inner, max_size=3).map(tuple)),
            st.builds(Negation, inner),
        ),
        max_leaves=max_leaves,
    )


CONDITIONS = nested(COMPARES, max_leaves=12)
