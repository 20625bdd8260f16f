from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from lamina.core.filters import matches
from lamina.core.queries import Failure, Filters, Hit, Ranking
from lamina.core.scope import Scope
from lamina.core.sharing import (
    ForeignQuery,
    Share,
    ShareState,
    clean_share,
    foreign_queries,
    gather_answers,
    merge_rankings,
)
from lamina.core.tiers import SEARCHED_TIERS, Segment, Source, Tier
from lamina.errors import InvalidInput
from tests.unit.builders import NOON, memory, query, ranking

SHARE = Share(UUID(int=1), "library", "default", "desk", Segment.NOTES, (), "", NOON)
ASKED = replace(query(), scope=Scope("acme", "desk", user="ann", agent="planner", session="s1", swarm="bees"))


def asked(*shares: Share, **changes: Any) -> list[ForeignQuery]:
    return foreign_queries(shares, replace(ASKED, **changes), SEARCHED_TIERS, NOON)


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, ShareState.ACTIVE),
        ({"expires_at": NOON + timedelta(microseconds=1)}, ShareState.ACTIVE),
        ({"expires_at": NOON}, ShareState.EXPIRED),
        ({"revoked_at": NOON - timedelta(days=1)}, ShareState.REVOKED),
        ({"revoked_at": NOON, "expires_at": NOON - timedelta(days=1)}, ShareState.REVOKED),
    ],
)
def test_a_share_is_active_until_it_expires_or_is_revoked(changes: dict[str, Any], state: ShareState) -> None:
    share = replace(SHARE, **changes)

    assert share.state(NOON) is state
    assert len(asked(share)) == (state is ShareState.ACTIVE)


def test_a_share_becomes_a_query_in_the_other_scope_without_the_callers_ids() -> None:
    (foreign,) = asked(replace(SHARE, namespace="shelf"))

    assert foreign.tier is Tier.NOTES
    assert foreign.query.scope == Scope("acme", "library", "shelf")
    assert foreign.query.filters.shared_only
    assert (foreign.query.text, foreign.query.limit) == (ASKED.text, ASKED.limit)


@pytest.mark.parametrize(
    ("segment", "tier"),
    [
        (Segment.NOTES, Tier.NOTES),
        (Segment.GRAPH, Tier.GRAPH),
        (Segment.PROCEDURES, Tier.PROCEDURES),
        (Segment.DOCUMENTS, Tier.DOCUMENTS),
    ],
)
def test_a_share_is_asked_in_the_tier_of_its_segment_alone(segment: Segment, tier: Tier) -> None:
    share = replace(SHARE, segment=segment)

    assert [foreign.tier for foreign in asked(share)] == [tier]
    assert foreign_queries([share], ASKED, [other for other in SEARCHED_TIERS if other is not tier], NOON) == []


def test_the_tags_of_the_share_and_the_filters_of_the_caller_must_both_hold() -> None:
    filters = Filters(tags=("red", "blue"), since=NOON, min_confidence=0.9)

    (foreign,) = asked(replace(SHARE, tags=("blue", "open")), filters=filters)

    assert foreign.query.filters == replace(filters, tags=("red", "blue", "open"), shared_only=True)
    assert not matches(foreign.query.filters.condition(), replace(memory(1), tags=("red", "blue")))


def test_two_shares_that_ask_the_same_ask_once() -> None:
    other = replace(SHARE, id=UUID(int=2), label="twice", expires_at=NOON + timedelta(days=1))

    assert len(asked(SHARE, other)) == 1
    assert len(asked(SHARE, replace(other, namespace="shelf"))) == 2


def test_hits_tell_where_they_come_from() -> None:
    shares = asked(SHARE, replace(SHARE, namespace="shelf"))
    answers = [{Source.NOTES_WARM: ranking(Source.NOTES_WARM, number)} for number in (1, 2)]

    found = gather_answers(shares, answers).rankings[Source.NOTES_WARM]

    assert [(hit.memory.workspace, hit.memory.namespace) for hit in found] == [("library", None), ("library", "shelf")]


def test_what_a_share_does_not_cover_is_dropped_whatever_a_store_answers() -> None:
    private = Hit(replace(memory(1), user="bob"), 0.9, {})
    led_to = Hit(memory(2), 0.9, {})
    entity = Hit(memory(3, tier=Tier.GRAPH), 0.9, {})

    notes = gather_answers(asked(SHARE), [{Source.NOTES_WARM: (private, led_to)}]).rankings
    graph = gather_answers(asked(replace(SHARE, segment=Segment.GRAPH)), [{Source.GRAPH: (led_to, entity)}]).rankings

    assert [hit.memory.id for hit in notes[Source.NOTES_WARM]] == [led_to.memory.id]
    assert [hit.memory.id for hit in graph[Source.GRAPH]] == [entity.memory.id]


def test_failures_of_other_workspaces_are_named_beside_what_answered() -> None:
    shares = asked(SHARE, replace(SHARE, workspace="attic"))
    answers: list[dict[Source, Ranking | Failure]] = [
        {Source.NOTES_WARM: Failure("broken"), Source.NOTES_HYBRID: ranking(Source.NOTES_HYBRID, 1)},
        {Source.NOTES_WARM: Failure("slow"), Source.NOTES_HYBRID: ()},
    ]

    found = gather_answers(shares, answers)

    assert found.failures == {"shared_notes_warm": "workspace library: broken; workspace attic: slow"}
    assert [hit.memory.id.int for hit in found.rankings[Source.NOTES_HYBRID]] == [1]
    assert Source.NOTES_WARM not in found.rankings


def test_foreign_hits_stand_among_the_own_ones_by_score_each_once_and_within_the_limit() -> None:
    own = {Source.NOTES_WARM: ranking(Source.NOTES_WARM, 1, 2, 3), Source.NOTES_COLD: ranking(Source.NOTES_COLD, 4)}
    foreign = {
        Source.NOTES_WARM: tuple(Hit(memory(number), score, {}) for number, score in ((7, 0.4), (8, 0.6), (7, 0.2))),
        Source.DOCUMENTS: ranking(Source.DOCUMENTS, 9),
        Source.NOTES_COLD: (),
    }

    both = merge_rankings(own, foreign, 4)

    found = {source: [hit.memory.id.int for hit in hits] for source, hits in both.items()}
    assert found == {Source.NOTES_WARM: [1, 8, 2, 7], Source.NOTES_COLD: [4], Source.DOCUMENTS: [9]}


def test_a_share_is_stored_clean() -> None:
    naive = (NOON + timedelta(days=1)).replace(tzinfo=None)

    share = clean_share(replace(SHARE, tags=("b", "a", "b"), workspace="e\u0301", expires_at=naive))

    assert (share.tags, share.workspace, share.expires_at) == (("a", "b"), "\u00e9", NOON + timedelta(days=1))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"to_workspace": "library"}, "to_workspace"),
        ({"to_workspace": ""}, "to_workspace"),
        ({"workspace": "\x00"}, "workspace"),
        ({"namespace": "x" * 129}, "namespace"),
        ({"tags": ("",)}, "tags.0"),
        ({"label": "\ud800"}, "label"),
        ({"label": "x" * 501}, "label"),
    ],
)
def test_a_share_that_cannot_be_is_refused(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        clean_share(replace(SHARE, **changes))

    assert refused.value.field == field
