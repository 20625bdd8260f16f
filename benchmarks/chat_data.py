"""Conversations with questions and the messages that answer them, as the sets of chats and of changes hold them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lamina.errors import Misconfigured

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Session:
    """A session's messages, in order; each has the session's date."""

    name: str
    messages: tuple[Json, ...]

    def turns(self) -> Iterator[tuple[Json, ...]]:
        """Yield the turns: one begins with each message of a person that follows one of the assistant."""
        turn: list[Json] = []
        for message in self.messages:
            if turn and turn[-1]["role"] == "assistant" and message["role"] != "assistant":
                yield tuple(turn)
                turn = []
            turn.append(message)
        if turn:
            yield tuple(turn)


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the refs of the messages that answer it; none where nothing does."""

    kind: str
    text: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation and its questions.

    Args:
        number: The number in its name: what is fitted takes the odd ones, what is checked the even ones.
        flavour: Who talks: two people, a group, a person with an assistant, agents.
    """

    name: str
    number: int
    flavour: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]

    @property
    def is_fitted(self) -> bool:
        """Report whether weights may be fitted on it."""
        return self.number % 2 == 1


def load_chats(files: Sequence[Path]) -> tuple[Conversation, ...]:
    """Read conversations, one a line.

    Raises:
        Misconfigured: If a file does not exist.
    """
    try:
        lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    except FileNotFoundError as error:
        raise Misconfigured(f"{error.filename} does not exist", "name the folder of the chats with --data") from error
    return tuple(_conversation(json.loads(line)) for line in lines)


def _conversation(item: Json) -> Conversation:
    name = item["id"]
    return Conversation(
        name=name,
        number=int("".join(filter(str.isdigit, name))),
        flavour=item["flavour"],
        sessions=tuple(_session(session) for session in item["sessions"]),
        questions=tuple(
            Question(question["kind"], question["question"], frozenset(question["evidence"]))
            for question in item["questions"]
        ),
    )


def _session(item: Json) -> Session:
    return Session(item["session"], tuple({**message, "occurred_at": item["date"]} for message in item["messages"]))
