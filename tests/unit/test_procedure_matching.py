import itertools
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.procedures import Procedure, ProcedureOutcome, StoredProcedure, clean_outcome, clean_procedure
from lamina.errors import InvalidInput
from lamina.policies.ranking.procedure_matching import (
    MAX_KEY_BYTES,
    MatchPolicy,
    ProcedureCandidate,
    ProcedureMatch,
    Stage,
    index_key,
    key_prefixes,
    prefix_share,
    rank_matches,
    strength,
)
from lamina.text.words import name_key
from tests.unit.builders import NOON

POLICY = MatchPolicy(min_overlap=0.5, min_similarity=0.25, strength_weight=0.2)
COUNTS = st.integers(0, 10**6)
KEYS = st.lists(st.sampled_from(["deploy", "the", "app", "to", "a_b", "x%", "\\", "成語"]), min_size=1).map(" ".join)


def candidate(
    number: int,
    trigger: str = "refund a damaged order",
    *,
    words: tuple[int, int, int] = (3, 3, 0),
    cosine: float | None = None,
    strong: float = 0.5,
) -> ProcedureCandidate:
    """A candidate whose trigger has, the question has, and both have so many words."""
    stored = StoredProcedure(
        UUID(int=number), Procedure(trigger, "do it"), None, "default", "default", strong, 0, 0, NOON, NOON, None
    )
    return ProcedureCandidate(stored, *words, cosine)


def ranked(
    *candidates: ProcedureCandidate, asked: str = "something else", limit: int = 10
) -> tuple[ProcedureMatch, ...]:
    return rank_matches(name_key(asked), candidates, POLICY, limit=limit)


def numbers(matches: tuple[ProcedureMatch, ...]) -> list[int]:
    return [match.stored.id.int for match in matches]


def test_a_learnt_procedure_is_found_where_its_trigger_is_near_or_begins_the_question() -> None:
    near, far, stated, opening = (
        candidate(number, trigger, words=(3, 3, 2), cosine=cosine)
        for number, (trigger, cosine) in enumerate(
            [("refund me", 0.8), ("refund him", 0.7), ("refund her", 0.7), ("please refund", 0.1)], start=1
        )
    )
    learnt = [replace(item, stored=replace(item.stored, is_learnt=True)) for item in (near, far, opening)]
    policy = replace(POLICY, learnt_similarity=0.75)

    found = rank_matches(name_key("please refund it"), [*learnt, stated], policy, limit=10)

    assert numbers(found) == [4, 1, 3]


def test_an_untried_procedure_is_as_likely_to_work_as_not() -> None:
    assert strength(0, 0) == 0.5


@pytest.mark.parametrize(("outcomes", "expected"), [((1, 0), 2 / 3), ((0, 1), 1 / 3), ((2, 0), 3 / 4), ((7, 1), 0.8)])
def test_strength_is_the_share_of_successes_after_one_of_each(outcomes: tuple[int, int], expected: float) -> None:
    assert strength(*outcomes) == pytest.approx(expected)


@given(COUNTS, COUNTS)
def test_strength_stays_within_0_and_1_rises_with_a_success_and_falls_with_a_failure(good: int, bad: int) -> None:
    now = strength(good, bad)

    assert 0 < now < 1
    assert strength(good + 1, bad) > now > strength(good, bad + 1)


@given(COUNTS, COUNTS)
def test_strength_of_the_opposite_outcomes_is_the_opposite_strength(good: int, bad: int) -> None:
    assert strength(good, bad) == pytest.approx(1 - strength(bad, good))


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        ("deploy", "deploy", 1),
        ("deploy", "deploy the app", 1 / 3),
        ("deploy the app", "deploy", 1 / 3),
        ("deploy", "deployment", 0),
        ("the app", "deploy the app", 0),
        ("deploy app", "deploy the app", 0),
        ("a_b", "axb c", 0),
        ("%", "% x", 1 / 2),
        ("%", "anything", 0),
    ],
)
def test_a_prefix_ends_with_a_word(one: str, other: str, share: float) -> None:
    assert prefix_share(one, other) == pytest.approx(share)


@given(KEYS, KEYS)
def test_a_key_is_a_prefix_of_another_exactly_if_it_is_among_its_prefixes(one: str, other: str) -> None:
    related = one in key_prefixes(other) or other in key_prefixes(one)

    assert (prefix_share(one, other) > 0) is related
    assert prefix_share(one, other) == prefix_share(other, one) <= 1


@given(st.text(max_size=400), st.sampled_from([1, 7, 60]))
def test_an_indexed_key_fits_and_begins_the_whole_one(text: str, times: int) -> None:
    key = name_key(text * times)

    head = index_key(key)

    assert len(head.encode()) <= MAX_KEY_BYTES
    assert key.startswith(head)
    assert head == key or " " not in head or key[len(head)] == " "


def test_every_prefix_of_an_indexed_key_is_known() -> None:
    assert key_prefixes("deploy the app") == ("deploy", "deploy the", "deploy the app")


def test_what_matches_by_prefix_comes_before_what_matches_by_keyword_before_what_resembles() -> None:
    resembles = candidate(1, cosine=0.99, strong=0.99)
    keyword = candidate(2, words=(4, 4, 2), cosine=0.1, strong=0.01)
    prefix = candidate(3, "refund", cosine=-0.2, strong=0.01)

    found = ranked(resembles, keyword, prefix, asked="refund this one to me")

    assert [match.stage for match in found] == [Stage.PREFIX, Stage.KEYWORD, Stage.SEMANTIC]
    assert numbers(found) == [3, 2, 1]


