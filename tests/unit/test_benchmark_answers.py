import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import pytest

from benchmarks.answer_sets import NOT_MENTIONED, AnswerableConversation, ExpectedAnswer, load_answers
from benchmarks.answers import AnswerOptions, Model, ResultFile, prompt, run, spread, whole_conversation
from lamina.core.tiers import PROJECTIONS
from lamina.errors import Misconfigured

Json = dict[str, Any]
OPTIONS = AnswerOptions(concurrency=2, tries=3, backoff_s=0.01, timeout_s=60.0)
HANGS_S = 600.0


class Endpoint:
    """A chat endpoint that misbehaves as a script says, and then answers from what the prompt holds."""

    def __init__(self, script: Sequence[str]) -> None:
        self.script = list(script)
        self.prompts: list[str] = []
        self.most_in_flight = 0
        self.in_flight = 0
        self.lock = Lock()
        self.is_over = Event()

    @contextmanager
    def serving(self) -> Iterator[str]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, sent = endpoint.answer(body["messages"][0]["content"])
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            self.is_over.set()
            server.shutdown()
            server.server_close()
            thread.join()

    def answer(self, asked: str) -> tuple[int, bytes]:
        with self.lock:
            self.prompts.append(asked)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            act = self.script.pop(0) if self.script else "answers"
        try:
            match act:
                case "errs":
                    return 500, b'{"error": {"message": "no"}}'
                case "hangs":
                    self.is_over.wait(HANGS_S)
                    return 500, b"{}"
                case "garbage":
                    return 200, b"<html>not json"
                case "nothing":
                    return 200, b'{"choices": []}'
            return 200, json.dumps(completion(reply_to(asked))).encode()
        finally:
            with self.lock:
                self.in_flight -= 1


def reply_to(asked: str) -> str:
    """Answer where the prompt holds the answer; judge by whether the expected answer is there."""
    if asked.startswith("You mark"):
        expected, given = (line.split(": ", 1)[1] for line in asked.splitlines() if line.startswith(("Exp", "Ans")))
        return "Yes." if expected in given else "no"
    return "It is Paris" if "Paris" in asked else NOT_MENTIONED


def completion(text: str) -> Json:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 60, "completion_tokens": 40, "total_tokens": 100}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": usage,
    }


class Memory:
    """Stands for Lamina: its block is all that was recorded."""

    def __init__(self) -> None:
        self.said: list[str] = []

    async def record(self, messages: Sequence[Json], **_: Any) -> Json:
        self.said += [message["content"] for message in messages]
        return {}

    async def context(self, _query: str, **_: Any) -> Json:
        return {"text": "\n".join(self.said)}

    async def ready(self) -> Json:
        return {"outbox": {name: {"pending": 0} for name in PROJECTIONS}}


def conversation() -> AnswerableConversation:
    said = [
        {"role": "user", "content": text, "occurred_at": "2026-05-01T10:00:00+00:00"} for text in ("I live in Paris",)
    ]
    questions = (
        ExpectedAnswer("c/0", "single", "Where do I live?", "Paris"),
        ExpectedAnswer("c/1", "absent", "What is my dog called?", NOT_MENTIONED),
    )
    return AnswerableConversation("c", (("s", tuple(said)),), questions, datetime(2026, 5, 2, tzinfo=UTC))


async def measured(url: str, file: Path, options: AnswerOptions = OPTIONS) -> Json:
    answering, judging = Model(url, "m", options), Model(url, "j", options)
    try:
        client: Any = Memory()
        return await run(client, [conversation()], (answering, judging), ResultFile(file), options)
    finally:
        await answering.close()
        await judging.close()


async def test_answers_are_judged_by_what_the_model_was_shown_with_their_tokens(tmp_path: Path) -> None:
    endpoint = Endpoint([])
    with endpoint.serving() as url:
        found = await measured(url, tmp_path / "answers.jsonl")

    assert {mode: found[mode]["by_kind"] for mode in ("memory", "whole", "none")} == {
        "memory": {"single": 1, "absent": 0},
        "whole": {"single": 1, "absent": 0},
        "none": {"single": 0, "absent": 1},
    }
    assert {found[mode]["tokens_per_question"] for mode in ("memory", "whole", "none")} == {100}
    assert found["errors"] == {}
    assert endpoint.most_in_flight <= OPTIONS.concurrency


