"""The choice of the summaries that a session is due for: one for each user's messages, one for the shared ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from lamina.core.memories import Message, Role
from lamina.policies.retention.session_budget import CompactionPolicy, SessionMessage, plan_compaction


@dataclass(frozen=True, slots=True)
class LiveMessage:
    """A message of a session, or a summary, that no later summary replaces.

    Args:
        user: The only user who may read it; ``None``: everybody may.
        tokens: Estimated, of the message with its name, as readers see it.
    """

    id: UUID
    position: int
    message: Message
    user: str | None
    agent: str | None
    swarm: str | None
    content_hash: bytes
    is_summary: bool
    occurred_at: datetime
    tokens: int

    def measure(self) -> SessionMessage:
        """Return its place, size and time, by which compaction is planned."""
        return SessionMessage(self.position, self.tokens, self.occurred_at)

    def covered(self) -> tuple[int, int]:
        """Return the number of messages that it is or replaces, and the position of the first of them."""
        covered = self.message.metadata.get("summary", {}) if self.is_summary else {}
        return covered.get("messages", 1), covered.get("from", self.position)

    def authors(self) -> tuple[str, ...]:
        """Return who said it, by name or else by role; of a summary, who has lines in it.

        A name that is another role stands behind its own: nobody's lines pass for the model's.
        """
        if self.is_summary:
            return tuple(self.message.metadata.get("summary", {}).get("authors", ()))
        name, role = self.message.name or self.message.role.value, self.message.role.value
        poses = name.casefold() in set(Role) - {role}
        return (f"{role} {name}" if poses else name,)


@dataclass(frozen=True, slots=True)
class SummaryPart:
    """Messages that one summary is to replace.

    Args:
        messages: Of one user, oldest first: every reader of the summary may read them all.
        most_tokens: Of the summary with its name.
    """

    messages: tuple[LiveMessage, ...]
    most_tokens: int

    @property
    def is_worth_it(self) -> bool:
        """Report whether the summary saves tokens, and is not just a shorter summary of a summary."""
        is_new = len(self.messages) > 1 or not self.messages[0].is_summary
        return is_new and sum(item.tokens for item in self.messages) > self.most_tokens


def plan_summaries(messages: Sequence[LiveMessage], policy: CompactionPolicy, *, min_tokens: int) -> list[SummaryPart]:
    """Divide the messages that are due among summaries: one for each user's, and one for the shared ones.

    A summary of several users' messages would let one read the others'. Each summary gets a share of the policy's
    tokens in proportion to its messages' tokens.

    Args:
        messages: All live messages of the session, in order.
        policy: When compaction is due, and how far it goes.
        min_tokens: Least tokens of a summary with its name.
    """
    found = plan_compaction([item.measure() for item in messages], policy)
    if found is None:
        return []
    by_user: dict[str | None, list[LiveMessage]] = {}
    for item in messages[: len(found.positions)]:
        by_user.setdefault(item.user, []).append(item)
    parts = (
        SummaryPart(tuple(of), max(min_tokens, policy.summary_tokens * sum(item.tokens for item in of) // found.tokens))
        for of in by_user.values()
    )
    return [part for part in parts if part.is_worth_it]
