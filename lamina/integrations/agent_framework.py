"""Microsoft Agent Framework: a context provider that recalls before a run and records after it."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from agent_framework import AgentSession, ContextProvider, Message, SessionContext

from lamina.integrations._turns import TurnMemory


class LaminaProvider(ContextProvider):
    """Memory of an agent.

    Nothing of it is stored in the session's state.

    Args:
        scope: workspace, namespace, user and agent.
        url: Where Lamina listens; else ``LAMINA_URL``.
        key: API key; else ``LAMINA_API_KEY``.
        source_id: Under which name its messages stand among those of other providers.
        records: Whether turns are recorded; a provider that only recalls is for what others recorded.
    """

    def __init__(
        self,
        scope: Mapping[str, str] | None = None,
        url: str | None = None,
        key: str | None = None,
        *,
        source_id: str = "lamina",
        records: bool = True,
    ) -> None:
        super().__init__(source_id)
        self._memory = TurnMemory(scope, url, key)
        self._records = records

    async def before_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add a message with the memories for what is said."""
        question = "\n".join(message.text for message in context.input_messages if message.role == "user")
        block, _ = await self._memory.recall(question, session=context.session_id)
        if block:
            context.extend_messages(self, [Message(role="user", contents=[block])])

    async def after_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Record what was said and answered."""
        if not self._records or context.response is None:
            return
        said = [*context.input_messages, *context.response.messages]
        await self._memory.record(_messages(said), session=context.session_id or session.session_id)


def _messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [
        # Without a ref, equal messages are one.
        {"role": str(message.role), "content": message.text, "ref": message.message_id or str(uuid4())}
        for message in messages
        if message.role in {"user", "assistant"}
    ]
