"""Decide which cached response of a language model answers a question, and whether it is current."""

import hashlib
import json
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from lamina.core.cache_layers import Layer, Space
from lamina.core.scope import Scope
from lamina.errors import InvalidInput
from lamina.policies.caching.adaptive_ttl import TtlPolicy
from lamina.policies.caching.cache_keys import digest
from lamina.policies.caching.response_budget import ResponseBudget
from lamina.text.hygiene import MAX_JSON_DEPTH, MAX_QUERY_CHARS, clean, clean_id, clean_json, clean_text, composed

# Longest question that is compared by meaning. A model reads about as much at once. The embedding of a longer text is
# the mean of its chunks, which tells contexts apart, but not the questions at their end.
MAX_MEANING_CHARS = 1000
# Room for the schemas of an agent's tools.
MAX_VARIANT_BYTES = 65_536
PROMPT_VERSION_CHARS = 16
# For clocks that differ between Postgres and a replica, and for the time from a write's timestamp to its commit.
LESSON_MARGIN = timedelta(seconds=5)
# Tokens of lessons lie between this and 0: as times they would be before 1988, so that a replica of an earlier release,
# which takes them for times, stores nothing under them.
_MOST_LESSONS = 2**49
_MICROSECOND = timedelta(microseconds=1)
_UNIX = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    """A question to a model, with everything that its response depends on beside the memory.

    Args:
        scope: It names an agent; its session and swarm do not matter.
        text: The question.
        prompt_version: Of the agent's system prompt, if the caller names it.
        model: The model that answers, if the caller names it.
        variant: Anything else that must be equal: tools, temperature, locale.
    """

    scope: Scope
    text: str
    prompt_version: str | None = None
    model: str | None = None
    variant: Any = None

    @property
    def agent(self) -> str:
        """Return the agent whose responses may answer."""
        return self.scope.agent or ""

    @property
    def space(self) -> Space:
        """Return the tenant and the workspace."""
        return self.scope.tenant, self.scope.workspace

    @property
    def has_meaning(self) -> bool:
        """Whether it is short enough to be compared by meaning; a longer one must have the same words."""
        return len(self.text) <= MAX_MEANING_CHARS

    def request(self, generation: int) -> "DigestedQuestion":
        """Return the question with its digests."""
        ids = self.scope
        where = (ids.tenant, ids.workspace, ids.namespace, ids.agent, ids.user)
        circumstances = digest("response", generation, where, self.prompt_version, self.model, self.variant)
        return DigestedQuestion(self, circumstances, digest(circumstances, self.text))


@dataclass(frozen=True, slots=True)
class DigestedQuestion:
    """A question with its digests, which are computed once.

    Args:
        circumstances: SHA-256 of everything but the text; meanings are compared only where it is equal.
        digest: SHA-256 of all of it.
    """

    question: ModelQuestion
    circumstances: bytes
    digest: bytes


def clean_question(
    scope: Scope,
    text: str,
    *,
    system_prompt: str | None = None,
    prompt_version: str | None = None,
    model: str | None = None,
    variant: Any = None,
) -> ModelQuestion:
    """Return the question with clean texts; of a system prompt only its version is kept.

    Raises:
        InvalidInput: If the scope names no agent, a text is unclean, the variant is too large, or both a prompt and
            its version are given.
    """
    if scope.agent is None:
        raise InvalidInput("agent", "is missing; responses belong to an agent")
    if system_prompt is not None and prompt_version is not None:
        raise InvalidInput("system_prompt_version", "is given beside system_prompt; send one of them")
    if system_prompt is not None:
        cleaned = composed(clean(system_prompt, "system_prompt"))
        prompt_version = hashlib.sha256(cleaned.encode()).hexdigest()[:PROMPT_VERSION_CHARS]
    elif prompt_version is not None:
        prompt_version = clean_id(prompt_version, "system_prompt_version")
    json_text(variant, "variant", MAX_VARIANT_BYTES)  # Only to refuse it.
    return ModelQuestion(
        scope,
        composed(clean_text(text, "query", limit=MAX_QUERY_CHARS)),
        prompt_version,
        None if model is None else clean_id(model, "model"),
        clean_json(variant, "variant"),
    )


