"""Conversations with questions and their expected answers: the chats, LoCoMo, LongMemEval."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.chats import FILE as CHATS_FILE
from benchmarks.locomo import CATEGORIES
from benchmarks.locomo import Options as LocomoOptions
from benchmarks.locomo import load as load_locomo
from lamina.errors import Misconfigured

NOT_MENTIONED = "not mentioned"
LOCOMO_FILE = "locomo10.json"
LONGMEMEVAL_FILES = ("longmemeval_s.json", "longmemeval_s_cleaned.json", "longmemeval_oracle.json")
_LONGMEMEVAL_TIME = "%Y/%m/%d (%a) %H:%M"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExpectedAnswer:
    """A question and its answer.

    Args:
        id: The same in every run.
        kind: Of the question, by its set.
        text: The question.
        expected: Its answer; ``NOT_MENTIONED`` where nothing was said.
    """

    id: str
    kind: str
    text: str
    expected: str


@dataclass(frozen=True, slots=True)
class AnswerableConversation:
    """A conversation.

    Args:
        name: Of it, within its set.
        sessions: Names and messages, as ``POST /v1/turns`` takes them.
        questions: About it.
        asked_at: When they are asked: after the last message.
    """

    name: str
    sessions: tuple[tuple[str, tuple[Json, ...]], ...]
    questions: tuple[ExpectedAnswer, ...]
    asked_at: datetime


def load_answers(folder: Path) -> tuple[AnswerableConversation, ...]:
    """Read the set of a folder, known by its files.

    Raises:
        Misconfigured: If it holds none.
    """
    if (file := folder / CHATS_FILE).exists():
        return tuple(map(_chat, map(json.loads, file.read_text(encoding="utf-8").splitlines())))
    if (folder / LOCOMO_FILE).exists():
        return tuple(_locomo(folder))
    for file in (folder / name for name in LONGMEMEVAL_FILES):
        if file.exists():
            return tuple(map(_longmemeval, json.loads(file.read_text(encoding="utf-8"))))
    names = ", ".join((CHATS_FILE, LOCOMO_FILE, *LONGMEMEVAL_FILES))
    raise Misconfigured(f"{folder} holds no set of questions", f"name a folder with one of {names} with --data")


def _chat(item: Json) -> AnswerableConversation:
    sessions = tuple(
        (session["session"], tuple({**message, "occurred_at": session["date"]} for message in session["messages"]))
        for session in item["sessions"]
    )
    questions = tuple(
        ExpectedAnswer(
            f"{item['id']}/{place}",
            question["kind"],
            question["question"],
            NOT_MENTIONED if question["kind"] == "absent" else str(question["answer"]),
        )
        for place, question in enumerate(item["questions"])
    )
    return _conversation(item["id"], sessions, questions)


def _locomo(folder: Path) -> Iterator[AnswerableConversation]:
    sessions = load_locomo(LocomoOptions(folder, "")).sessions
    for item in json.loads((folder / LOCOMO_FILE).read_text(encoding="utf-8")):
        name = item["sample_id"]
        questions = tuple(
            ExpectedAnswer(
                f"{name}/{place}",
                CATEGORIES[question["category"]],
                question["question"],
                str(question.get("answer", NOT_MENTIONED)),
            )
            for place, question in enumerate(item["qa"])
        )
        own = tuple((session.name, session.messages) for session in sessions if session.conversation == name)
        yield _conversation(name, own, questions)


def _longmemeval(item: Json) -> AnswerableConversation:
    """Return a question with its own conversations."""
    pairs = zip(item["haystack_sessions"], item["haystack_dates"], strict=True)
    sessions = []
    for place, (messages, date) in enumerate(pairs):
        at = _longmemeval_time(date)
        sessions.append(
            (
                f"s{place}",
                tuple(
                    {
                        "role": message["role"],
                        "content": message["content"],
                        "occurred_at": (at + timedelta(seconds=second)).isoformat(),
                    }
                    for second, message in enumerate(messages)
                    if message["content"].strip()
                ),
            )
        )
    id_ = item["question_id"]
    expected = NOT_MENTIONED if id_.endswith("_abs") else str(item["answer"])
    asked = ExpectedAnswer(id_, item["question_type"], item["question"], expected)
    return AnswerableConversation(
        id_, tuple(session for session in sessions if session[1]), (asked,), _longmemeval_time(item["question_date"])
    )


def _longmemeval_time(text: str) -> datetime:
    return datetime.strptime(text, _LONGMEMEVAL_TIME).replace(tzinfo=UTC)


def _conversation(
    name: str, sessions: tuple[tuple[str, tuple[Json, ...]], ...], questions: tuple[ExpectedAnswer, ...]
) -> AnswerableConversation:
    last = max(datetime.fromisoformat(message["occurred_at"]) for _, messages in sessions for message in messages)
    return AnswerableConversation(name, sessions, questions, last + timedelta(days=1))
