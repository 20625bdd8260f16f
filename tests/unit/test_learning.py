"""Which procedure a run teaches, and when it is active or dropped."""

from itertools import count
from uuid import UUID

import numpy as np
import pytest

from lamina.core.procedures import ProcedureState
from lamina.policies.retention.learning import (
    LearningPolicy,
    LearntProcedure,
    TaughtRun,
    action_of,
    learn,
    learnt_state,
    shared_words,
    situation,
    step_overlap,
    steps_of,
)

POLICY = LearningPolicy(min_similarity=0.6, min_steps=0.6, successes=2, failures=2)
STEPS = ("find", "check", "cancel")
NUMBERS = count(1)
PROPOSED, ACTIVE, DROPPED = ProcedureState


def run(said: str, *, succeeded: bool = True, user: str | None = None, steps: tuple[str, ...] = STEPS) -> TaughtRun:
    """A run whose vector stands for its first word: other first words are other situations."""
    vector = np.zeros(64, np.float32)
    vector[sum(map(ord, said.split(maxsplit=1)[0])) % 64 if said else 0] = 1
    return TaughtRun(UUID(int=next(NUMBERS)), user, said, steps, succeeded, vector)


def test_only_a_run_that_succeeded_proposes() -> None:
    failed, first, second = (run("cancel a booking", succeeded=succeeded) for succeeded in (False, True, True))

    found = learn([failed, first, second], {}, POLICY)

    [proposal] = found.proposed.values()
    assert [lesson.procedure for lesson in found.of_runs] == [None, proposal.id, proposal.id]
    assert (proposal.trigger, proposal.steps) == ("cancel a booking", STEPS)
    assert learn([failed, first, second], {}, POLICY) == found


@pytest.mark.parametrize(
    "other",
    [
        run("upgrade my seat please"),
        run("cancel a booking", steps=("search", "book", "pay")),
        run("cancel a booking", steps=("cancel", "check", "find", "pay", "mail")),
    ],
    ids=["another situation", "other steps", "another order"],
)
def test_another_situation_or_other_steps_are_another_procedure(other: TaughtRun) -> None:
    assert len(learn([run("cancel a booking"), other], {}, POLICY).proposed) == 2


def test_a_failed_run_weakens_the_known_procedure_that_it_followed() -> None:
    known = LearntProcedure(UUID(int=9), None, "cancel a booking", STEPS, 0.9)
    failed = run("cancel a booking", succeeded=False)

    assert learn([failed], {failed.id: [known]}, POLICY).of_runs[0].procedure == known.id


def test_a_run_without_words_or_tools_teaches_nothing() -> None:
    found = learn([run(""), run("cancel a booking", steps=())], {}, POLICY)

    assert (found.proposed, [lesson.procedure for lesson in found.of_runs]) == ({}, [None, None])


def test_of_two_users_only_the_words_of_both_are_in_the_procedure() -> None:
    ann = run("cancel a booking for my divorce hearing", user="ann")
    bob = run("cancel a booking for the dog show", user="bob")

    found = learn([ann, bob], {}, POLICY)

    [proposal] = found.proposed.values()
    assert (proposal.user, proposal.trigger) == (None, "cancel a booking for")
    known = LearntProcedure(UUID(int=9), "ann", ann.situation, STEPS, 0.9)
    assert learn([bob], {bob.id: [known]}, POLICY).reworded == {known.id: "cancel a booking for"}


def test_users_without_words_in_common_have_procedures_of_their_own() -> None:
    ann, bob = run("cancel everything at once", user="ann"), run("cancel the trip to Oslo", user="bob")

    assert {item.user for item in learn([ann, bob], {}, POLICY).proposed.values()} == {"ann", "bob"}


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        ("Bitte storniere meine Reise, Anna", "Bitte storniere meine Reise, Ben", "Bitte storniere meine Reise,"),
        ("取消我的航班。我是小明", "请取消我的航班", "取消我的航班"),
        ("hello there", "hello there", None),
        ("", "", None),
    ],
)
def test_shared_words_are_in_the_order_of_the_first(one: str, other: str, common: str | None) -> None:
    assert shared_words(one, other) == common


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        ("Hi, I am mia_li_3668 and my booking is HAT136.", "Hi, I am … and my booking is …"),
        ("mail ann@example.org or https://a.b/c?d=1, twice", "mail … or …?…, twice"),
        ("  two\n lines\t here ", "two lines here"),
        ("電話は０３です。", "電話は…です。"),
        ("帮我取消8月的航班HU7601。谢谢", "帮我取消…月的航班…。谢谢"),
        ("ftp://h and mail:to, a: b //c", "… and mail:to, a: b //c"),
        ("”ann_lee” is Ünal’s, née 7", "… is Ünal’s, née …"),
        ("โทร ๐๘๑ หา ann", "โทร … หา ann"),
    ],
)
def test_a_situation_is_without_ids_numbers_and_addresses(said: str, seen: str) -> None:
    assert situation(said) == seen


def test_long_texts_and_many_steps_are_cut() -> None:
    assert len(situation("word " * 1_000_000)) <= 2_000
    assert steps_of(["a", "a", "b", "a"]) == ("a", "b", "a")
    assert len(steps_of(["a", "b"] * 10_000)) == 32
    assert step_overlap(STEPS, STEPS) == 1
    assert action_of(STEPS) == "1. find\n2. check\n3. cancel"


@pytest.mark.parametrize(
    ("state", "successes", "failures", "then"),
    [
        (PROPOSED, 1, 0, PROPOSED),
        (PROPOSED, 2, 0, ACTIVE),
        (PROPOSED, 2, 2, DROPPED),
        (PROPOSED, 1, 1, PROPOSED),
        (ACTIVE, 2, 1, ACTIVE),
        (ACTIVE, 2, 2, DROPPED),
        (ACTIVE, 9, 8, ACTIVE),
        (DROPPED, 3, 2, ACTIVE),
        (DROPPED, 2, 3, DROPPED),
    ],
)
def test_outcomes_activate_and_drop(state: ProcedureState, successes: int, failures: int, then: ProcedureState) -> None:
    assert learnt_state(state, successes, failures, POLICY) is then


def test_without_a_number_of_successes_only_a_confirmation_activates() -> None:
    policy = LearningPolicy(0.6, 0.6, successes=0, failures=2)

    assert learnt_state(PROPOSED, 100, 0, policy) is PROPOSED
