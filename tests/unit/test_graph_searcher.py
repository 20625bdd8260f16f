from collections.abc import Sequence
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.links import FollowedLink, LinkKind, NodeLabel
from lamina.ingest.memory_linking import source_of, title_entity
from lamina.policies.ranking.graph_paths import advance, begin
from lamina.search.graph_searcher import QUESTION_WORDS, candidate_names, fact_scores, link_weight, specificity

ANN, BOB, NOTE = (UUID(int=number) for number in range(1, 4))


def link(kind: str, start: UUID, end: UUID, *, strength: float = 1.0, is_forward: bool = True) -> FollowedLink:
    label = NodeLabel.MEMORY if end == NOTE else NodeLabel.ENTITY
    return FollowedLink(start, end, label, 2 if end == NOTE else 4, kind, strength, is_forward)


@pytest.mark.parametrize(("mentions", "expected"), [(0, 1.0), (1, 1.0), (10, 2 / 3), (100, 1 / 3), (1000, 0.0)])
def test_a_name_tells_less_the_more_memories_mention_it(mentions: int, expected: float) -> None:
    assert specificity(mentions, 1000) == pytest.approx(expected)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_what_a_name_tells_falls_with_its_mentions_and_stays_within_0_and_1(one: int, other: int) -> None:
    few, many = sorted((one, other))

    assert 0 <= specificity(many, 1000) <= specificity(few, 1000) <= 1


@pytest.mark.parametrize(
    ("kind", "is_forward", "expected"),
    [
        (LinkKind.ABOUT, True, 1.0),
        (LinkKind.ABOUT, False, 1.0),
        (LinkKind.MENTIONS, True, 0.45),
        (LinkKind.MENTIONS, False, 0.25),
        (LinkKind.SIMILAR, True, 0.5),
        ("works_at", True, 1.0),
    ],
)
def test_a_link_carries_what_its_kind_direction_and_name_are_worth(
    kind: str, *, is_forward: bool, expected: float
) -> None:
    ends = (NOTE, ANN) if is_forward else (ANN, NOTE)

    assert link_weight(link(kind, *ends, is_forward=is_forward), {ANN: 0.5}) == pytest.approx(expected)


def facts(links: Sequence[FollowedLink], seeds: dict[UUID, float]) -> dict[tuple[UUID, str, UUID], float]:
    walk = begin(seeds)
    return fact_scores(advance(walk, links, walk.frontier, weigh=lambda item: item.strength))


def test_an_edge_is_a_fact_in_its_own_direction_however_it_was_followed() -> None:
    forward = link("works_with", ANN, BOB, strength=0.5)
    backward = link("works_with", BOB, ANN, strength=0.5, is_forward=False)

    assert facts([forward], {ANN: 0.8}) == {(ANN, "works_with", BOB): 0.4}
    assert facts([backward], {BOB: 0.8}) == {(ANN, "works_with", BOB): 0.4}


def test_links_of_memories_are_no_facts() -> None:
    assert facts([link(kind, ANN, NOTE) for kind in LinkKind], {ANN: 1.0}) == {}


def test_a_title_is_also_known_without_what_tells_it_from_its_namesakes() -> None:
    assert keys_of("Mercury (planet)") == ("mercury planet", "mercury")
    assert keys_of("Mercury") == ("mercury",)
    assert keys_of("(untitled)") == ("untitled",)


def keys_of(title: str | None) -> tuple[str, ...]:
    entity = title_entity(title)
    return entity.all_keys() if entity else ()


def test_a_title_that_is_longer_than_a_name_is_no_entity() -> None:
    assert len(keys_of("題" * 128)) == 1
    assert keys_of("題" * 129) == keys_of("") == keys_of(None) == ()


def test_only_the_first_words_of_a_long_question_are_looked_up() -> None:
    question = " ".join(f"w{place}" for place in range(20_000))

    found = candidate_names(question)

    assert f"w{QUESTION_WORDS - 1} w{QUESTION_WORDS}" in found
    assert f"w{QUESTION_WORDS}" not in found
    assert len(found) <= 16 * QUESTION_WORDS
    assert candidate_names("?!") == {}


def test_a_text_without_a_named_source_is_its_own_source() -> None:
    assert source_of("wiki page 17", "a") == source_of("wiki page 17", "b") == "wiki page 17"
    assert source_of("api", "a") == source_of("message:0190", "a") != source_of("api", "b")