async def test_errors_of_the_endpoint_are_counted_and_tried_again(tmp_path: Path) -> None:
    endpoint = Endpoint(["errs", "garbage", "nothing"])
    with endpoint.serving() as url:
        found = await measured(url, tmp_path / "answers.jsonl")

    assert [found[mode]["questions"] + found[mode]["failed"] for mode in ("memory", "whole", "none")] == [2, 2, 2]
    assert found["errors"] == {"500": 1, "no completion": 2}


async def test_a_call_that_hangs_is_given_up_and_tried_again(tmp_path: Path) -> None:
    endpoint = Endpoint(["hangs"])
    with endpoint.serving() as url:
        found = await measured(url, tmp_path / "answers.jsonl", replace(OPTIONS, timeout_s=1.0))

    assert [found[mode]["questions"] + found[mode]["failed"] for mode in ("memory", "whole", "none")] == [2, 2, 2]
    assert found["errors"].keys() == {"timeout"}


async def test_a_question_whose_tries_all_fail_is_asked_again_by_the_next_run_and_no_other(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    broken = Endpoint(["errs"] * 100)
    with broken.serving() as url:
        nothing = await measured(url, file)
    assert [nothing[mode]["failed"] for mode in ("memory", "whole", "none")] == [2, 2, 2]
    assert nothing["memory"]["right"] is None

    endpoint = Endpoint([])
    with endpoint.serving() as url:
        first = await measured(url, file)
        asked = len(endpoint.prompts)
        again = await measured(url, file)

    assert len(endpoint.prompts) == asked
    assert again == first
    assert again["whole"]["questions"] == 2


async def test_a_line_that_a_killed_run_left_half_written_is_ignored_and_asked_again(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    with Endpoint([]).serving() as url:
        whole = await measured(url, file)
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(lines[:-1]) + lines[-1][:20])
        endpoint = Endpoint([])
        with endpoint.serving() as other:
            resumed = await measured(other, file)

    assert len(endpoint.prompts) == 2  # one answer and its judgement
    assert resumed == whole
    assert len(ResultFile(file).found) == 6


async def test_answers_of_another_model_are_not_counted(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    with Endpoint([]).serving() as url:
        await measured(url, file)
        of_another = file.read_text().replace('"model": "m"', '"model": "other"')
        file.write_text(of_another)
        endpoint = Endpoint([])
        with endpoint.serving() as again:
            found = await measured(again, file)

    assert len(endpoint.prompts) == 12
    assert found["memory"]["questions"] == 2


def test_of_a_conversation_longer_than_the_window_the_end_is_shown() -> None:
    said = tuple(
        {"role": "user", "content": f"number {place}", "occurred_at": "2026-05-01T10:00:00+00:00"}
        for place in range(100)
    )
    long = AnswerableConversation("c", (("s", said),), (), datetime(2026, 5, 2, tzinfo=UTC))

    shown = whole_conversation(long, 100).splitlines()

    assert shown[-1].endswith("number 99")
    assert 0 < len(shown) < 100


def test_what_stands_in_a_conversation_is_no_field_of_a_prompt() -> None:
    asked = prompt(
        "answer", context="costs $question and ${today}, {context}", today="2026-05-01", question="How much?"
    )

    assert "costs $question and ${today}, {context}" in asked


def test_a_few_questions_are_spread_over_all() -> None:
    assert [question.id for item in spread([conversation()], 1) for question in item.questions] == ["c/0"]
    assert spread([conversation()], None) == (conversation(),)


def test_a_folder_without_a_set_is_refused_with_the_files_that_would_be_one(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"chats\.jsonl"):
        load_answers(tmp_path)


def test_a_longmemeval_question_brings_its_own_conversations(tmp_path: Path) -> None:
    item = {
        "question_id": "q1_abs",
        "question_type": "temporal-reasoning",
        "question": "When did I leave?",
        "answer": "You did not say.",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_dates": ["2023/05/20 (Sat) 02:21"],
        "haystack_sessions": [[{"role": "user", "content": "hello"}, {"role": "assistant", "content": " "}]],
    }
    (tmp_path / "longmemeval_s.json").write_text(json.dumps([item]))

    (found,) = load_answers(tmp_path)

    assert found.questions[0].expected == NOT_MENTIONED
    assert [message["content"] for _, messages in found.sessions for message in messages] == ["hello"]
    assert found.asked_at == datetime(2023, 5, 30, 23, 40, tzinfo=UTC)
