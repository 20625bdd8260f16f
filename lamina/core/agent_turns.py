"""The work of agents in a turn: tool calls, tokens, cost and outcome."""

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from lamina.core.memories import Message, Metadata, MetadataLimit, Role, as_utc, clean_metadata
from lamina.errors import InvalidInput
from lamina.text.hygiene import clean, clean_id, clean_json, clean_name, has_more_values

MAX_TOKENS = 1_000_000_000_000
MAX_COST = 1_000_000_000.0
MAX_LATENCY_MS = 1_000_000_000.0
MAX_REMARK_CHARS = 10_000
MAX_RESULT_VALUES = 5_000
"""Values and keys of a result; 10^5 take .1 s to clean."""
LEAST_SUCCESS = 0.5
"""Score from which an outcome without a word counts as a success."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool, with its result.

    Args:
        name: The tool.
        arguments: By name, or as the model wrote them.
        result: Text, or JSON; ``None`` if there is none.
        ref: The caller's own id of the call; a call with the same id and content is the same call.
        succeeded: Whether the tool did what was asked.
        occurred_at: When it was called, in UTC.
        latency_ms: How long it took.
    """

    name: str
    arguments: Metadata | str = field(default_factory=dict)
    result: object = None
    ref: str | None = None
    succeeded: bool = True
    occurred_at: datetime | None = None
    latency_ms: float | None = None

    def message(self) -> Message:
        """Return it as a message of the session, which search finds by name, arguments and result."""
        arguments = self.arguments if isinstance(self.arguments, str) else _as_json(self.arguments)
        result = self.result if isinstance(self.result, str) else _as_json(self.result)
        shown = "" if self.result is None or not result.strip() else f"\n{result}"
        details: dict[str, Any] = {"arguments": self.arguments, "succeeded": self.succeeded}
        if self.latency_ms is not None:
            details["latency_ms"] = self.latency_ms
        return Message(
            Role.TOOL,
            f"{self.name}({arguments}){shown}",
            name=self.name,
            ref=self.ref,
            occurred_at=self.occurred_at,
            metadata={"tool_call": details},
        )


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, cost and time of the model's calls in a turn.

    Args:
        provider: Company or server that runs the model.
        model: Its name there.
        input_tokens: Tokens of the prompts, those from the provider's cache among them.
        cached_tokens: How many of them came from the provider's cache.
        output_tokens: Tokens that were written.
        cost: In the currency that the caller counts in.
        latency_ms: From the request of the turn to its answer.
    """

    provider: str | None = None
    model: str | None = None
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    latency_ms: float | None = None


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """The outcome of a run, which ends with the turn that has one.

    Args:
        succeeded: Whether it reached its aim.
        score: 0..1, a reward, if there is one.
        comment: Remarks of the caller.
    """

    succeeded: bool
    score: float | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class AgentWork:
    """The work of an agent in a turn, beside its messages."""

    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    outcome: TurnOutcome | None = None

    def is_empty(self) -> bool:
        """Report whether the turn is messages alone."""
        return not self.tool_calls and self.usage is None and self.outcome is None

    def metrics(self) -> dict[str, str | int | float | bool | None]:
        """Return its figures, as the event `agent.metrics` holds them: no arguments, results or comments."""
        usage = {} if self.usage is None else asdict(self.usage)
        outcome = {} if self.outcome is None else asdict(self.outcome)
        outcome.pop("comment", None)
        failed = sum(not call.succeeded for call in self.tool_calls)
        return {"tool_calls": len(self.tool_calls), "failed_calls": failed, **usage, **outcome}


NO_WORK = AgentWork()


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A turn's work as Postgres holds it.

    Args:
        tools: Names of the tools, in the order of their calls.
        failed_calls: How many of the calls failed.
        last_position: Place in the session of its last message.
    """

    id: UUID
    session: str
    user: str | None
    agent: str | None
    last_position: int
    tools: tuple[str, ...]
    failed_calls: int
    usage: Usage | None
    outcome: TurnOutcome | None
    recorded_at: datetime


def clean_work(work: AgentWork, *, limit: MetadataLimit | None = None) -> AgentWork:
    """Return the work with clean text, numbers within their bounds and UTC times.

    Args:
        work: Of a turn.
        limit: Of the arguments of each tool call.

    Raises:
        InvalidInput: Naming the field.
    """
    return AgentWork(
        tuple(clean_tool_call(call, f"tool_calls.{place}", limit=limit) for place, call in enumerate(work.tool_calls)),
        None if work.usage is None else clean_usage(work.usage),
        None if work.outcome is None else clean_turn_outcome(work.outcome),
    )


def clean_tool_call(call: ToolCall, field_path: str, *, limit: MetadataLimit | None = None) -> ToolCall:
    """Return the call with clean text and UTC time.

    Raises:
        InvalidInput: Naming the field under ``field_path``.
    """
    arguments, result = call.arguments, call.result
    if isinstance(arguments, str):
        clean_metadata({"arguments": clean(arguments, f"{field_path}.arguments")}, f"{field_path}.arguments", limit)
    else:
        arguments = clean_metadata(arguments, f"{field_path}.arguments", limit)
    if has_more_values(result, MAX_RESULT_VALUES):
        reason = f"has too many values and keys; at most {MAX_RESULT_VALUES} are accepted, or send it as text"
        raise InvalidInput(f"{field_path}.result", reason)
    return ToolCall(
        name=clean_name(call.name, f"{field_path}.name"),
        arguments=arguments,
        result=clean_json(result, f"{field_path}.result"),
        ref=None if call.ref is None else clean_name(call.ref, f"{field_path}.id"),
        succeeded=call.succeeded,
        occurred_at=None if call.occurred_at is None else as_utc(call.occurred_at, f"{field_path}.occurred_at"),
        latency_ms=_within(call.latency_ms, MAX_LATENCY_MS, f"{field_path}.latency_ms"),
    )


def clean_usage(usage: Usage) -> Usage:
    """Return the usage with clean ids and numbers within their bounds.

    Raises:
        InvalidInput: Naming the field under ``usage``.
    """
    for name in ("input_tokens", "output_tokens"):
        _within(getattr(usage, name), MAX_TOKENS, f"usage.{name}")
    if not 0 <= usage.cached_tokens <= usage.input_tokens:
        reason = f"is {usage.cached_tokens}; expected 0 to {usage.input_tokens}, the turn's input_tokens"
        raise InvalidInput("usage.cached_tokens", reason)
    _within(usage.cost, MAX_COST, "usage.cost")
    return Usage(
        provider=None if usage.provider is None else clean_id(usage.provider, "usage.provider"),
        model=None if usage.model is None else clean_id(usage.model, "usage.model"),
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
        cost=usage.cost,
        latency_ms=_within(usage.latency_ms, MAX_LATENCY_MS, "usage.latency_ms"),
    )


def clean_turn_outcome(outcome: TurnOutcome) -> TurnOutcome:
    """Return the outcome with clean text.

    Raises:
        InvalidInput: Naming the field under ``outcome``.
    """
    comment = outcome.comment
    return TurnOutcome(
        succeeded=outcome.succeeded,
        score=_within(outcome.score, 1.0, "outcome.score"),
        comment=None if comment is None else clean(comment, "outcome.comment", limit=MAX_REMARK_CHARS),
    )


def _within(value: float | None, most: float, field_path: str) -> float | None:
    if value is not None and not 0 <= value <= most:  # NaN is not either.
        raise InvalidInput(field_path, f"is {value}; expected 0 to {most:g}")
    return value


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
