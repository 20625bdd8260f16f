"""Questions answered by a model from Lamina's block, from the whole conversation, and from nothing.

Every answer is a line of a file, written when it is judged: a run that was killed goes on where it stopped.
"""

import asyncio
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.table import Table

from benchmarks.answer_sets import AnswerableConversation, ExpectedAnswer, load_answers
from benchmarks.options import KeyOption, UrlOption
from benchmarks.report import publish, stage, table
from benchmarks.service import Endpoint, service
from benchmarks.timing import run_all, until_indexed
from lamina.client import AsyncClient
from lamina.host.extras import needing
from lamina.text.words import estimated_tokens

PROMPTS = Path(__file__).with_name("prompts")
MODES = ("memory", "whole", "none")
MESSAGES_PER_REQUEST = 16
MAX_BACKOFF_S = 30.0
ANSWER_TOKENS = 512

Json = dict[str, Any]
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """How questions are answered.

    Args:
        budget_tokens: Of Lamina's block.
        window_tokens: Of the whole conversation; of a longer one, its end is shown.
        concurrency: Questions in flight.
        tries: Of each call of a model.
        backoff_s: Wait before the second try; it doubles.
        timeout_s: Of a call.
    """

    budget_tokens: int = 2000
    window_tokens: int = 100_000
    concurrency: int = 4
    tries: int = 4
    backoff_s: float = 1.0
    timeout_s: float = 120.0


class NoAnswer(Exception):
    """Every try of a call failed; the question is asked again in the next run."""


@dataclass
class Model:
    """A chat model behind an OpenAI-compatible endpoint, which may fail.

    Args:
        endpoint: Its base URL.
        name: Of the model.
        options: How often, and how long.
        key: Of the endpoint.
        errors: Failed tries by kind.
    """

    endpoint: str
    name: str
    options: AnswerOptions
    key: str = "none"
    errors: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        with needing("llm", "questions are answered by a model"):
            from openai import AsyncOpenAI  # noqa: PLC0415 - 0.6 s that other benchmarks need not pay
        self._client = AsyncOpenAI(
            base_url=self.endpoint, api_key=self.key, timeout=self.options.timeout_s, max_retries=0
        )

    async def ask(self, prompt: str, accepted: Sequence[str] = ()) -> tuple[str, int]:
        """Return the answer, and the tokens of the call both ways.

        Args:
            prompt: What is asked.
            accepted: Words of which the answer must begin with one, if any are given.

        Raises:
            NoAnswer: If every try failed.
        """
        for attempt in range(self.options.tries):
            if attempt:
                await asyncio.sleep(min(MAX_BACKOFF_S, self.options.backoff_s * 2 ** (attempt - 1)))
            try:
                # The client's own timeout restarts with every byte.
                async with asyncio.timeout(self.options.timeout_s):
                    text, tokens = await self._complete(prompt)
            except Exception as error:  # noqa: BLE001 - whatever the endpoint does is counted and tried again
                self.errors[_kind_of(error)] += 1
                continue
            if accepted and not text.lower().startswith(tuple(accepted)):
                self.errors["unclear"] += 1
                continue
            return text, tokens
        raise NoAnswer

    async def _complete(self, prompt: str) -> tuple[str, int]:
        completion = await self._client.chat.completions.create(
            model=self.name,
            messages=[{"role": "user", "content": prompt}],
            temperature=0,
            max_tokens=ANSWER_TOKENS,
        )
        text = completion.choices[0].message.content
        if not isinstance(text, str) or not text.strip():
            raise ValueError("empty")
        total = getattr(completion.usage, "total_tokens", None)
        return text.strip(), total if isinstance(total, int) else estimated_tokens(prompt) + estimated_tokens(text)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def _kind_of(error: Exception) -> str:
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return str(status)
    name = type(error).__name__
    if "Timeout" in name:
        return "timeout"
    return "connection" if "Connection" in name else "no completion"


class ResultFile:
    """The judged answers, a JSON object a line, by question and mode.

    Args:
        path: Where they lie; what a killed run left half-written is ignored.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.found: dict[Key, Json] = {}
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        for line in text.splitlines():
            if (item := _result(line)) is not None:
                self.found[item["id"], item["mode"]] = item
        self._is_open = bool(text) and not text.endswith("\n")

    def add(self, item: Json) -> None:
        """Append an answer."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(("\n" if self._is_open else "") + json.dumps(item, ensure_ascii=False) + "\n")
        self._is_open = False
        self.found[item["id"], item["mode"]] = item


