from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.queries import FusedHit
from lamina.core.tiers import Tier
from lamina.policies.ranking.diversity import DiversityPolicy, diversify
from tests.unit.builders import NOON, POLICY, memory

DIVERSITY = POLICY.diversity
LONG = "every morning the team drinks green tea in the small kitchen next to the lift and talks about the day"
TEXTS = st.sampled_from(["tea", "tea tea", "green tea", f"{LONG} again", LONG, f"{LONG} 1", f"{LONG} 2", "", "🎉"])


def hits(*texts: str, tier: Tier = Tier.NOTES) -> list[FusedHit]:
    return [FusedHit(memory(number, tier=tier, content=text), 1 / number, {}) for number, text in enumerate(texts, 1)]


def order(found: list[FusedHit], *, enough: int = 100, policy: DiversityPolicy = DIVERSITY) -> list[int]:
    return [hit.memory.id.int for hit in diversify(found, policy, enough=enough).hits]


def test_ten_near_identical_hits_do_not_crowd_out_the_eleventh() -> None:
    repeated = [f"{LONG}{'!' * count}" for count in range(10)]

    assert order(hits(*repeated, "the printer is on the third floor"), enough=2)[:2] == [1, 11]


def test_what_is_moved_keeps_its_order_behind_the_distinct_ones() -> None:
    assert order(hits("tea", "tea!", "coffee", "Tea?", "water")) == [1, 3, 4, 5, 2]


def test_the_first_of_its_kind_stays_where_it_is() -> None:
    assert order(hits("coffee", "tea", "water", "tea.")) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Budget is 1,500 EUR", "Budget is 15,000 EUR"),
        ("eats nuts", "does not eat nuts"),
        ("lives in Graz", "lives in Linz"),
        (f"{LONG}, 12 people", f"{LONG}, 13 people"),
        (f"{LONG}, they say", f"{LONG}, they never say"),
        (f"{LONG}, it isn't new", f"{LONG}, it is new"),
        (f"{LONG} with Ann", f"{LONG} with Bob"),
        (f"Ann told Bob that {LONG}", f"Bob told Ann that {LONG}"),
        ("vegetarian, plays basketball", "vegetarian"),
    ],
)
def test_other_numbers_negations_and_names_make_another_fact(first: str, second: str) -> None:
    assert order(hits(first, second, "tea")) == [1, 2, 3]


@pytest.mark.parametrize(
    ("first", "second"), [(LONG, LONG.upper().lower()), (LONG, f"{LONG} too"), ("The tea is hot", "the tea is hot!")]
)
def test_the_same_in_nearly_the_same_words_is_moved_behind_another_thing(first: str, second: str) -> None:
    assert order(hits(first, second, "coffee")) == [1, 3, 2]


def test_a_hundred_readings_of_one_meter_are_one_kind_of_thing() -> None:
    readings = [f"{LONG}, reading {number}" for number in range(20)]

    assert order(hits(*readings, "tea"))[:4] == [1, 2, 3, 21]


def test_tiers_do_not_hide_each_other() -> None:
    message = FusedHit(memory(9, tier=Tier.SESSIONS, content=LONG), 0.5, {})

    assert order([*hits(LONG), message, *hits("x", "tea")[1:]]) == [1, 9, 2]


def test_two_speakers_who_say_the_same_are_two() -> None:
    said = [
        FusedHit(memory(number, content="see you then", name=name), 1, {}) for number, name in ((1, "Ann"), (2, "Bob"))
    ]

    assert order([*said, *hits("", "", "tea")[2:]]) == [1, 2, 3]


def test_a_threshold_of_1_switches_it_off() -> None:
    assert order(hits("tea", "tea", "coffee"), policy=DiversityPolicy(1.0, 3)) == [1, 2, 3]


def test_only_the_first_hundred_are_compared() -> None:
    found = hits(*(f"word{number} thing" for number in range(100)), "tea", "tea", "coffee")

    assert order(found, enough=1000) == list(range(1, 104))


@given(st.lists(TEXTS, max_size=12), st.integers(1, 12))
def test_nothing_is_lost_and_the_first_stays_first(texts: list[str], enough: int) -> None:
    found = hits(*texts)

    numbers = order(found, enough=enough)

    assert sorted(numbers) == list(range(1, len(texts) + 1))
    assert numbers[:1] == ([1] if texts else [])


@given(st.lists(TEXTS, max_size=12))
def test_to_look_further_changes_nothing_of_what_is_asked_for(texts: list[str]) -> None:
    found = hits(*texts)
    whole = order(found)

    assert all(order(found, enough=enough)[:enough] == whole[:enough] for enough in range(1, len(texts) + 1))


def test_where_the_latest_counts_it_takes_the_place_of_what_says_the_same() -> None:
    found = [
        FusedHit(replace(memory(number, content=text), occurred_at=NOON + timedelta(days=day)), 1 / number, {})
        for number, (text, day) in enumerate((("Ann is on call", 1), ("Bob is on call", 2), ("Ann is on call!", 3)), 1)
    ]

    diverse = diversify(found, replace(DIVERSITY, keeps_latest=True), enough=10)

    assert [hit.memory.id.int for hit in diverse.hits] == [3, 2, 1]
    assert diverse.hits[0].score == found[0].score
    assert order(found) == [1, 2, 3]
