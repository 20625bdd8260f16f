"""Turns of a conversation: messages to store, and the answer."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, Field

from lamina.api.fields import ABSENT, AtMost, Content, Count, Flag, Fraction, Id, Moment, Output, PageOut, Strict
from lamina.api.notes import PutResult
from lamina.api.scope import ScopeIn
from lamina.core.agent_turns import LEAST_SUCCESS, MAX_REMARK_CHARS, AgentWork, ToolCall, TurnOutcome, Usage
from lamina.core.memories import DEFAULT_IMPORTANCE, MAX_MESSAGES, Message, Role
from lamina.errors import InvalidInput

Number = Annotated[float, Field(strict=True, ge=0)]
Remark = Annotated[str, AtMost(MAX_REMARK_CHARS)]


class MessageIn(Strict):
    """One message of a turn."""

    role: Role = Field(Role.USER, description="Who speaks: user, assistant, system or tool.")
    content: Content = Field(description="What is said.")
    name: Id = Field(ABSENT, description="The speaker's name; search sees it.")
    ref: Id = Field(ABSENT, description="Your own id of the message; delivering it again changes nothing.")
    occurred_at: Moment = Field(
        ABSENT, description="When it was said, ISO 8601; without an offset it is UTC. Default: now."
    )
    metadata: dict[str, Any] = Field(default_factory=dict, description="Your data, returned untouched.")
    importance: Fraction = Field(
        DEFAULT_IMPORTANCE, description="How much it matters, 0 to 1; the composite relevance weighs it."
    )

    def message(self) -> Message:
        """Return the message to store."""
        return Message(self.role, self.content, self.name, self.ref, self.occurred_at, self.metadata, self.importance)


class ToolCallIn(Strict):
    """A call of a tool, with its result."""

    name: Id = Field(description="The tool; search sees it.")
    arguments: dict[str, Any] | Content = Field(
        default_factory=dict, description="Its arguments by name, or the text that the model wrote; search sees them."
    )
    result: Any = Field(None, description="Its answer, text or JSON; search sees it.")
    id: Id = Field(ABSENT, description="Your own id of the call; delivering it again changes nothing.")
    succeeded: Flag = Field(default=True, description="Whether the tool did what was asked.")
    occurred_at: Moment = Field(ABSENT, description="When it was called, ISO 8601. Default: now.")
    latency_ms: Number = Field(ABSENT, description="How long it took.")

    def call(self) -> ToolCall:
        """Return the call to store."""
        return ToolCall(
            self.name, self.arguments, self.result, self.id, self.succeeded, self.occurred_at, self.latency_ms
        )


class UsageIn(Strict):
    """Tokens, cost and time of the model's calls in a turn."""

    provider: Id = Field(ABSENT, description="Who runs the model; with `model`, the cache figures are counted for it.")
    model: Id = Field(ABSENT, description="Its name there.")
    input_tokens: Count = Field(0, description="Tokens of the prompts, those from the provider's cache among them.")
    cached_tokens: Count = Field(0, description="How many of them came from the provider's cache.")
    output_tokens: Count = Field(0, description="Tokens that were written.")
    cost: Number = Field(0.0, description="In the currency that you count in.")
    latency_ms: Number = Field(ABSENT, description="From the request of the turn to its answer.")

    def usage(self) -> Usage:
        """Return the usage to store."""
        return Usage(**self.model_dump())


class TurnOutcomeIn(Strict):
    """The outcome of a run, which ends with this turn."""

    succeeded: Flag = Field(ABSENT, description=f"Whether it worked. Default: a score of at least {LEAST_SUCCESS:g}.")
    score: Fraction = Field(ABSENT, description="A reward, 0 to 1.")
    comment: Remark = Field(ABSENT, description="What there is to say about it.")

    def outcome(self) -> TurnOutcome:
        """Return the outcome to store.

        Raises:
            InvalidInput: If it tells neither success nor score.
        """
        if self.succeeded is None and self.score is None:
            raise InvalidInput("outcome", "has neither succeeded nor score; send one of them")
        succeeded = self.score >= LEAST_SUCCESS if self.succeeded is None else self.succeeded
        return TurnOutcome(succeeded, self.score, self.comment)