def _result(line: str) -> Json | None:
    try:
        item = json.loads(line)
    except ValueError:
        return None
    is_whole = isinstance(item, dict) and {"id", "mode", "model", "judge", "right", "tokens"} <= item.keys()
    return item if is_whole else None


def measure(
    data: Annotated[Path, typer.Option("--data", help="Folder of the chats, of LoCoMo or of LongMemEval.")],
    endpoint: Annotated[str, typer.Option(help="Base URL of an OpenAI-compatible endpoint, with its /v1.")],
    model: Annotated[str, typer.Option(help="Model that answers.")],
    judge_endpoint: Annotated[str | None, typer.Option(help="Endpoint of the judge. Default: the same.")] = None,
    judge_model: Annotated[str | None, typer.Option(help="Model that judges. Default: the same.")] = None,
    results: Annotated[
        Path, typer.Option(help="File of the judged answers; those that are there already are not asked again.")
    ] = Path("answers.jsonl"),
    questions: Annotated[int | None, typer.Option(min=1, help="Only so many, spread over all.")] = None,
    budget_tokens: Annotated[int, typer.Option(min=16, help="Of Lamina's block.")] = 2000,
    window_tokens: Annotated[
        int, typer.Option(min=100, help="Of the whole conversation; of a longer one the end is shown.")
    ] = 100_000,
    concurrency: Annotated[int, typer.Option(min=1, help="Questions in flight.")] = 4,
    timeout_s: Annotated[float, typer.Option(min=0.1, help="Of a call of a model.")] = 120.0,
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Let a model answer from Lamina's context block, from the whole conversation, and from nothing.

    The endpoints' keys are read from OPENAI_API_KEY and JUDGE_API_KEY.
    """
    chosen = spread(load_answers(data), questions)
    options = AnswerOptions(budget_tokens, window_tokens, concurrency, timeout_s=timeout_s)
    own_key = os.environ.get("OPENAI_API_KEY", "none")
    answering = Model(endpoint, model, options, own_key)
    judging = Model(judge_endpoint or endpoint, judge_model or model, options, os.environ.get("JUDGE_API_KEY", own_key))
    with service(url, key) as lamina:
        found = asyncio.run(_measure(lamina, chosen, (answering, judging), ResultFile(results), options))
    publish(tables(found, options), {"answers": found})


async def _measure(
    lamina: Endpoint,
    chosen: Sequence[AnswerableConversation],
    models: tuple[Model, Model],
    results: ResultFile,
    options: AnswerOptions,
) -> Json:
    try:
        async with AsyncClient(*lamina) as client:
            return await run(client, chosen, models, results, options)
    finally:
        for model in models:
            await model.close()


def spread(
    conversations: Sequence[AnswerableConversation], questions: int | None
) -> tuple[AnswerableConversation, ...]:
    """Return the conversations with so many of their questions, evenly spread."""
    ids = [question.id for item in conversations for question in item.questions]
    if questions is None or questions >= len(ids):
        return tuple(conversations)
    kept = {ids[place * len(ids) // questions] for place in range(questions)}
    chosen = (
        AnswerableConversation(
            item.name, item.sessions, tuple(one for one in item.questions if one.id in kept), item.asked_at
        )
        for item in conversations
    )
    return tuple(item for item in chosen if item.questions)


async def run(
    client: AsyncClient,
    conversations: Sequence[AnswerableConversation],
    models: tuple[Model, Model],
    results: ResultFile,
    options: AnswerOptions,
) -> Json:
    """Answer and judge the questions that the file lacks, and return the figures of all."""
    answering, judging = models
    names = (answering.name, judging.name)
    pending = [
        (item, question, mode)
        for item in conversations
        for question in item.questions
        for mode in MODES
        if not _is_of(results.found.get((question.id, mode)), names)
    ]
    stage(f"{len(pending)} answers to get")
    prefix = f"answers-{uuid4().hex[:8]}"
    remembered = {item.name: item for item, _, mode in pending if mode == "memory"}
    await run_all(
        remembered.values(), lambda item: _write(client, item, f"{prefix}-{item.name}"), concurrency=options.concurrency
    )
    if remembered:
        stage(f"{len(remembered)} conversations written, indexed {await until_indexed(client):.1f} s later")

    async def answer(work: tuple[AnswerableConversation, ExpectedAnswer, str]) -> bool:
        item, question, mode = work
        context = await _context(client, item, question, mode, prefix, options)
        try:
            result = await _judged(models, item, question, context)
        except NoAnswer:
            return False
        results.add({"id": question.id, "mode": mode, "kind": question.kind, **result})
        return True

    done = await run_all(pending, answer, concurrency=options.concurrency)
    failed = Counter(mode for (_, _, mode), is_done in zip(pending, done, strict=True) if not is_done)
    asked = {question.id for item in conversations for question in item.questions}
    counted = [item for (id_, _), item in results.found.items() if id_ in asked and _is_of(item, names)]
    return figures(counted, failed, answering.errors + judging.errors)


def _is_of(item: Json | None, names: tuple[str, str]) -> bool:
    return item is not None and (item["model"], item["judge"]) == names


async def _write(client: AsyncClient, item: AnswerableConversation, workspace: str) -> None:
    for name, messages in item.sessions:
        for start in range(0, len(messages), MESSAGES_PER_REQUEST):
            await client.record(messages[start : start + MESSAGES_PER_REQUEST], workspace=workspace, session=name)


async def _context(
    client: AsyncClient,
    item: AnswerableConversation,
    question: ExpectedAnswer,
    mode: str,
    prefix: str,
    options: AnswerOptions,
) -> str:
    match mode:
        case "memory":
            block = await client.context(
                question.text,
                workspace=f"{prefix}-{item.name}",
                budget_tokens=options.budget_tokens,
                as_of=item.asked_at.isoformat(),
            )
            return str(block["text"])
        case "whole":
            return whole_conversation(item, options.window_tokens)
        case _:
            return ""


def whole_conversation(item: AnswerableConversation, window_tokens: int) -> str:
    """Return a conversation as text, of one that is longer than the window its end."""
    lines = [
        f"[{message['occurred_at'][:16]}] {message.get('name') or message['role']}: {message['content']}"
        for _, messages in item.sessions
        for message in messages
    ]
    kept: list[str] = []
    left = window_tokens
    for line in reversed(lines):
        left -= estimated_tokens(line)
        if left < 0:
            break
        kept.append(line)
    return "\n".join(reversed(kept))


async def _judged(
    models: tuple[Model, Model], item: AnswerableConversation, question: ExpectedAnswer, context: str
) -> Json:
    answering, judging = models
    today = item.asked_at.date().isoformat()
    text, tokens = await answering.ask(prompt("answer", context=context, today=today, question=question.text))
    asked = prompt("judge", question=question.text, expected=question.expected, answer=text)
    verdict, _ = await judging.ask(asked, accepted=("yes", "no"))
    return {
        "model": answering.name,
        "judge": judging.name,
        "answer": text,
        "right": verdict.lower().startswith("yes"),
        "tokens": tokens,
    }


def prompt(name: str, **fields: str) -> str:
    """Return the text of a prompt with its fields; text within a field is never read as one."""
    return Template((PROMPTS / f"{name}.txt").read_text(encoding="utf-8")).substitute(fields)


def figures(answers: Iterable[Json], failed: Mapping[str, int], errors: Mapping[str, int]) -> Json:
    """Return the share of right answers and the tokens a question, by the material that the model was shown."""
    of_modes: defaultdict[str, list[Json]] = defaultdict(list)
    for item in answers:
        of_modes[item["mode"]].append(item)
    return {mode: _of_mode(of_modes[mode], failed.get(mode, 0)) for mode in MODES} | {"errors": dict(errors)}


def _of_mode(answers: Sequence[Json], failed: int) -> Json:
    kinds = sorted({item.get("kind", "") for item in answers})
    return {
        "right": _share(answers),
        "tokens_per_question": sum(item["tokens"] for item in answers) / len(answers) if answers else None,
        "questions": len(answers),
        "failed": failed,
        "by_kind": {kind: _share([item for item in answers if item.get("kind", "") == kind]) for kind in kinds},
    }


def _share(answers: Sequence[Json]) -> float | None:
    return sum(bool(item["right"]) for item in answers) / len(answers) if answers else None


def tables(found: Json, options: AnswerOptions) -> tuple[Table, ...]:
    """Return the table of the figures."""
    shown = table("Right answers", "the model is shown", "questions", "right, per cent", "tokens a question", "failed")
    titles = {
        "memory": f"Lamina's block, {options.budget_tokens} tokens",
        "whole": f"the conversation, its last {options.window_tokens} tokens",
        "none": "nothing",
    }
    for mode, title in titles.items():
        item = found[mode]
        right = "" if item["right"] is None else f"{100 * item['right']:.1f}"
        tokens = "" if item["tokens_per_question"] is None else f"{item['tokens_per_question']:.0f}"
        shown.add_row(title, str(item["questions"]), right, tokens, str(item["failed"]))
    failures = table("Failed tries of the endpoints", "kind", "tries")
    for kind, tries in sorted(found["errors"].items()):
        failures.add_row(kind, str(tries))
    return (shown, failures) if found["errors"] else (shown,)
