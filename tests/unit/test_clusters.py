from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lamina.core.scope import Scope
from lamina.policies.retention import clusters as clusters_module
from lamina.policies.retention.clusters import (
    Cluster,
    EdgePolicy,
    InferredEdge,
    cluster_key,
    clusters,
    covered,
    inferred_edges,
)
from lamina.policies.retention.provenance import Origin

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
PAIRS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=60)


def ids(*numbers: int) -> list[UUID]:
    return [UUID(int=number) for number in numbers]


def at_angles(*degrees: float) -> NDArray[np.float32]:
    """Unit rows of a plane; 36° apart have a cosine of 0.81, 37° of 0.799."""
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def found(rows: NDArray[np.float32], numbers: Sequence[int] | None = None, most: int = 100) -> list[set[int]]:
    own = ids(*(numbers or range(len(rows))))
    made = clusters(own, rows, [NOON] * len(own), most_members=most)
    return [{member.int for member in cluster.members} for cluster in made]


def test_three_near_notes_are_a_cluster_around_the_most_central_in_the_order_of_time() -> None:
    moments = [NOON, NOON - timedelta(days=2), NOON - timedelta(days=1), NOON]

    (cluster,) = clusters(ids(1, 2, 3, 4), at_angles(0, 30, 60, 200), moments)

    assert cluster == Cluster(UUID(int=2), tuple(ids(2, 3, 1)))


def test_two_near_notes_are_none() -> None:
    assert found(at_angles(0, 10, 90)) == []
    assert found(at_angles(0, 0)) == []
    assert clusters([], np.empty((0, 2), np.float32), []) == ()


@pytest.mark.parametrize(("angle", "is_near"), [(36.8, True), (37, False)])
def test_near_is_a_cosine_of_80_percent(angle: float, is_near: bool) -> None:
    assert bool(found(at_angles(0, angle, -angle))) == is_near


def test_nothing_chains_from_one_subject_to_another() -> None:
    chain = at_angles(*range(0, 181, 30))

    for cluster in found(chain):
        assert max(cluster) - min(cluster) <= 2


def test_no_note_is_in_two_clusters_and_the_most_central_takes_first() -> None:
    assert found(at_angles(0, 20, 30, 35, 60, 66, 72)) == [{0, 1, 2, 3, 4, 5}]
    assert found(at_angles(0, 1, 2, 3, 90, 91, 92)) == [{0, 1, 2, 3}, {4, 5, 6}]


def test_two_that_a_star_leaves_over_are_none() -> None:
    assert found(at_angles(30, -5, -5, -5, -5, 36, 36, 71, 72)) == [{0, 1, 2, 3, 4, 5, 6}]


def test_a_large_star_keeps_the_nearest_and_the_others_form_another() -> None:
    sizes = [len(cluster) for cluster in found(at_angles(*range(7)), most=4)]
    assert sizes == [4, 3]
    assert found(at_angles(0, 5, 1, 6, 2), most=3)[0] == {0, 2, 4}


