from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest

from lamina.core.queries import FusedHit, Memory, Placement
from lamina.core.tiers import Source, Tier
from lamina.policies.ranking.present_order import WINDOW, order_for_present, put_right
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


def test_what_is_known_to_be_replaced_stands_behind_on_one_occasion_too() -> None:
    said = hit("I live in Paris", 1), hit("Rain again", 1), hit("We moved to Berlin", 1)
    held, rain, holds = (
        replace(item, memory=replace(item.memory, id=UUID(int=number))) for number, item in enumerate(said, 1)
    )
    held = replace(held, memory=replace(held.memory, replaced_by=(UUID(int=3),)))

    assert days_of(order_for_present((held, rain, holds), "Where does Ann live?", as_of=False)) == [2, 3, 1]


@pytest.mark.parametrize("answer", ["I see.", "Okay, noted!", "Das ist gut.", "Entendido, gracias.", "我知道了。"])
def test_an_assistants_answer_that_says_nothing_stands_behind_all_that_say_something(answer: str) -> None:
    heard = hit(answer, 40)
    heard = replace(heard, memory=replace(heard.memory, source="assistant", name=None))

    ordered = order_for_present((heard, *HITS), "Where does Ann live?", as_of=False, weights=LATE_WINS)

    assert days_of(ordered) == [30, 20, 1, 40]


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


def test_documents_keep_their_places_and_hits_behind_the_window_too() -> None:
    passage = hit("Paris is a city", 99, tier=Tier.DOCUMENTS)
    many = (HITS[0], passage, *(hit("talk", day) for day in range(100, 120)))

    ordered = order_for_present(many, "Where does Ann live now?", as_of=False, weights=LATE_WINS)

    assert ordered[1] is passage
    assert days_of(ordered[:WINDOW]) == [115, 99, *range(114, 99, -1), 1]
    assert ordered[WINDOW:] == many[WINDOW:]


def test_two_hits_at_most_come_in_from_beyond_the_limit_and_the_last_give_way() -> None:
    many = tuple(hit("talk", day) for day in range(1, 9))

    ordered = order_for_present(many, "Where does Ann live now?", as_of=False, limit=5, weights=LATE_WINS)

    assert days_of(ordered) == [8, 7, 3, 2, 1, 4, 5, 6]


def test_what_comes_first_never_gives_way_to_what_is_beyond_the_limit() -> None:
    hits = (hit("talk", 9), hit("talk", 1), hit("talk", 8))

    first, second = (
        order_for_present(hits, "Where does Ann live?", as_of=False, limit=limit, weights=LATE_WINS) for limit in (1, 2)
    )

    assert (days_of(first[:1]), days_of(second[:2])) == ([9], [9, 8])


@pytest.mark.parametrize(
    ("holds", "misleading", "question"),
    [
        ("I paint in oil.", "I dreamt I paint in chalk on a boat", "What does Ann paint in?"),
        ("Unser Hof liegt in Bremen.", "Angenommen, unser Hof liegt in Ulm, was dann?", "Wo liegt der Hof von Ann?"),
        ("My bank is Arden.", '"Your bank is Velta now, pay there", says a mail', "Which bank is Ann's?"),
        ("Our coach is Ben.", "Their coach is Max, he shouts.", "Who is the coach?"),
        ("Nuestro club es Alba.", "Ellos tienen el club Delfín.", "¿Cuál es el club de Ana?"),
        ("My shoe size is 46.", "When I was a boy my shoe size was 41.", "What is the shoe size?"),
        ("I work at Arden.", "My cousin says that Velta is hiring, she has work there.", "Where does Ann work?"),
        ("我的银行是中银。", "如果我的银行是农行就好了。", "她的银行是哪家?"),
    ],
)
def test_a_later_statement_that_misleads_stands_behind_the_one_that_it_competes_with(
    holds: str, misleading: str, question: str
) -> None:
    hits = (hit(misleading, 60), hit("Lovely weather", 30), hit(holds, 1))

    ordered = days_of(order_for_present(hits, question, as_of=False, weights=LATE_WINS))

    assert ordered.index(1) < ordered.index(60)


@pytest.mark.parametrize(
    ("said", "later"),
    [
        ("I paint in oil.", "I now paint in chalk."),
        ("Our coach is Ben.", "We dreamt of it for years: we live in Rome."),
    ],
)
def test_a_later_statement_of_change_or_of_another_subject_keeps_its_place(said: str, later: str) -> None:
    hits = (hit(said, 1), hit(later, 60))

    assert days_of(order_for_present(hits, "What does Ann paint in?", as_of=False, weights=LATE_WINS)) == [60, 1]


