"""Long chats of people, groups, assistants and agents: the messages that answer a question among those found.

Weights may be fitted on the conversations with odd numbers; those with even ones, which stand apart, only check them.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.table import Table

from benchmarks.chat_data import Conversation, Question, load_chats
from benchmarks.options import KeyOption, UrlOption
from benchmarks.report import publish, stage, table
from benchmarks.scored_searches import ScoredAnswers, ScoredQuestion, SearchOptions, ask_all
from benchmarks.scoring import RECALL_DEPTHS, JudgedRanking, distinct, mean_recalls
from benchmarks.service import Endpoint, service
from benchmarks.timing import run_all, until_indexed
from lamina.client import AsyncClient
from lamina.core.tiers import TIERS

FILE, LONG_FILE = "chats.jsonl", "chats_long.jsonl"
# Recall at 5, 10 and 20 over the even half of `chats.jsonl`, measured outside the product.
REFERENCES: Mapping[str, tuple[float, ...]] = {
    "BM25": (0.219, 0.320, 0.468),
    "MiniLM": (0.505, 0.591, 0.680),
    "RRF of both": (0.401, 0.553, 0.687),
}

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Judgement:
    """A question's conversation, the question, and the ranking of message refs that answered it."""

    conversation: Conversation
    question: Question
    judged: JudgedRanking


def measure(
    data: Annotated[Path, typer.Option("--data", help="Folder of the chats.")],
    limit: Annotated[int, typer.Option(min=20, help="Fused hits asked for.")] = 20,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests in flight.")] = 4,
    workspaces: Annotated[
        str | None, typer.Option(help="Prefix of the workspaces; the same again reuses them. Default: new ones.")
    ] = None,
    url: UrlOption = None,
    key: KeyOption = None,
    *,
    long: Annotated[bool, typer.Option("--long", help="Take the chats with an assistant's long answers.")] = False,
    sessions_only: Annotated[bool, typer.Option("--sessions-only", help="Search the sessions alone.")] = False,
) -> None:
    """Measure recall over chats whose questions avoid the words of their evidence."""
    conversations = load_chats([data / (LONG_FILE if long else FILE)])
    prefix = workspaces or f"chats-{uuid4().hex[:8]}"
    options = SearchOptions(("sessions",) if sessions_only else tuple(TIERS), limit, concurrency)
    with service(url, key) as endpoint:
        judged, replies = asyncio.run(_run(endpoint, conversations, prefix, options))
    found = {**figures(judged), **replies.figures()}
    publish(tables(found), {"chats": found})


async def _run(
    endpoint: Endpoint, conversations: Sequence[Conversation], prefix: str, options: SearchOptions
) -> tuple[list[Judgement], ScoredAnswers]:
    async with AsyncClient(*endpoint) as client:
        return await run(client, conversations, prefix, options)


async def run(
    client: AsyncClient, conversations: Sequence[Conversation], prefix: str, options: SearchOptions
) -> tuple[list[Judgement], ScoredAnswers]:
    """Write the conversations, each into a workspace of its own, then ask every question that has evidence."""
    written = await run_all(
        conversations, lambda item: _write(client, item, f"{prefix}-{item.name}"), concurrency=options.concurrency
    )
    refs = {id_: ref for of_one in written for id_, ref in of_one.items()}
    indexed_s = await until_indexed(client)
    stage(f"{len(refs)} messages written; indexed {indexed_s:.1f} s later")
    asked = [(item, question) for item in conversations for question in item.questions if question.evidence]
    questions = [ScoredQuestion(f"{prefix}-{item.name}", question.text) for item, question in asked]
    replies = await ask_all(client, questions, options)
    stage(f"{len(questions)} questions asked")
    judged = [
        Judgement(item, question, JudgedRanking(distinct(_ref(hit, refs) for hit in hits), question.evidence))
        for (item, question), hits in zip(asked, replies.fused(), strict=True)
    ]
    return judged, replies


async def _write(client: AsyncClient, conversation: Conversation, workspace: str) -> dict[str, str]:
    """Send a conversation turn by turn; return its messages' refs by the ids that they got."""
    refs: dict[str, str] = {}
    for session in conversation.sessions:
        for turn in session.turns():
            answer = await client.record(turn, workspace=workspace, session=session.name)
            pairs = zip(turn, answer["messages"], strict=True)
            refs |= {stored["id"]: message["ref"] for message, stored in pairs}
    return refs


def _ref(hit: Json, refs: Mapping[str, str]) -> str:
    """Return the ref of the message that a hit is, or that it was drawn from; others stand for themselves."""
    id_ = hit["id"] if hit["tier"] == "sessions" else (hit["source"] or "").removeprefix("message:")
    return refs.get(id_, hit["id"])


def figures(judged: Sequence[Judgement]) -> Json:
    """Return the recalls of both halves, those of the unseen one by flavour and by kind of question."""
    fitted = [item for item in judged if item.conversation.is_fitted]
    unseen = [item for item in judged if not item.conversation.is_fitted]
    return {
        "fitted": _recalls(fitted),
        "unseen": {
            **_recalls(unseen),
            "by_flavour": _grouped(unseen, lambda item: item.conversation.flavour),
            "by_kind": _grouped(unseen, lambda item: item.question.kind),
        },
    }


def _recalls(judged: Sequence[Judgement]) -> Json:
    return {**mean_recalls([item.judged for item in judged]), "questions": len(judged)}


def _grouped(judged: Sequence[Judgement], key: Callable[[Judgement], str]) -> Json:
    names = sorted({key(item) for item in judged})
    return {name: _recalls([item for item in judged if key(item) == name]) for name in names}


def tables(found: Json) -> tuple[Table, ...]:
    """Return the tables of the figures."""
    depths = "/".join(map(str, RECALL_DEPTHS))
    shown = table(f"Chats: recall of evidence at {depths} in per cent", "conversations", "questions", "recall")
    unseen = found["unseen"]
    rows = {"fitted half": found["fitted"], "unseen half": unseen, **unseen["by_flavour"], **unseen["by_kind"]}
    for name, recalls in rows.items():
        shown.add_row(name.replace("_", " "), str(recalls["questions"]), _percent(_values(recalls)))
    for name, values in REFERENCES.items():
        shown.add_row(f"unseen half, {name}", "", _percent(values))
    return (shown,)


def _values(recalls: Json) -> tuple[float, ...]:
    return tuple(recalls[f"recall_at_{depth}"] for depth in RECALL_DEPTHS)


def _percent(values: Sequence[float]) -> str:
    return " / ".join(f"{100 * value:.1f}" for value in values)
