from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.links import FollowedLink, Frontier, NodeLabel
from lamina.core.scope import Scope
from lamina.policies.ranking.graph_paths import LinkWeight, Walk, advance, begin, expandable_nodes
from lamina.search.graph_walk import walk_links

A, B, C, D = (UUID(int=number) for number in range(1, 5))


def link(start: UUID, end: UUID, strength: float, kind: str = "knows") -> FollowedLink:
    return FollowedLink(start, end, NodeLabel.ENTITY, 4, kind, strength, is_forward=True)


def walked(links: list[FollowedLink], seeds: dict[UUID, float], depth: int, least: float = 0.0) -> Walk:
    """Walk over fixed links as over a store."""
    walk = begin(seeds)
    for _ in range(depth):
        asked = expandable_nodes(walk, fan_out=10, max_links=1000)
        leaving = [item for item in links if item.start in asked]
        walk = advance(walk, leaving, asked, weigh=lambda item: item.strength, least=least)
    return walk


def test_a_path_is_worth_the_product_of_its_strengths() -> None:
    walk = walked([link(A, B, 0.5), link(B, C, 0.4)], {A: 0.9}, depth=2)

    assert {id_: node.score for id_, node in walk.nodes.items()} == pytest.approx({A: 0.9, B: 0.45, C: 0.18})
    assert [step.end for step in walk.nodes[C].path] == [B, C]


def test_a_node_is_worth_its_best_path_even_a_longer_one() -> None:
    walk = walked([link(A, C, 0.3), link(A, B, 0.9), link(B, C, 0.9), link(C, D, 1.0)], {A: 1.0}, depth=3)

    assert walk.nodes[C].score == pytest.approx(0.81)
    assert walk.nodes[D].score == pytest.approx(0.81)


@pytest.mark.parametrize(("depth", "reached"), [(1, {A, B}), (2, {A, B, C}), (3, {A, B, C, D})])
def test_depth_is_the_number_of_links(depth: int, reached: set[UUID]) -> None:
    chain = [link(A, B, 1.0), link(B, C, 1.0), link(C, D, 1.0)]

    assert set(walked(chain, {A: 1.0}, depth).nodes) == reached


def test_a_path_weaker_than_the_threshold_leads_nowhere() -> None:
    walk = walked([link(A, B, 0.5), link(B, C, 0.5), link(C, D, 1.0)], {A: 1.0}, depth=3, least=0.3)

    assert set(walk.nodes) == {A, B}


def test_an_edge_that_ended_leads_nowhere_and_is_still_told() -> None:
    ended = replace(link(A, B, 1.0, kind="lives_in"), is_ended=True)

    walk = walked([ended, link(B, C, 1.0), link(A, D, 0.5)], {A: 1.0}, depth=2)

    assert set(walk.nodes) == {A, D}
    assert ended in walk.links


def test_no_more_nodes_are_expanded_than_links_may_be_visited() -> None:
    walk = begin({A: 0.5, B: 0.9, C: 0.7})

    assert expandable_nodes(walk, fan_out=10, max_links=20) == (B, C)
    capped = advance(walk, [], (B, C), weigh=lambda item: item.strength)
    assert capped.is_capped
    assert not advance(walk, [], (B, C, A), weigh=lambda item: item.strength).is_capped


strengths = st.floats(0, 1)
graphs = st.lists(st.builds(link, st.sampled_from([A, B, C, D]), st.sampled_from([A, B, C, D]), strengths), max_size=12)


@given(graphs, st.integers(1, 3))
def test_scores_stay_within_0_and_1_and_do_not_depend_on_the_order_of_links(
    links: list[FollowedLink], depth: int
) -> None:
    shuffled = list(reversed(links))

    first, second = (walked(order, {A: 1.0}, depth) for order in (links, shuffled))

    scores = {id_: node.score for id_, node in first.nodes.items()}
    assert scores == {id_: node.score for id_, node in second.nodes.items()}
    assert all(0 <= score <= 1 for score in scores.values())


@given(graphs)
def test_going_further_never_makes_a_node_worse(links: list[FollowedLink]) -> None:
    near, far = (walked(links, {A: 1.0}, depth).nodes for depth in (1, 3))

    assert all(far[id_].score >= node.score for id_, node in near.items())


class Chain:
    """A store of links that notes which nodes it was asked for."""

    def __init__(self, *links: FollowedLink) -> None:
        self.links = links
        self.asked: list[UUID] = []

    async def expand(self, frontier: Frontier) -> list[FollowedLink]:
        self.asked += frontier.ids
        return [item for item in self.links if item.start in frontier.ids]


@pytest.mark.parametrize(("most", "asked"), [(0, []), (1, [A]), (2, [A, B]), (3, [A, B, C]), (None, [A, B, C, D])])
async def test_a_walk_asks_for_no_more_nodes_than_it_may(most: int | None, asked: list[UUID]) -> None:
    store = Chain(link(A, B, 0.9), link(A, C, 0.8), link(B, D, 0.9))

    async def weigh(_: Sequence[FollowedLink]) -> LinkWeight:
        return lambda item: item.strength

    frontier = Frontier(Scope("acme"), (), (), 10)
    walk = await walk_links(store, {A: 1.0}, frontier, depth=3, max_links=1000, weigh=weigh, max_nodes=most)

    assert store.asked == asked
    assert walk.is_capped == (most == 2)