class TurnIn(ScopeIn):
    """The messages of one turn of a session, and the work of the agent in it."""

    messages: list[MessageIn] = Field(
        max_length=MAX_MESSAGES,
        description=f"1 to {MAX_MESSAGES} messages, in order; may be empty where the turn has any of the other fields.",
    )
    tool_calls: list[ToolCallIn] = Field(
        default_factory=list,
        max_length=MAX_MESSAGES,
        description="Tools that were called, in order: messages of the session, before the assistant's last one.",
    )
    usage: UsageIn = Field(ABSENT, description="Tokens, cost and time.")
    outcome: TurnOutcomeIn = Field(
        ABSENT,
        description="What came of the run, which is all turns of the session since the last outcome, this one among "
        "them: procedures are learnt from it.",
    )

    def work(self) -> AgentWork:
        """Return the work of the agent.

        Raises:
            InvalidInput: If an outcome tells neither success nor score.
        """
        return AgentWork(
            tuple(item.call() for item in self.tool_calls),
            None if self.usage is None else self.usage.usage(),
            None if self.outcome is None else self.outcome.outcome(),
        )


class StoredMessage(Output):
    """The result of storing a message."""

    id: UUID = Field(description="Id of the message.")
    position: int = Field(description="Its place in the session, from 1.")
    existed: bool = Field(description="Whether the session already had it.")


class TurnOut(Output):
    """A turn that is durable."""

    messages: list[StoredMessage] = Field(description="One entry a message, in their order.")
    notes: list[PutResult] = Field(description="Notes that were drawn from the messages.")
    profile_version: int | None = Field(description="The user's profile version if the turn taught something of them.")
    epoch: int = Field(description="How often the namespace was written; caches are keyed by it.")
    tool_calls: list[StoredMessage] = Field(
        default_factory=list, description="One entry a tool call, in their order: the message that it became."
    )


class UsageOut(Output):
    """Tokens, cost and time of a turn."""

    provider: str | None = Field(description="Who runs the model.")
    model: str | None = Field(description="Its name there.")
    input_tokens: int = Field(description="Tokens of the prompts.")
    cached_tokens: int = Field(description="How many of them came from the provider's cache.")
    output_tokens: int = Field(description="Tokens that were written.")
    cost: float = Field(description="In the currency that you count in.")
    latency_ms: float | None = Field(description="From the request to the answer.")


class TurnOutcomeOut(Output):
    """The outcome of a run."""

    succeeded: bool = Field(description="Whether it worked.")
    score: float | None = Field(description="A reward, 0 to 1.")
    comment: str | None = Field(description="What was said about it.")


class AgentTurnOut(Output):
    """A turn with an agent's work."""

    id: UUID = Field(description="Id of the turn.")
    session: str = Field(description="The conversation.")
    user: str | None = Field(description="Person the session is with.")
    agent: str | None = Field(description="Agent that worked.")
    last_position: int = Field(description="Place of its last message in the session.")
    tools: list[str] = Field(description="Tools that were called, in order.")
    failed_calls: int = Field(description="How many of the calls failed.")
    usage: UsageOut | None = Field(description="Tokens, cost and time, if they were sent.")
    outcome: TurnOutcomeOut | None = Field(description="What came of the run, if it ended here.")
    recorded_at: datetime = Field(description="When it arrived, UTC.")


class AgentTurnsOut(PageOut):
    """A page of turns."""

    turns: list[AgentTurnOut] = Field(description="The latest first.")


class UsageSumOut(Output):
    """The work of one agent with one model."""

    agent: str | None = Field(description="Agent that worked.")
    provider: str | None = Field(description="Who runs the model.")
    model: str | None = Field(description="Its name there.")
    turns: int = Field(description="Turns with tool calls, usage or an outcome.")
    tool_calls: int = Field(description="Tools that were called.")
    failed_calls: int = Field(description="How many of the calls failed.")
    input_tokens: int = Field(description="Tokens of the prompts.")
    cached_tokens: int = Field(description="How many of them came from the provider's cache.")
    output_tokens: int = Field(description="Tokens that were written.")
    cost: float = Field(description="In the currency that you count in.")
    mean_latency_ms: float | None = Field(description="Mean of the turns that told theirs.")
    successes: int = Field(description="Runs that succeeded.")
    failures: int = Field(description="Runs that failed.")


class UsageSumsOut(BaseModel):
    """The work of a tenant's agents."""

    days: int = Field(description="Over how many days until now.")
    usage: list[UsageSumOut] = Field(description="By agent and model, the most expensive first.")
