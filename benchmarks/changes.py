"""Facts that change: whether the statement that holds comes before the one that held, or never did.

Each conversation has a workspace of its own and is sent turn by turn without a user; then its two questions are asked.
The set's README says how both figures are judged, and why late statements and those that change nothing stand apart.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.table import Table

from benchmarks.options import KeyOption, UrlOption
from benchmarks.report import publish, stage, table
from benchmarks.service import Endpoint, service
from benchmarks.timing import run_all, until_indexed
from lamina.client import AsyncClient
from lamina.errors import Misconfigured

LIMIT = 10
BUDGET_TOKENS = 1500
NOW, AS_OF = "now", "as_of"
HALVES = ("odd", "even")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """Messages of one session that are sent together: of one person or more, and the answers to them."""

    session: str
    messages: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a fact that changed, or that seems to have.

    Args:
        text: What is asked.
        as_of: The moment that it is about; now without one.
        answers: The values that hold; each is in the message of ``current`` with its place, if there are several.
        wrong: The value of a careless answer, if there is one.
        current: Refs of the messages that state what holds.
        outdated: Refs of those that state something else.
    """

    text: str
    as_of: str | None
    answers: tuple[str, ...]
    wrong: str | None
    current: tuple[str, ...]
    outdated: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation and its questions.

    Args:
        number: Its place in the set, from 1; odd ones may be fitted on.
        kind: What changes.
        is_late: Whether an older fact is told after the newer one.
    """

    name: str
    number: int
    kind: str
    is_late: bool
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The two figures of a question: the order of the results, and of the values in the context block.

    Args:
        results: The hits, best first, each with the ref of its message.
    """

    conversation: Conversation
    question: Question
    results: tuple[Json, ...]
    is_ordered: bool
    is_right_in_block: bool


