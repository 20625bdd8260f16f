"""The sample conversation that ships with Lamina."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

MESSAGES_PER_TURN = 16


@dataclass(frozen=True, slots=True)
class SampleQuestion:
    """A question and the refs of the messages that answer it."""

    query: str
    expected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Some months of messages between a user and an agent, by session."""

    workspace: str
    user: str
    agent: str
    sessions: tuple[tuple[str, tuple[dict[str, Any], ...]], ...]
    questions: tuple[SampleQuestion, ...]

    @property
    def count(self) -> int:
        """Return the number of messages."""
        return sum(len(messages) for _, messages in self.sessions)

    def turns(self) -> Iterator[tuple[str, tuple[dict[str, Any], ...]]]:
        """Yield (session, messages) in portions of a request each, in order."""
        for session, messages in self.sessions:
            for start in range(0, len(messages), MESSAGES_PER_TURN):
                yield session, messages[start : start + MESSAGES_PER_TURN]


def load() -> Conversation:
    """Return the conversation."""
    data = json.loads(resources.files(__package__).joinpath("conversation.json").read_text(encoding="utf-8"))
    return Conversation(
        workspace=data["workspace"],
        user=data["user"],
        agent=data["agent"],
        sessions=tuple((item["session"], tuple(item["messages"])) for item in data["sessions"]),
        questions=tuple(SampleQuestion(item["query"], tuple(item["expected"])) for item in data["questions"]),
    )