@given(st.permutations(range(12)), st.integers(0, 2**32 - 1))
def test_the_order_of_the_input_does_not_matter(order: list[int], seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(12, 3)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    own, moments = ids(*range(12)), [NOON + timedelta(hours=place % 5) for place in range(12)]

    shuffled = clusters([own[place] for place in order], rows[order], [moments[place] for place in order])

    assert shuffled == clusters(own, rows, moments)


def test_blocks_find_what_one_comparison_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(7).normal(size=(300, 4)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    whole = found(rows)

    monkeypatch.setattr(clusters_module, "BLOCK", 7)

    assert found(rows) == whole
    assert len(whole) > 5


def test_every_member_is_near_the_centre() -> None:
    rows = np.random.default_rng(3).normal(size=(400, 5)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    made = clusters(ids(*range(400)), rows, [NOON] * 400)

    assert made
    for cluster in made:
        near = rows[[member.int for member in cluster.members]] @ rows[cluster.centre.int]
        assert cluster.centre in cluster.members
        assert near.min() >= 0.7999
    taken = [member for cluster in made for member in cluster.members]
    assert len(taken) == len(set(taken))


def test_the_key_of_a_cluster_depends_on_its_members_and_their_texts_alone() -> None:
    one, two, edited = Origin(UUID(int=1), b"1"), Origin(UUID(int=2), b"2"), Origin(UUID(int=2), b"3")
    acme = Scope("acme")

    assert cluster_key(acme, None, (one, two)) == cluster_key(acme, None, (two, one))
    assert cluster_key(acme, None, (one, two)) != cluster_key(acme, None, (one, edited))
    assert cluster_key(acme, None, (one, two)) != cluster_key(acme, "ann", (one, two))


WHOLE = "2026-11-20: Ann moved to Graz. She pays 900 EUR rent.\n2026-11-21: Does Bob like tea? Ann doesn't eat nuts."


@pytest.mark.parametrize(
    "member",
    [
        "Ann moved to Graz.",
        "ann moved to graz",
        "Ann moved to Graz!\nShe pays 900 EUR rent",
        "pays 900 EUR",
        "Does Bob like tea?",
        "Ann doesn't eat nuts",
    ],
)
def test_a_member_whose_every_sentence_stands_in_the_text_is_covered(member: str) -> None:
    assert covered(member, WHOLE)


@pytest.mark.parametrize(
    "member",
    [
        "Ann moved to Linz.",
        "Ann moved to Graz with Bob.",
        "Bob moved to Graz.",
        "Ann moved from Graz.",
        "She pays 90 EUR rent.",
        "She pays 900 USD rent.",
        "Ann moved to Graz. She has 2 cats.",
        "Ann eats nuts.",
        "Ann eat nuts",
        "Bob like tea.",
        "Bob does like tea",
        "20 EUR rent",
        "Ann pays 900 EUR rent.",
        "Graz moved to Ann.",
        "Ann moved to Graz She pays 900 EUR rent.",
        "",
        "👍",
    ],
)
def test_a_member_that_says_anything_else_is_not_covered(member: str) -> None:
    assert not covered(member, WHOLE)


@pytest.mark.parametrize(
    ("member", "whole"),
    [
        ("Ann likes tea", "Ann likes coffee, hates tea"),
        ("Ann likes tea", "Ann likes no tea"),
        ("Ann likes tea", "Bob denies that Ann likes tea"),
        ("Ann goes home", "If it rains, Ann goes home"),
        ("20 cats", "2026-11-20 cats came"),
        ("11 cats", "2026-11-20: 10 cats"),
        ("It costs 5", "It costs 5.5 EUR"),
        ("Ann manages Bob", "Bob and Ann manages"),
    ],
)
def test_the_words_alone_do_not_cover(member: str, whole: str) -> None:
    assert not covered(member, whole)


def test_what_counts_from_its_moment_is_covered_in_a_line_of_its_day_alone() -> None:
    whole = "2026-11-20: Ann met Bob yesterday."

    assert covered("Ann met Bob yesterday.", whole, moment=NOON)
    assert not covered("Ann met Bob yesterday.", whole, moment=NOON + timedelta(days=1))
    assert not covered("Ann met Bob yesterday.", whole)
    assert not covered("Ann met Bob yesterday.", "Ann met Bob yesterday.", moment=NOON)


@pytest.mark.parametrize("sentence", ["Gestern gab es einen Ausfall.", "明天开会。", "Gisteren was er een storing."])
def test_what_is_not_english_is_covered_in_a_line_of_its_day_alone(sentence: str) -> None:
    whole = f"2026-11-20: {sentence}"

    assert covered(sentence, whole, moment=NOON)
    assert not covered(sentence, whole, moment=NOON + timedelta(days=1))


def test_other_scripts_and_emoji_are_covered_too() -> None:
    assert covered("安搬到格拉茨。", "2026-11-20: 安搬到格拉茨。她付租金。", moment=NOON)
    assert not covered("安搬到林茨。", "2026-11-20: 安搬到格拉茨。")
    assert covered("👍", "2026-11-20: 👍")


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_text_covers_itself_and_more_lines_take_nothing_away(text: str, more: str) -> None:
    is_shown = any(char.isalnum() for char in text)

    if is_shown and covered(text, text, moment=NOON):
        assert covered(text, f"{text}\n{more}", moment=NOON)
    if is_shown and text.isascii() and text.isprintable():
        dated = "\n".join(f"2026-11-20: {line}" for line in text.splitlines())
        assert covered(text, dated, moment=NOON)


def fan(left: int, right: int, shared: int, first: int = 100) -> list[tuple[UUID, UUID]]:
    """Links of two entities to as many shared neighbours, in either direction."""
    links = []
    for place in range(shared):
        between = UUID(int=first + place)
        links += [(UUID(int=left), between), (between, UUID(int=right))]
    return links


def test_three_shared_neighbours_imply_an_edge_from_the_smaller_id() -> None:
    assert inferred_edges(fan(9, 1, 3))[0] == InferredEdge(UUID(int=1), UUID(int=9), 1.0, 3)
    assert inferred_edges(fan(9, 1, 2)) == ()


def test_the_strength_is_the_share_of_neighbours_that_both_have() -> None:
    more = [(UUID(int=1), UUID(int=200 + place)) for place in range(3)]

    (edge,) = [edge for edge in inferred_edges([*fan(1, 2, 3), *more]) if edge.subject.int == 1]

    assert (edge.object.int, edge.shared, edge.strength) == (2, 3, 0.5)


@pytest.mark.parametrize("link", [(1, 2), (2, 1)])
def test_what_is_linked_already_gets_no_edge(link: tuple[int, int]) -> None:
    linked = (UUID(int=link[0]), UUID(int=link[1]))

    assert not [edge for edge in inferred_edges([*fan(1, 2, 3), linked]) if edge.subject.int == 1]


def test_links_told_twice_or_to_oneself_count_once_or_never() -> None:
    assert inferred_edges([*fan(1, 2, 2), *fan(1, 2, 2), (UUID(int=1), UUID(int=1))]) == ()


def test_hubs_are_no_evidence_and_get_no_edge() -> None:
    crowd = [(UUID(int=100), UUID(int=1000 + place)) for place in range(10)]
    policy = EdgePolicy(hub=10)

    assert [edge for edge in inferred_edges(fan(1, 2, 3), policy) if edge.subject.int == 1]
    assert not [edge for edge in inferred_edges([*fan(1, 2, 3), *crowd], policy) if edge.subject.int == 1]
    for end in (1, 2):
        many = [(UUID(int=end), UUID(int=1000 + place)) for place in range(10)]
        assert not [edge for edge in inferred_edges([*fan(1, 2, 3), *many], policy) if edge.subject.int == 1]


def test_an_entity_gets_its_strongest_edges_alone() -> None:
    # 1, 2, … 6 share three neighbours; the higher ones have others besides.
    links = [(UUID(int=node), UUID(int=100 + place)) for node in range(1, 7) for place in range(3)]
    links += [(UUID(int=node), UUID(int=1000 * node + place)) for node in range(1, 7) for place in range(node)]

    edges = inferred_edges(links, EdgePolicy(most_each=2))

    of_one = [edge.object.int for edge in edges if edge.subject.int == 1]
    assert of_one == [2, 3]
    assert all(first.strength >= second.strength for first, second in pairwise(edges))
    ends = [end for edge in edges for end in (edge.subject, edge.object)]
    assert max(ends.count(end) for end in ends) == 2


def test_the_most_edges_count_at_either_end() -> None:
    links = [link for node in range(1, 5) for link in fan(node, 9, 3, first=100 * node)]

    assert len(inferred_edges(links)) == 4
    assert [edge.subject.int for edge in inferred_edges(links, EdgePolicy(most_each=2))] == [1, 2]


@given(PAIRS, st.randoms())
def test_inferred_edges_are_those_that_counting_by_hand_finds(pairs: list[tuple[int, int]], random: Random) -> None:
    links = [(UUID(int=one), UUID(int=other)) for one, other in pairs]
    near = {
        node: {a + b - node for a, b in pairs if node in (a, b) and a != b}
        for node in {n for pair in pairs for n in pair}
    }
    expected = {
        (one, other, len(near[one] & near[other]) / len(near[one] | near[other]))
        for one in near
        for other in near
        if one < other and other not in near[one] and len(near[one] & near[other]) >= 3
    }

    edges = inferred_edges(links, EdgePolicy(most_each=100))
    turned = [(other, one) for one, other in links]
    random.shuffle(turned)

    assert {(edge.subject.int, edge.object.int, edge.strength) for edge in edges} == expected
    assert inferred_edges(turned, EdgePolicy(most_each=100)) == edges
