import hashlib
import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.scope import Scope
from lamina.errors import InvalidInput
from lamina.policies.caching.adaptive_ttl import TtlPolicy
from lamina.policies.caching.model_responses import (
    LESSON_MARGIN,
    AgentState,
    Lessons,
    LookupState,
    ModelQuestion,
    ResponseCandidate,
    ResponsePolicy,
    best_response,
    clean_question,
    is_current,
    json_text,
    token_at,
)
from lamina.policies.caching.response_budget import ResponseBudget

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SCOPE = Scope("acme", "w", "default", agent="ann")
POLICY = ResponsePolicy(
    threshold=0.9,
    ttl=TtlPolicy(3600, 600, 7200),
    budget=ResponseBudget(10_000, 0.25),
    grace_s=300,
    lease_s=30,
    by_workspace=False,
    max_response_bytes=1000,
    max_wait_s=60,
    deadline_s=1,
    embed_deadline_s=1,
)
QUESTION = ModelQuestion(SCOPE, "what is it", "v1", "m", {"t": 0})


def candidate(
    number: int, query: str, similarity: float, *, left_s: float = 60, age_s: float = 10
) -> ResponseCandidate:
    created_at, expires_at = NOW - timedelta(seconds=age_s), NOW + timedelta(seconds=left_s)
    return ResponseCandidate(UUID(int=number), query, similarity, created_at, expires_at)


def chosen(*candidates: ResponseCandidate, same: bool = True) -> int | None:
    found = best_response(candidates, "q", NOW, POLICY, lambda _one, _other: same)
    return found.id.int if found else None


@pytest.mark.parametrize(
    "changed",
    [
        replace(QUESTION, scope=Scope("other", "w", "default", agent="ann")),
        replace(QUESTION, scope=Scope("acme", "other", "default", agent="ann")),
        replace(QUESTION, scope=Scope("acme", "w", "other", agent="ann")),
        replace(QUESTION, scope=Scope("acme", "w", "default", agent="other")),
        replace(QUESTION, scope=Scope("acme", "w", "default", agent="ann", user="bob")),
        replace(QUESTION, prompt_version="v2"),
        replace(QUESTION, prompt_version=None),
        replace(QUESTION, model="m2"),
        replace(QUESTION, variant={"t": 1}),
        replace(QUESTION, variant=None),
    ],
)
def test_whatever_a_response_depends_on_makes_other_circumstances(changed: ModelQuestion) -> None:
    assert changed.request(1).circumstances != QUESTION.request(1).circumstances
    assert changed.request(1).digest != QUESTION.request(1).digest


def test_ids_are_not_joined() -> None:
    ids = [
        Scope("acme", "w", "a", agent="b", user="c"),
        Scope("acme", "w", "a", agent="bc"),
        Scope("acme", agent="wabc"),
    ]

    hashes = {ModelQuestion(scope, "q").request(1).circumstances for scope in ids}

    assert len(hashes) == 3


def test_the_generation_of_vectors_is_one_of_the_circumstances() -> None:
    assert QUESTION.request(1).circumstances != QUESTION.request(2).circumstances


def test_session_and_swarm_do_not_matter() -> None:
    elsewhere = replace(QUESTION, scope=replace(SCOPE, session="s", swarm="t"))

    assert elsewhere.request(1).digest == QUESTION.request(1).digest


def test_another_text_is_another_request_under_the_same_circumstances() -> None:
    other = replace(QUESTION, text="what is that")

    assert other.request(1).circumstances == QUESTION.request(1).circumstances
    assert other.request(1).digest != QUESTION.request(1).digest


def test_of_a_system_prompt_the_first_16_hex_digits_of_its_hash_are_kept() -> None:
    question = clean_question(SCOPE, "q", system_prompt="You are kind.")

    assert question.prompt_version == hashlib.sha256(b"You are kind.").hexdigest()[:16]
    assert clean_question(SCOPE, "q", system_prompt="").prompt_version == "e3b0c44298fc1c14"


@pytest.mark.parametrize(
    ("field", "scope", "fields"),
    [
        ("agent", Scope("acme"), {}),
        ("query", SCOPE, {"text": " "}),
        ("system_prompt", SCOPE, {"system_prompt": "\x00"}),
        ("system_prompt_version", SCOPE, {"prompt_version": ""}),
        ("system_prompt_version", SCOPE, {"prompt_version": "a", "system_prompt": "b"}),
        ("model", SCOPE, {"model": ""}),
        ("variant.x", SCOPE, {"variant": {"x": "\ud800"}}),
        ("variant", SCOPE, {"variant": "x" * 65_535}),
    ],
)
def test_an_unclean_question_is_refused_by_the_name_of_its_field(
    field: str, scope: Scope, fields: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput) as error:
        clean_question(scope, **({"text": "q"} | fields))

    assert error.value.field == field


def deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("a\x00", "r: contains a NUL"),
        ({"a": ["b", "\ud800"]}, "r.a.1: contains a lone surrogate"),
        ({"\ud800": 1}, "r: key: contains a lone surrogate"),
        ([float("inf")], "r.0: is inf"),
        (deep(65), "r: is nested deeper than 64 levels"),
        ("é" * 500, "r: has 1002 bytes as JSON; at most 1000 are accepted"),
    ],
)
def test_what_json_cannot_hold_or_is_too_large_is_refused_with_its_path(value: Any, error: str) -> None:
    with pytest.raises(InvalidInput, match=error):
        json_text(value, "r", 1000)


def test_json_is_kept_as_it_is() -> None:
    assert json_text({"e\u0301": [1, "\u00e9"]}, "r", 1000) == '{"e\u0301":[1,"\u00e9"]}'
    assert json_text(deep(64), "r", 1000) == "[" * 63 + "0" + "]" * 63
    assert len(json_text("x" * 1_000_001, "r", 2_000_000)) == 1_000_003


def test_a_variant_of_64_kib_is_accepted() -> None:
    assert len(clean_question(SCOPE, "q", variant="x" * 65_534).variant) == 65_534


@pytest.mark.parametrize(
    ("left_s", "state"),
    [
        (0.001, LookupState.HIT),
        (0, LookupState.STALE),
        (-299.9, LookupState.STALE),
        (-300, LookupState.MISS),
        (-1e6, LookupState.MISS),
    ],
)
def test_a_response_is_a_hit_then_stale_then_a_miss(left_s: float, state: LookupState) -> None:
    assert candidate(1, "q", 1, left_s=left_s).state(NOW, POLICY.grace) is state


def test_nothing_is_chosen_from_nothing_or_from_what_is_far_or_over() -> None:
    assert chosen() is None
    assert chosen(candidate(1, "other", 0.89)) is None
    assert chosen(candidate(1, "q", 1, left_s=-300)) is None


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([candidate(1, "a", 0.95), candidate(2, "b", 0.96)], 2),
        ([candidate(1, "a", 0.96, age_s=9), candidate(2, "b", 0.96, age_s=10)], 1),
        ([candidate(1, "a", 0.99), candidate(2, "q", 0.99)], 2),
        ([candidate(1, "q", 1, left_s=-1), candidate(2, "b", 0.91)], 2),
        ([candidate(1, "q", 1, left_s=-1), candidate(2, "b", 0.91, left_s=-1)], 1),
    ],
)
def test_a_fresh_one_comes_first_then_the_same_words_then_the_nearest_then_the_newest(
    items: list[ResponseCandidate], expected: int
) -> None:
    assert {chosen(*order) for order in itertools.permutations(items)} == {expected}


def test_what_is_told_apart_is_not_given_but_the_same_words_always_are() -> None:
    assert chosen(candidate(1, "a", 0.99), same=False) is None
    assert chosen(candidate(1, "a", 0.99), candidate(2, "q", 0.5), same=False) == 2


counts = st.integers(1, 2**51)
agent_states = st.builds(AgentState, counts, counts, counts)


@given(agent_state=agent_states, agent=st.integers(0, 9), workspace=st.integers(0, 9), others=st.integers(0, 9))
def test_a_token_stays_the_same_only_while_nothing_changes(
    agent_state: AgentState, agent: int, workspace: int, others: int
) -> None:
    later = replace(
        agent_state,
        agent_epoch=agent_state.agent_epoch + agent,
        workspace_epoch=agent_state.workspace_epoch + workspace,
        workspace_writes=agent_state.workspace_writes + agent + workspace + others,
    )

    by_agent, by_all = agent_state.token(by_workspace=False), agent_state.token(by_workspace=True)

    assert is_current(by_agent, later, Lessons(), by_workspace=False) == (agent == workspace == 0)
    assert is_current(by_all, later, Lessons(), by_workspace=True) == (agent == workspace == others == 0)
    assert 0 < by_agent < 2**53, "a JavaScript client can send it back"


def test_a_lookup_that_could_read_nothing_goes_by_its_time() -> None:
    agent_state, moment = AgentState(1, 1, 1), timedelta(microseconds=1)

    def current(lesson: datetime | None) -> bool:
        return is_current(token_at(NOW), agent_state, Lessons(lesson), by_workspace=False)

    assert current(None)
    assert current(NOW - LESSON_MARGIN - moment)
    assert not current(NOW - LESSON_MARGIN)
    assert not current(NOW)
    assert not current(NOW + moment)


def test_a_caller_who_sends_no_token_does_not_care() -> None:
    assert is_current(None, AgentState(1, 1, 1), Lessons(NOW), by_workspace=True)


@given(total=st.integers(0, 10_000 * 2**51), more=st.integers(0, 2**48), agent_state=agent_states)
def test_a_lookup_of_an_agent_without_state_goes_by_what_its_workspace_learnt(
    total: int, more: int, agent_state: AgentState
) -> None:
    token = Lessons(NOW, total).token()

    assert is_current(token, agent_state, Lessons(NOW, total + more), by_workspace=False) == (more == 0)
    assert token_at(datetime(1988, 1, 1, tzinfo=UTC)) < token < 0, "an earlier release takes it for long ago"
