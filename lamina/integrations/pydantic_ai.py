"""Pydantic AI: a capability that recalls before a run and records after it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import AgentRunResult, RunContext
from pydantic_ai.capabilities import AbstractCapability

from lamina.integrations._turns import TurnMemory


@dataclass
class LaminaMemory(AbstractCapability[Any]):
    """Memory of an agent.

    The memories stand in the instructions of the run, behind the agent's own, and not in its messages.
    """

    scope: dict[str, str] = field(default_factory=dict)
    """workspace, namespace, user and agent."""
    url: str | None = None
    """Where Lamina listens; else ``LAMINA_URL``."""
    key: str | None = field(default=None, repr=False)
    """API key; else ``LAMINA_API_KEY``."""
    records: bool = True
    """Whether turns are recorded."""
    block: str = field(default="", init=False, repr=False)

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        """Return the capability with the memories for a run."""
        run = replace(self)
        memory = TurnMemory(self.scope, self.url, self.key)
        run.block, _ = await memory.recall(_text(ctx.prompt), session=ctx.conversation_id)
        return run

    def get_instructions(self) -> str | None:
        """Return the memories of the run."""
        return self.block or None

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Record what was asked and answered."""
        if self.records:
            output = result.output if isinstance(result.output, str) else str(result.output)
            said = [("user", _text(ctx.prompt)), ("assistant", output)]
            messages = [{"role": role, "content": text, "ref": f"{ctx.run_id}-{role}"} for role, text in said]
            memory = TurnMemory(self.scope, self.url, self.key)
            await memory.record(messages, session=ctx.conversation_id or str(ctx.run_id))
        return result


def _text(prompt: str | Sequence[Any] | None) -> str:
    if isinstance(prompt, str):
        return prompt
    return "\n".join(part for part in prompt or () if isinstance(part, str))