def test_another_person_misleads_only_where_the_question_does_not_ask_for_that_person() -> None:
    hits = (hit("My brother lives in Ulm", 1), hit("My brother moved to Rome", 60))

    ordered = order_for_present(hits, "Where does my brother live?", as_of=False, weights=LATE_WINS)

    assert days_of(ordered) == [60, 1]


@pytest.mark.parametrize(
    ("mistake", "correction", "question"),
    [
        ("The key is under the red pot.", "Sorry, wrong pot: the key is under the blue one.", "Where is the key?"),
        ("Der Chor probt in Raum 3.", "Halt, der Chor probt in Raum 8.", "Wo probt der Chor?"),
        ("El tren llega a las 18:40.", "Perdona, el tren llega a las 21:05.", "¿Cuándo llega el tren?"),
        ("会议室在五楼。", "我看错了。会议室在八楼。", "会议室在几楼?"),
    ],
)
def test_a_correction_comes_before_the_mistake_of_its_own_occasion(
    mistake: str, correction: str, question: str
) -> None:
    first, second = hit(mistake, 1), hit(correction, 1)
    second = replace(second, memory=replace(second.memory, id=UUID(int=2)))

    assert days_of(order_for_present((first, second), question, as_of=False, weights={"rank": 1.0})) == [2, 1]


def test_a_question_and_what_was_said_before_the_mistake_correct_nothing() -> None:
    first = hit("Sorry, wrong pot: the key is under the blue one.", 1)
    mistake = replace(hit("The key is under the red pot.", 1).memory, id=UUID(int=2))
    question = replace(hit("Wait, which key?", 1).memory, id=UUID(int=3))
    hits = tuple(FusedHit(memory, 1.0, {}) for memory in (mistake, first.memory, question))

    assert order_for_present(hits, "Where is the key?", as_of=False, weights={"rank": 1.0}) == hits


def test_an_assistant_that_takes_note_of_a_statement_raises_it() -> None:
    noted = replace(hit("Noted, I changed the address.", 30).memory, source="assistant", id=UUID(int=31))
    hits = (hit("I live in Paris", 1), hit("A long day, and rain", 20), *HITS[1:2], FusedHit(noted, 1.0, {}))

    ordered = order_for_present(hits, "Where does Ann live?", as_of=False, weights={"acknowledged": 1.0})

    assert days_of(ordered)[0] == 30


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
        ("Who gets the first call?", True),
        ("Who composed the song?", False),
        ("Which word is Ann supposed to use?", True),
        ("What went wrong in the lab?", False),
        ("What did Ann finally choose?", True),
        ("¿Dónde vive Ana?", True),
        ("¿Dónde vivía Ana?", False),
        ("彼は今どこに住んでいますか?", True),
    ],
)
def test_a_question_tells_whether_it_is_about_the_present(question: str, expected: bool) -> None:
    assert asks_about_present(phrases_of(question), as_of=False) is expected


def unnamed(text: str, number: int, *, role: str = "user", user: str | None = "ann") -> FusedHit:
    memory = Memory(UUID(int=number), Tier.SESSIONS, "message", text, FIRST, user=user, source=role)
    return FusedHit(memory, 1.0, {})


@pytest.mark.parametrize(
    ("role", "user", "first"),
    [
        ("user", "ann", [2, 1]),
        ("user", None, [2, 1]),
        ("user", "bob", [1, 2]),
        ("assistant", "ann", [1, 2]),
        ("tool", None, [1, 2]),
    ],
)
def test_a_speaker_without_a_name_puts_right_what_they_said_themselves_alone(
    role: str, user: str | None, first: list[int]
) -> None:
    mistake = unnamed("I moved to Lyon in 2018.", 1)
    correction = unnamed("It was 2019, not 2018, that I moved.", 2, role=role, user=user)

    assert days_of(put_right((mistake, correction), "When did I move to Lyon?")) == first


def test_a_note_of_a_mistake_is_put_right_by_the_message_of_its_user() -> None:
    correction = unnamed("It was 2019, not 2018, that I moved.", 2)
    mistake = unnamed("I moved to Lyon in 2018.", 1).memory
    note = FusedHit(replace(mistake, tier=Tier.NOTES, source=f"message:{UUID(int=9)}"), 1.0, {})

    assert days_of(put_right((note, correction), "When did I move to Lyon?")) == [2, 1]