def measure(
    data: Annotated[Path, typer.Option("--data", help="Folder of the set of changes.")],
    concurrency: Annotated[int, typer.Option(min=1, help="Requests in flight.")] = 4,
    failures: Annotated[bool, typer.Option(help="Show every question that is not answered in order.")] = False,
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Measure whether facts that changed are found as they are now, and as they were at a date."""
    conversations = load(data)
    with service(url, key) as endpoint:
        judged = asyncio.run(_run(endpoint, conversations, concurrency))
    if failures:
        _show_failures(judged)
    found = figures(judged)
    publish(tables(found), {"changes": found})


def load(folder: Path) -> tuple[Conversation, ...]:
    """Read the data set.

    Raises:
        Misconfigured: If the folder does not hold it.
    """
    try:
        lines = (folder / "changes.jsonl").read_text().splitlines()
        late = {line.split("\t")[0] for line in (folder / "late.tsv").read_text().splitlines()[1:]}
    except FileNotFoundError as error:
        raise Misconfigured(f"{error.filename} does not exist", "name the folder of the changes with --data") from error
    return tuple(_conversation(json.loads(line), place, late) for place, line in enumerate(lines, 1))


def _conversation(item: Json, number: int, late: set[str]) -> Conversation:
    turns = tuple(turn for session in item["sessions"] for turn in turns_of(session))
    questions = tuple(_question(question) for question in item["questions"])
    return Conversation(item["id"], number, item["kind"], item["id"] in late, turns, questions)


def turns_of(session: Json) -> Iterator[Turn]:
    """Yield the turns of a session: one begins with each message of a person that follows one of the assistant."""
    messages: list[Json] = []
    for message in session["messages"]:
        if messages and messages[-1]["role"] == "assistant" and message["role"] != "assistant":
            yield Turn(session["session"], tuple(messages))
            messages = []
        messages.append({**message, "occurred_at": session["date"]})
    yield Turn(session["session"], tuple(messages))


def _question(item: Json) -> Question:
    answer = item["answer"]
    return Question(
        text=item["question"],
        as_of=item["as_of"],
        answers=tuple(answer) if isinstance(answer, list) else (answer,),
        wrong=item["wrong"],
        current=tuple(item["current"]),
        outdated=frozenset(item["outdated"]),
    )


async def _run(endpoint: Endpoint, conversations: Sequence[Conversation], concurrency: int) -> list[Judgement]:
    async with AsyncClient(*endpoint) as client:
        return await run(client, conversations, concurrency)


async def run(
    client: AsyncClient, conversations: Sequence[Conversation], concurrency: int, limit: int = LIMIT
) -> list[Judgement]:
    """Write the conversations, then ask their questions: once for results, once for a block."""
    prefix = f"changes-{uuid4().hex[:8]}"
    refs = await run_all(conversations, lambda item: _write(client, item, prefix), concurrency=concurrency)
    indexed_s = await until_indexed(client)
    stage(f"{len(conversations)} conversations written; indexed {indexed_s:.1f} s later")
    asked = [
        (item, question, known) for item, known in zip(conversations, refs, strict=True) for question in item.questions
    ]
    judged = await run_all(asked, lambda case: _ask(client, *case, prefix, limit), concurrency=concurrency)
    stage(f"{len(judged)} questions asked")
    return judged


async def _write(client: AsyncClient, conversation: Conversation, prefix: str) -> dict[str, str]:
    """Send a conversation; return its messages' refs by the ids that they got."""
    refs: dict[str, str] = {}
    for turn in conversation.turns:
        scope = {"workspace": f"{prefix}-{conversation.name}", "session": turn.session}
        answer = await client.record(turn.messages, **scope)
        pairs = zip(turn.messages, answer["messages"], strict=True)
        refs |= {stored["id"]: message["ref"] for message, stored in pairs}
    return refs


async def _ask(
    client: AsyncClient,
    conversation: Conversation,
    question: Question,
    refs: Mapping[str, str],
    prefix: str,
    limit: int,
) -> Judgement:
    scope = {"workspace": f"{prefix}-{conversation.name}", "limit": limit}
    moment = {} if question.as_of is None else {"as_of": question.as_of}
    answer = await client.search(question.text, explain=True, **scope, **moment)
    block = await client.context(question.text, budget_tokens=BUDGET_TOKENS, **scope, **moment)
    results = tuple(hit | {"ref": _ref(hit, refs)} for hit in answer["results"])
    ordered = is_ordered(question, [hit["ref"] for hit in results])
    return Judgement(conversation, question, results, ordered, is_right_in_block(question, block["text"]))


def _ref(hit: Json, refs: Mapping[str, str]) -> str:
    """Return the ref of the message that a hit is, or that it was drawn from; others stand for themselves."""
    id_ = hit["id"] if hit["tier"] == "sessions" else (hit["source"] or "").removeprefix("message:")
    return refs.get(id_, hit["id"])


def is_ordered(question: Question, found: Sequence[str]) -> bool:
    """Report whether a current message, or each of several answers, is found before an outdated one."""
    places = [found.index(ref) for ref in question.current if ref in found]
    wanted = len(question.current) if len(question.answers) > 1 else 1
    outdated = min((found.index(ref) for ref in question.outdated if ref in found), default=len(found))
    return len(places) >= wanted and min(places, default=outdated) < outdated


def is_right_in_block(question: Question, text: str) -> bool:
    """Report whether each answer is in the block, before the wrong value's first occurrence."""
    folded = text.casefold()
    places = [folded.find(answer.casefold()) for answer in question.answers]
    wrong = -1 if question.wrong is None else folded.find(question.wrong.casefold())
    return min(places) >= 0 and (wrong < 0 or max(places) < wrong)


def figures(judged: Sequence[Judgement]) -> Json:
    """Return the shares of right answers."""
    kinds = dict.fromkeys(item.conversation.kind for item in judged)
    halves = {half: [item for item in judged if item.conversation.number % 2 == (half == "odd")] for half in HALVES}
    return {
        **_by_time(judged),
        "by_kind": {kind: _by_time([item for item in judged if item.conversation.kind == kind]) for kind in kinds},
        "late": _by_time([item for item in judged if item.conversation.is_late]),
        "halves": {half: _by_time(items) for half, items in halves.items()},
    }


def _by_time(judged: Sequence[Judgement]) -> Json:
    now = [item for item in judged if item.question.as_of is None]
    as_of = [item for item in judged if item.question.as_of is not None]
    return {name: _shares(items) for name, items in ((NOW, now), (AS_OF, as_of)) if items}


def _shares(judged: Sequence[Judgement]) -> Json:
    return {
        "ordered": sum(item.is_ordered for item in judged) / len(judged),
        "block": sum(item.is_right_in_block for item in judged) / len(judged),
        "questions": len(judged),
    }


def tables(found: Json) -> tuple[Table, ...]:
    """Return the table of the figures."""
    title = (
        "Facts that change: the current statement first in the results, the right value first in the block, per cent"
    )
    shown = table(title, "conversations", "now", "ordered", "block", "as of", "ordered", "block")
    rows = {"all": found, **{f"{half} half": item for half, item in found["halves"].items()}, **found["by_kind"]}
    for name, item in {**rows, "told late": found["late"]}.items():
        shown.add_row(name.replace("_", " "), *_cells(item.get(NOW)), *_cells(item.get(AS_OF)))
    return (shown,)


def _cells(shares: Json | None) -> tuple[str, str, str]:
    if shares is None:
        return "", "", ""
    return str(shares["questions"]), f"{100 * shares['ordered']:.1f}", f"{100 * shares['block']:.1f}"


def _show_failures(judged: Sequence[Judgement]) -> None:
    for item in judged:
        wrong = {"results": item.is_ordered, "block": item.is_right_in_block}
        missed = " and ".join(part for part, is_right in wrong.items() if not is_right)
        if missed:
            stage(f"{item.conversation.name} {item.question.as_of or NOW}: {item.question.text} ({missed})")
