from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.policies.limits.fair_queue import QUANTUM_TOKENS, FairQueue, QueuedCall

CHUNK = 250


def queue_of(*calls: QueuedCall, most_calls: int = 512) -> FairQueue[QueuedCall]:
    queue: FairQueue[QueuedCall] = FairQueue(most_calls)
    for call in calls:
        queue.put(call)
    return queue


def tenants(taken: Sequence[tuple[QueuedCall, int]]) -> list[str]:
    return [call.tenant for call, _ in taken]


def drain(queue: FairQueue[QueuedCall], tokens: int = 512, texts: int = 64) -> list[tuple[QueuedCall, int]]:
    taken: list[tuple[QueuedCall, int]] = []
    while batch := queue.take(tokens, texts):
        taken += batch
    return taken


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.lists(st.integers(1, 600), min_size=1, max_size=9)), max_size=9),
    st.integers(1, 2_000),
    st.integers(1, 9),
)
def test_every_text_is_taken_once_and_those_of_a_call_in_order(
    calls: list[tuple[str, list[int]]], tokens: int, texts: int
) -> None:
    waiting = [QueuedCall(tenant, lengths) for tenant, lengths in calls]
    queue = queue_of(*waiting)

    taken = drain(queue, tokens, texts)

    for call in waiting:
        assert [place for found, place in taken if found is call] == list(range(len(call.tokens)))
    assert len(taken) == sum(len(call.tokens) for call in waiting)
    assert queue.calls() == []


@given(st.lists(st.integers(1, 600), min_size=1, max_size=20), st.integers(1, 1_000), st.integers(1, 9))
def test_a_batch_holds_no_more_than_it_may_but_one_text_at_least(lengths: list[int], tokens: int, texts: int) -> None:
    queue = queue_of(*(QueuedCall(f"tenant {number % 3}", [length]) for number, length in enumerate(lengths)))

    while batch := queue.take(tokens, texts):
        assert len(batch) <= texts
        assert len(batch) == 1 or sum(call.tokens[place] for call, place in batch) <= tokens


@pytest.mark.parametrize("books", [1, 40])
def test_tenants_get_as_many_tokens_each_however_many_calls_they_make(books: int) -> None:
    greedy = [QueuedCall("greedy", [CHUNK] * 100) for _ in range(books)]
    queue = queue_of(*greedy, QueuedCall("modest", [20] * 1_000))

    taken = [item for _ in range(10) for item in queue.take(2_048, 1_000)]

    tokens = Counter[str]()
    for call, place in taken:
        tokens[call.tenant] += call.tokens[place]
    assert tokens["greedy"] == pytest.approx(tokens["modest"], abs=2 * QUANTUM_TOKENS)


def test_a_tenant_that_comes_anew_is_in_the_next_batch_however_many_wait() -> None:
    queue = queue_of(*(QueuedCall(f"greedy {number}", [CHUNK] * 50) for number in range(30)))
    for _ in range(30):
        queue.take(2 * CHUNK, 64)
    queue.put(QueuedCall("anew", [10]))

    assert "anew" in tenants(queue.take(2 * CHUNK, 64))


def test_a_tenant_that_sends_one_small_call_after_another_gets_no_more_than_its_turns() -> None:
    queue = queue_of(QueuedCall("book", [CHUNK] * 1_000), *(QueuedCall(f"one by one {n}", [CHUNK]) for n in range(3)))

    tokens = Counter[str]()
    for _ in range(100):
        taken = queue.take(CHUNK, 64)
        tokens.update(tenants(taken))
        for call, _ in taken:
            if call.tenant != "book":
                queue.put(QueuedCall(call.tenant, [CHUNK]))

    assert tokens["book"] >= 20


def test_a_short_call_waits_for_no_book_of_its_own_tenant() -> None:
    note = QueuedCall("a", [10])
    queue = queue_of(QueuedCall("a", [CHUNK] * 100), note)

    taken = queue.take(2 * QUANTUM_TOKENS, 64)

    assert note in [call for call, _ in taken]


def test_a_call_that_was_given_up_is_not_taken_and_holds_up_nobody() -> None:
    gone, note = QueuedCall("a", [CHUNK] * 100), QueuedCall("b", [10])
    queue = queue_of(gone, note)
    gone.is_given_up = True

    assert [call for call, _ in drain(queue)] == [note]


def test_a_text_longer_than_a_turn_is_taken_when_its_tenant_saved_enough() -> None:
    long = QueuedCall("long", [10 * QUANTUM_TOKENS])
    queue = queue_of(long, QueuedCall("short", [QUANTUM_TOKENS] * 30))

    order = tenants(drain(queue, tokens=QUANTUM_TOKENS))

    assert 5 <= order.index("long") <= 12


def test_a_full_queue_takes_calls_of_a_tenant_that_has_less_than_its_share() -> None:
    queue = queue_of(*(QueuedCall("greedy", [1]) for _ in range(8)), most_calls=8)

    assert queue.is_full_for("greedy")
    assert not queue.is_full_for("other")
    for _ in range(4):
        queue.put(QueuedCall("other", [1]))
    assert queue.is_full_for("other")
    assert not queue.is_full_for("third")


def test_calls_that_were_given_up_or_begun_fill_no_queue() -> None:
    calls = [QueuedCall("a", [1, 1]) for _ in range(4)]
    queue = queue_of(*calls, most_calls=4)
    calls[0].is_given_up = True

    assert not queue.is_full_for("a")
    queue.put(QueuedCall("a", [1]))
    assert queue.is_full_for("a")
    queue.take(1, 1)
    assert not queue.is_full_for("a")


def test_the_tokens_that_wait_are_those_of_texts_that_nobody_took_or_gave_up() -> None:
    gone = QueuedCall("a", [100])
    queue = queue_of(QueuedCall("a", [10, 20]), QueuedCall("b", [5]), gone)
    gone.is_given_up = True

    assert queue.tokens() == 35
    queue.take(10, 1)
    assert queue.tokens() == 25


def test_others_are_tenants_with_a_text_that_waits() -> None:
    gone, note = QueuedCall("gone", [1]), QueuedCall("note", [1])
    queue = queue_of(QueuedCall("book", [CHUNK] * 9), gone, note)
    gone.is_given_up = True

    assert queue.has_others_than({"book"})
    assert not queue.has_others_than({"book", "note"})
    queue.take(2 * CHUNK, 64)
    assert note.taken == 1
    assert not queue.has_others_than({"book"})