def json_text(value: Any, field: str, max_bytes: int) -> str:
    """Return a JSON value as text, unchanged: strings are not even normalised.

    Raises:
        InvalidInput: For NUL, a lone surrogate, a number that JSON cannot hold, more than 64 levels, or more than
            ``max_bytes``; it names the path.
    """
    _check_json(value, field, MAX_JSON_DEPTH)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    size_bytes = len(text.encode())
    if size_bytes > max_bytes:
        raise InvalidInput(field, f"has {size_bytes} bytes as JSON; at most {max_bytes} are accepted")
    return text


def _check_json(value: Any, field: str, depth: int) -> None:
    if depth == 0:
        raise InvalidInput(field.split(".", maxsplit=1)[0], f"is nested deeper than {MAX_JSON_DEPTH} levels")
    match value:
        case str():
            clean(value, field, limit=sys.maxsize)  # Only to refuse it; its length counts with the whole.
        case float() if not math.isfinite(value):
            raise InvalidInput(field, f"is {value}; JSON numbers are finite")
        case dict():
            for key, item in value.items():
                clean(str(key), f"{field}: key", limit=sys.maxsize)
                _check_json(item, f"{field}.{key}", depth - 1)
        case list():
            for place, item in enumerate(value):
                _check_json(item, f"{field}.{place}", depth - 1)


@dataclass(frozen=True, slots=True)
class ResponsePolicy:
    """When a response answers, and for how long.

    Args:
        threshold: Least cosine of two questions with the same response.
        ttl: How long responses live.
        budget: Room for a workspace's responses.
        grace_s: Seconds after its end for which a response is served as stale.
        lease_s: Seconds one caller has to refresh a stale one, or to make one that others wait for.
        by_workspace: Whether a memory write ends the responses of all agents, instead of the writing one's.
        max_response_bytes: Largest response accepted, as JSON.
        max_wait_s: Longest wait for another caller's response.
        deadline_s: Seconds after which the store of responses counts as failed.
        embed_deadline_s: The same for the embedder.
    """

    threshold: float
    ttl: TtlPolicy
    budget: ResponseBudget
    grace_s: float
    lease_s: float
    by_workspace: bool
    max_response_bytes: int
    max_wait_s: float
    deadline_s: float
    embed_deadline_s: float

    @property
    def grace(self) -> timedelta:
        """Return the time after its end in which a response is served as stale."""
        return timedelta(seconds=self.grace_s)


@dataclass(frozen=True, slots=True)
class AgentState:
    """The counters that prove an agent's responses current, and its recent lookups and hits.

    Args:
        agent_epoch: How often the agent's memory or system prompt changed.
        workspace_epoch: How often the memory of its workspace was changed without an agent.
        workspace_writes: How often it was changed at all.
        prompt_version: Of the agent's system prompt; ``None`` if no caller named one.
        lookups: Recent lookups of the agent.
        hits: Those of them that a response answered.
        user_writes: A number that grows with each change of the user's profile in the whole tenant.
    """

    agent_epoch: int
    workspace_epoch: int
    workspace_writes: int
    prompt_version: str | None = None
    lookups: int = 0
    hits: int = 0
    user_writes: int = 0

    def token(self, *, by_workspace: bool) -> int:
        """Return a number above 0 that changes with everything that ends the agent's responses.

        The summands only ever grow, so their sum stays the same only if all do.
        """
        return self.agent_epoch + self.user_writes + (self.workspace_writes if by_workspace else self.workspace_epoch)