@given(
    st.permutations(range(1, 9)),
    st.lists(st.tuples(st.integers(0, 4), st.floats(-1, 1), st.floats(0, 1), st.booleans()), min_size=8, max_size=8),
)
def test_the_order_follows_stage_and_score_whatever_the_order_of_the_candidates(
    order: list[int], parts: list[tuple[int, float, float, bool]]
) -> None:
    made = {
        number: candidate(
            number, "refund" if starts else "return it", words=(4, 4, shared), cosine=cosine, strong=strong
        )
        for number, (shared, cosine, strong, starts) in enumerate(parts, start=1)
    }

    found = ranked(*(made[number] for number in order), asked="refund this")

    stages = [list(Stage).index(match.stage) for match in found]
    assert stages == sorted(stages)
    assert all(0 <= match.score <= 1 for match in found)
    assert all(one.score >= other.score for one, other in itertools.pairwise(found))
    assert found == ranked(*made.values(), asked="refund this")


def test_of_equally_close_triggers_the_stronger_comes_first() -> None:
    found = ranked(*(candidate(number, cosine=0.6, strong=number / 10) for number in (3, 9, 5)))

    assert numbers(found) == [9, 5, 3]


def test_strength_does_not_lift_what_matches_much_worse() -> None:
    found = ranked(candidate(1, cosine=0.9, strong=0.0), candidate(2, cosine=0.5, strong=1.0))

    assert numbers(found) == [1, 2]


def test_without_a_weight_strength_only_decides_between_equals() -> None:
    policy = replace(POLICY, strength_weight=0.0)
    made = [candidate(1, cosine=0.601, strong=0.0), candidate(2, cosine=0.6, strong=0.4), candidate(3, cosine=0.6)]

    assert numbers(rank_matches("something", made, policy, limit=9)) == [1, 3, 2]


def test_the_identical_trigger_is_near_1_even_where_it_is_weak() -> None:
    (match,) = ranked(candidate(1, "refund a damaged order", strong=0.01), asked="Refund a DAMAGED order!")

    assert match.stage is Stage.PREFIX
    assert match.score > 0.95


@pytest.mark.parametrize(
    ("words", "stage"),
    [
        ((4, 4, 2), Stage.KEYWORD),  # Half of both.
        ((4, 4, 1), None),
        ((9, 2, 2), Stage.KEYWORD),  # All that is asked.
        ((1, 9, 1), Stage.KEYWORD),  # The whole trigger.
        ((9, 2, 1), None),
        ((0, 3, 0), None),  # A trigger of stop words.
        ((3, 0, 0), None),
        ((0, 0, 0), None),
    ],
)
def test_a_keyword_match_shares_half_of_the_words_or_all_of_one_side(
    words: tuple[int, int, int], stage: Stage | None
) -> None:
    assert [match.stage for match in ranked(candidate(1, words=words))] == ([stage] if stage else [])


@pytest.mark.parametrize(("cosine", "count"), [(None, 0), (0.24, 0), (0.25, 1), (-1.0, 0)])
def test_what_hardly_resembles_is_no_match(cosine: float | None, count: int) -> None:
    assert len(ranked(candidate(1, cosine=cosine))) == count


def test_what_only_resembles_scores_below_a_half() -> None:
    (match,) = ranked(candidate(1, cosine=0.3))

    assert match.score < 0.15
    assert match.figures == {"cosine": 0.3}


def test_each_procedure_comes_once_and_no_more_than_asked_for() -> None:
    made = [candidate(number, cosine=0.5) for number in (1, 2, 3)]

    assert numbers(ranked(*made, *made, limit=2)) == [1, 2]


@pytest.mark.parametrize(
    ("procedure", "field"),
    [
        (Procedure("a\x00b", "x"), "trigger"),
        (Procedure("  ", "x"), "trigger"),
        (Procedure("x", "\u200b"), "action"),
        (Procedure("x" * 10_001, "x"), "trigger"),
        (Procedure("x", "x" * 100_001), "action"),
        (Procedure("x", "x", tags=("a\x00",)), "tags.0"),
        (Procedure("x", "x", metadata={"k": "a\x00"}), "metadata.k"),
        (Procedure("x", "x", source="a\x00"), "source"),
    ],
)
def test_an_unclean_procedure_is_refused_naming_the_field(procedure: Procedure, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        clean_procedure(procedure, "procedures.3")

    assert caught.value.field == f"procedures.3.{field}"


@pytest.mark.parametrize(
    ("outcome", "field"),
    [
        (ProcedureOutcome(succeeded=True, run="a\x00"), "run"),
        (ProcedureOutcome(succeeded=True, run=""), "run"),
        (ProcedureOutcome(succeeded=True, comment="\x00"), "comment"),
    ],
)
def test_an_unclean_outcome_is_refused_naming_the_field(outcome: ProcedureOutcome, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        clean_outcome(outcome)

    assert caught.value.field == field


def test_white_space_and_composition_make_no_other_procedure_and_the_split_between_its_parts_does() -> None:
    hashes = [
        Procedure(*parts).content_hash()
        for parts in [("Zo\u00eb calls", "hang up"), ("  Zoe\u0308  calls", "hang\nup"), ("Zo\u00eb", "calls hang up")]
    ]

    assert hashes[0] == hashes[1] != hashes[2]
