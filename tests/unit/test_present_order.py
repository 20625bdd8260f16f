from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest

from lamina.core.queries import FusedHit, Memory, Placement
from lamina.core.tiers import Source, Tier
from lamina.policies.ranking.present_order import order_for_present
from lamina.text.standing import asks_about_present, phrases_of

FIRST = datetime(2026, 1, 5, 9, tzinfo=UTC)
LATE_WINS = {"late": 1.0}


def hit(text: str, days: int, *, tier: Tier = Tier.SESSIONS, name: str = "Ann") -> FusedHit:
    memory = Memory(UUID(int=days), tier, "message", text, FIRST + timedelta(days=days), name=name, source="user")
    return FusedHit(memory, 1.0, {})


def days_of(hits: tuple[FusedHit, ...]) -> list[int]:
    return [hit.memory.id.int for hit in hits]


HITS = (hit("I live in Paris", 1), hit("We moved to Berlin", 30), hit("Rain again", 20))


def test_a_question_about_the_present_has_the_weightiest_statement_first() -> None:
    ordered = order_for_present(HITS, "Where does Ann live?", as_of=False, weights=LATE_WINS)

    assert days_of(ordered) == [30, 20, 1]


def test_what_was_said_on_one_occasion_keeps_its_order() -> None:
    said = (hit("Ann drinks tea", 1), hit("We chose Rust for the parser of the logs", 1))

    assert order_for_present(said, "What does Ann drink?", as_of=False, weights={"length": 1.0}) == said


def test_a_statement_that_is_far_less_relevant_stays_behind() -> None:
    relevance = {1: 0.7, 30: 0.01}
    placed = tuple(
        replace(item, placements={Source.SESSION_CONTEXT: Placement(1, relevance[item.memory.id.int], {})})
        for item in HITS[:2]
    )

    ordered = order_for_present(placed, "Where does Ann live?", as_of=False, weights={"nearness": 1.0, "late": 1.0})

    assert days_of(ordered) == [1, 30]


def test_statements_take_the_scores_of_their_new_places() -> None:
    falling = tuple(replace(item, score=1 - place / 10) for place, item in enumerate(HITS))

    ordered = order_for_present(falling, "Where does Ann live?", as_of=False, weights=LATE_WINS)

    assert [item.score for item in ordered] == [1.0, 0.9, 0.8]


@pytest.mark.parametrize(
    "question", ["Where did Ann live?", "Wo hat Ann damals gewohnt?", "Ann moved", "アンは昔どこに住んでいた?"]
)
def test_a_question_about_the_past_and_a_text_that_asks_nothing_leave_the_order(question: str) -> None:
    assert order_for_present(HITS, question, as_of=False, weights=LATE_WINS) == HITS


def test_a_question_as_of_a_moment_asks_of_the_state_at_that_moment() -> None:
    assert days_of(order_for_present(HITS, "Where did Ann live?", as_of=True, weights=LATE_WINS)) == [30, 20, 1]


def test_what_is_known_to_be_replaced_stands_behind_what_replaced_it_alone() -> None:
    replaced = replace(HITS[0], memory=replace(HITS[0].memory, replaced_by=(UUID(int=30),)))

    ordered = order_for_present((replaced, *HITS[1:]), "Where does Ann live?", as_of=False, weights={"late": -1.0})

    assert days_of(ordered) == [20, 30, 1]


def test_two_statements_that_replaced_each_other_are_both_there() -> None:
    one = replace(HITS[0], memory=replace(HITS[0].memory, replaced_by=(UUID(int=30),)))
    other = replace(HITS[1], memory=replace(HITS[1].memory, replaced_by=(UUID(int=1),)))

    assert days_of(order_for_present((one, other), "Where does Ann live?", as_of=False, weights=LATE_WINS)) == [30, 1]


def test_what_is_dated_long_before_it_was_said_can_weigh_less() -> None:
    hits = (hit("On 3 May 2024 we lived in Paris", 1), hit("On 7 January we moved", 3), hit("We live in Berlin", 2))

    ordered = order_for_present(hits, "Where does Ann live?", as_of=False, weights={"dated before": -1.0})

    assert days_of(ordered) == [3, 2, 1]


@pytest.mark.parametrize(
    ("question", "days"), [("Where does Ann live now?", [30, 20, 1]), ("Where is it?", [1, 30, 20])]
)
def test_a_question_that_names_the_present_has_weights_of_its_own(question: str, days: list[int]) -> None:
    assert days_of(order_for_present(HITS, question, as_of=False, weights={"late x now": 1.0})) == days


def test_documents_keep_their_places_and_hits_behind_the_tenth_too() -> None:
    passage = hit("Paris is a city", 99, tier=Tier.DOCUMENTS)
    many = (HITS[0], passage, *(hit("talk", day) for day in range(100, 112)))

    ordered = order_for_present(many, "Where does Ann live now?", as_of=False, weights=LATE_WINS)

    assert ordered[1] is passage
    assert days_of(ordered[:10]) == [107, 99, 106, 105, 104, 103, 102, 101, 100, 1]
    assert ordered[10:] == many[10:]


@pytest.mark.parametrize(
    ("held", "holds", "question"),
    [
        ("Our build is on Jenkins.", "We switched: it runs on Buildkite now.", "What does the build run on?"),
        ("My phone number ends in 17.", "I changed my number, it ends in 44 from today.", "How does Ann's number end?"),
        ("The gala is on 3 June.", "Update: the gala was postponed to 9 July.", "When is the gala?"),
        ("Der Server steht in Ulm.", "Der Server steht jetzt in Kassel, wir sind umgezogen.", "Wo steht der Server?"),
    ],
)  # fmt: skip
def test_the_packaged_weights_put_what_was_said_of_a_change_first(held: str, holds: str, question: str) -> None:
    hits = (hit(held, 1), hit(holds, 60), hit("Lovely weather for a walk", 30))

    ordered = days_of(order_for_present(hits, question, as_of=False))

    assert ordered.index(60) < ordered.index(1)


@pytest.mark.parametrize(
    "misleading",
    [
        "What if we moved the build to Buildkite? I dreamt of it.",
        "In 2019, at my old job, the build ran on Buildkite, before we had anything else.",
    ],
)
def test_the_packaged_weights_are_not_misled_by_a_dream_or_a_memory_of_an_older_time(misleading: str) -> None:
    hits = (hit("Our build runs on Jenkins, with four agents.", 1), hit(misleading, 60))

    assert days_of(order_for_present(hits, "What does Ann's build run on?", as_of=False)) == [1, 60]


def test_hits_of_one_moment_and_empty_texts_have_finite_scores() -> None:
    same = tuple(hit("", 1) for _ in range(3))

    with np.errstate(all="raise"):
        assert order_for_present(same, "?", as_of=False) == same


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which editor does Ann use these days?", True),
        ("What was the first editor of Ann?", False),
        ("What did Ann finally choose?", True),
        ("¿Dónde vive Ana?", True),
        ("¿Dónde vivía Ana?", False),
        ("彼は今どこに住んでいますか?", True),
    ],
)
def test_a_question_tells_whether_it_is_about_the_present(question: str, expected: bool) -> None:
    assert asks_about_present(phrases_of(question), as_of=False) is expected
