from datetime import UTC, datetime, timedelta
from itertools import permutations
from uuid import UUID

import pytest

from lamina.policies.validity import Claim, Validity, decide_validities

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
PARIS, BERLIN, ROME = (UUID(int=number) for number in (11, 12, 13))


def day(number: int) -> datetime:
    return FIRST + timedelta(days=number)


def claim(
    edge: int, value: UUID, on: int, relation: str = "lives_in", *, confidence: float = 0.7, owner: str | None = None
) -> Claim:
    return Claim(UUID(int=edge), relation, value, day(on), confidence, owner)


def decided(*claims: Claim) -> dict[int, Validity]:
    return {id_.int: held for id_, held in decide_validities(claims).items()}


def test_what_holds_once_ends_the_moment_the_next_begins_in_whatever_order_it_arrives() -> None:
    told = (claim(1, PARIS, 0), claim(2, BERLIN, 5, "moved_to"), claim(3, ROME, 9))

    for order in permutations(told):
        assert decided(*order) == {
            1: Validity(day(0), day(5), UUID(int=2)),
            2: Validity(day(5), day(9), UUID(int=3)),
            3: Validity(day(9)),
        }


def test_the_same_value_said_in_two_ways_ends_nothing() -> None:
    assert decided(claim(1, PARIS, 0), claim(2, PARIS, 5, "moved_to")) == {1: Validity(day(0)), 2: Validity(day(5))}


def test_a_value_that_holds_again_holds_from_then_on() -> None:
    told = (claim(1, PARIS, 0), claim(2, BERLIN, 5), claim(1, PARIS, 9))

    assert decided(*told) == {
        1: Validity(day(9), before=((day(0), day(5)),)),
        2: Validity(day(5), day(9), UUID(int=1)),
    }


def test_an_edge_keeps_each_interval_in_which_it_held() -> None:
    told = (claim(1, PARIS, 0), claim(2, BERLIN, 5), claim(1, PARIS, 9), claim(3, ROME, 12), claim(1, PARIS, 20))

    assert decided(*told)[1] == Validity(day(20), before=((day(0), day(5)), (day(9), day(12))))


@pytest.mark.parametrize("relation", ["has_sister", "knows", "uses", "worked_at", "an own one"])
def test_what_may_hold_several_times_adds_up(relation: str) -> None:
    told = (claim(1, PARIS, 0, relation), claim(2, BERLIN, 5, relation))

    assert decided(*told) == {1: Validity(day(0)), 2: Validity(day(5))}


@pytest.mark.parametrize(("ends", "state"), [("left", "works_at"), ("left", "joined"), ("stopped_using", "uses")])
def test_a_retraction_ends_its_own_value_alone(ends: str, state: str) -> None:
    told = (claim(1, PARIS, 0, state), claim(2, PARIS, 5, ends), claim(3, BERLIN, 6, ends))

    assert decided(*told)[1] == Validity(day(0), day(5))


def test_of_one_moment_the_end_comes_before_the_beginning() -> None:
    told = (claim(1, PARIS, 0, "works_at"), claim(2, BERLIN, 5, "joined"), claim(3, PARIS, 5, "left"))

    assert decided(*told)[1] == Validity(day(0), day(5), replaced_by=UUID(int=2))
    assert decided(*told)[2] == Validity(day(5))


def test_the_word_of_another_ends_nothing_that_a_person_says_of_themselves() -> None:
    assert decided(claim(1, PARIS, 0), claim(2, BERLIN, 5, confidence=0.5))[1] == Validity(day(0))
    assert decided(claim(1, PARIS, 0, confidence=0.5), claim(2, BERLIN, 5))[1].valid_to == day(5)


def test_private_evidence_ends_nothing_that_others_may_see() -> None:
    private = claim(2, BERLIN, 5, owner="ann")

    assert decided(claim(1, PARIS, 0), private)[1] == Validity(day(0))
    assert decided(claim(1, PARIS, 0, owner="bob"), private)[1] == Validity(day(0))
    assert decided(claim(1, PARIS, 0, owner="ann"), claim(1, PARIS, 1, owner="bob"), private)[1] == Validity(day(0))
    assert decided(claim(1, PARIS, 0, owner="ann"), private)[1].valid_to == day(5)
    assert decided(claim(1, PARIS, 0, owner="ann"), claim(2, BERLIN, 5))[1].valid_to == day(5)


def test_a_replacement_that_a_caller_states_ends_any_relation_until_it_is_stated_again() -> None:
    replaced = Claim(UUID(int=1), "speaks", PARIS, day(5), 1, replaced_by=UUID(int=2))
    told = (claim(1, PARIS, 0, "speaks"), claim(2, BERLIN, 5, "speaks"), replaced)

    assert decided(*told)[1] == Validity(day(0), day(5), UUID(int=2))
    assert decided(*told, claim(1, PARIS, 7, "speaks"))[1] == Validity(day(7), before=((day(0), day(5)),))


@pytest.mark.parametrize("new", [1, 9])
def test_what_is_replaced_from_its_beginning_on_never_held_and_ends_nothing(new: int) -> None:
    old = claim(5, PARIS, 3)
    replaced = Claim(UUID(int=5), "lives_in", PARIS, day(3), 1, replaced_by=UUID(int=new))
    told = (claim(4, ROME, 0), old, claim(new, BERLIN, 3), replaced)

    for order in permutations(told):
        assert decided(*order) == {
            4: Validity(day(0), day(3), UUID(int=new)),
            5: Validity(day(3), day(3), UUID(int=new)),
            new: Validity(day(3)),
        }