def token_at(moment: datetime) -> int:
    """Return the token of a lookup that could read nothing: its time in microseconds, as a number below 0."""
    return -((moment - _UNIX) // _MICROSECOND)


@dataclass(frozen=True, slots=True)
class Lessons:
    """When a workspace's memory was changed, committed changes alone.

    Args:
        last_at: The last time, as it was taken before the commit.
        total: The sum of the last times of all its namespaces in microseconds, which any change changes.
    """

    last_at: datetime | None = None
    total: int = 0

    def token(self) -> int:
        """Return the token of a lookup that found no state of its agent: a number from -2^49 to -1."""
        return -1 - self.total % _MOST_LESSONS


def is_current(token: int | None, agent_state: AgentState, lessons: Lessons, *, by_workspace: bool) -> bool:
    """Decide whether a response may still be stored after a lookup.

    Args:
        token: From the lookup; ``None`` if the caller does not care.
        agent_state: The state now.
        lessons: Those of the workspace now; used only for a lookup that read no state. One that could not read them
            either has its time alone: what was learnt close to it is in doubt, for that is a time of another clock,
            before its commit.
        by_workspace: Whether a write of any agent ends the agent's responses.
    """
    if token is None:
        return True
    if token < -_MOST_LESSONS:
        return lessons.last_at is None or token_at(lessons.last_at + LESSON_MARGIN) > token
    return token == (lessons.token() if token < 0 else agent_state.token(by_workspace=by_workspace))


class LookupState(StrEnum):
    """Result of a lookup."""

    HIT = "hit"
    STALE = "stale"
    MISS = "miss"


@dataclass(frozen=True, slots=True)
class ResponseCandidate:
    """A response that may answer, without its text.

    Args:
        query: The question that it answered.
        similarity: Cosine of the two questions.
        is_exact: Whether it was put for exactly this request.
        is_verified: Whether the agent, the user or an admin put it.
    """

    id: UUID
    query: str
    similarity: float
    created_at: datetime
    expires_at: datetime
    is_exact: bool = False
    is_verified: bool = False

    def state(self, now: datetime, grace: timedelta) -> LookupState:
        """Return its state at a moment: a hit until it expires, then stale, then a miss."""
        if now < self.expires_at:
            return LookupState.HIT
        return LookupState.STALE if now < self.expires_at + grace else LookupState.MISS


def best_response(
    candidates: Iterable[ResponseCandidate],
    question: str,
    now: datetime,
    policy: ResponsePolicy,
    is_same_question: Callable[[str, str], bool],
) -> ResponseCandidate | None:
    """Choose the response: a fresh one before a stale one, then the nearest, then the newest.

    A response to other words never answers a question from which ``is_same_question`` tells it apart, however near.
    """

    def answers(item: ResponseCandidate) -> bool:
        is_near = item.similarity >= policy.threshold
        return item.query == question or (is_near and is_same_question(question, item.query))

    states = ((item.state(now, policy.grace), item) for item in candidates)
    usable = [
        (state is LookupState.HIT, item.query == question, item.similarity, item.created_at, item)
        for state, item in states
        if state is not LookupState.MISS and answers(item)
    ]
    return max(usable, key=lambda row: row[:-1])[-1] if usable else None


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """A response as a shard keeps it; the store knows by its id whether it is current.

    Args:
        json: The response, in UTF-8.
    """

    id: UUID
    json: bytes


@dataclass(frozen=True, slots=True)
class ResponseLookup:
    """The response that a lookup found, if any.

    Args:
        state: Whether there is a response, and a fresh one.
        epoch: To send with the response that is made now.
        response: Any JSON value.
        similarity: Cosine of the two questions; 1 for the same one.
        layer: The layer that had it.
        age_s: Seconds since it was stored.
        expires_in_s: Seconds until it becomes stale; below 0 afterwards.
        is_to_refresh: Whether this caller is the one to replace it by a new one.
        is_verified: Whether the agent, the user or an admin put it.
    """

    state: LookupState
    epoch: int
    response: Any = None
    id: UUID | None = None
    similarity: float | None = None
    layer: Layer | None = None
    age_s: float | None = None
    expires_in_s: float | None = None
    is_to_refresh: bool = False
    is_verified: bool = False


class PutRefusal(StrEnum):
    """Why a response was not stored."""

    CHANGED = "memory_changed"
    TOO_LARGE = "over_budget"
    OFF = "switched_off"


@dataclass(frozen=True, slots=True)
class PutOutcome:
    """Result of a put.

    Args:
        id: Of the stored response.
        refusal: Why it is not stored.
        expires_in_s: Seconds until it becomes stale.
        evicted: How many other responses were deleted for it.
    """

    id: UUID | None = None
    refusal: PutRefusal | None = None
    expires_in_s: float | None = None
    evicted: int = 0


@dataclass(frozen=True, slots=True)
class ResponseUse:
    """One lookup that could have been answered.

    Args:
        response: The response that answered, if one did.
    """

    space: Space
    agent: str
    at: datetime
    response: UUID | None = None


@dataclass(frozen=True, slots=True)
class ResponseFigures:
    """Sizes and counts of the store of responses.

    Args:
        entries: All responses.
        size_bytes: Their size.
        live: Fresh ones.
        stale: Those that answer until they are refreshed, or their grace ends.
        expired: Those that answer no more.
        lookups: Recent ones, of all agents.
        hits: Those of them that a response answered.
    """

    entries: int
    size_bytes: int
    live: int
    stale: int
    expired: int
    lookups: int
    hits: int
