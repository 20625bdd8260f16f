import json
import re
import threading
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from deployments.api import document
from lamina.cli.commands import app as command_line
from lamina.cli.common import guarded
from lamina.cli.console import SafeConsole
from lamina.text.visible import show_controls

HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202egnp\u2066\x08\rX\U000e0041"
ROOT = Path(__file__).parents[2]
ID = str(UUID(int=7))
COMMANDS = [
    ["add", "text"],
    ["upload", "FILE"],
    ["search", "text"],
    ["context", "text"],
    ["memories", "show", ID],
    ["memories", "change", ID, "--set", "importance=0.9", "--set", "content=text"],
    ["memories", "delete", ID],
    ["receipts", "show", ID],
    ["receipts", "keys"],
    ["status"],
    ["audit"],
    ["caches", "show"],
    ["caches", "clear", "--everything"],
    ["caches", "purge"],
    ["jobs", "run", "dedup", "--no-wait"],
    ["jobs", "run", "dedup"],
    ["jobs", "list"],
    ["jobs", "show", ID],
    ["jobs", "undo", ID],
    ["jobs", "schedule"],
]


def obeyed(text: str) -> set[str]:
    """Characters of a text that a terminal may obey, apart from the line feed."""
    bidi = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    return {
        character
        for character in text
        if (unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} and character != "\n")
        or unicodedata.bidirectional(character) in bidi
    }


def answer_of(schema: Mapping[str, Any], name: str = "") -> Any:
    """An answer of a schema in which every free text is hostile."""
    for key in ("anyOf", "oneOf", "allOf"):
        schema = schema[key][0] if key in schema else schema
    if "$ref" in schema:
        schema = document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "properties" in schema or "additionalProperties" in schema:
        extra = schema.get("additionalProperties")
        texts = {HOSTILE: answer_of(extra)} if isinstance(extra, Mapping) else {}
        return texts | {key: answer_of(inner, key) for key, inner in schema.get("properties", {}).items()}
    if schema.get("type") == "array":
        return [answer_of(schema["items"])]
    if schema.get("type") == "string":
        return text_of(schema, name)
    return schema.get("const", {"integer": 1, "number": 0.5, "boolean": True}.get(str(schema.get("type"))))


def text_of(schema: Mapping[str, Any], name: str) -> str:
    if schema.get("format") == "date-time" or name.endswith("_at"):
        return "2026-11-29T09:00:00+00:00"
    usual: str = schema.get("enum", [{"state": "done", "id": ID}.get(name, HOSTILE)])[-1]
    return usual


class Hostile(BaseHTTPRequestHandler):
    """Answers every route of the document with hostile texts; with the status of a refusal, if the server says so."""

    def _answer(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(size)
        status, said = self.server.refusal or self._said(json.loads(body) if body else None)  # type: ignore[attr-defined]
        data = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if status < 400 else "application/problem+json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _said(self, body: Any) -> tuple[int, Any]:
        path = self.path.partition("?")[0]
        for template, calls in document()["paths"].items():
            call = calls.get(self.command.lower())
            if call and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
                status = next(code for code in call["responses"] if code.startswith("2"))
                content = call["responses"][status].get("content", {})
                return int(status), answer_of(content.get("application/json", {}).get("schema", {}))
        return 404, {"detail": HOSTILE}

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - http.server's names

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Hostile) as server:
        server.refusal = None  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()


@pytest.fixture
def upload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "400")
    (tmp_path / "a.txt").write_text("text")
    return tmp_path / "a.txt"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("is_refused", [False, True])
def test_no_command_prints_what_a_terminal_obeys(
    server: ThreadingHTTPServer,
    command: list[str],
    is_refused: bool,
    upload: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if is_refused:
        server.refusal = (422, {"title": HOSTILE, "status": 422, "detail": HOSTILE})  # type: ignore[attr-defined]
    arguments = [str(upload) if word == "FILE" else word for word in command]
    arguments += ["--url", f"http://127.0.0.1:{server.server_port}"]
    arguments += [] if command == ["status"] else ["--key", "key"]

    with suppress(SystemExit):
        guarded(lambda: command_line(arguments))  # type: ignore[arg-type]

    said = "".join(capsys.readouterr())
    assert obeyed(said) == set()
    assert said.strip()
    if is_refused or command[0] in {"search", "context", "status"} or command[:2] == ["jobs", "show"]:
        assert r"\x1b[2J" in said


def test_every_command_that_calls_the_service_is_tried() -> None:
    import typer

    def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        for name, inner in getattr(command, "commands", {}).items():
            yield from leaves(inner, (*path, name))
        if any("--url" in option.opts for option in command.params):
            yield path

    tried = {tuple(command) for command in COMMANDS}
    calling = list(leaves(typer.main.get_command(command_line)))
    assert len(calling) > 10
    # Of these, one goes on until it is ended, one speaks a protocol, and one shows what it wrote itself.
    others = {("watch-folder",), ("mcp",), ("connect",)}
    assert {path for path in calling if not any(it[: len(path)] == path for it in tried)} == others


@pytest.mark.parametrize(
    "code", [*range(32), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x2070), 0xD800]
)
def test_every_control_is_written_out(code: int) -> None:
    shown = show_controls(f"a{chr(code)}b")

    assert shown == f"a{chr(code)}b" if chr(code) in "\t\n" else f"{code:02x}" in shown
    assert obeyed(shown) <= {"\t"}


@pytest.mark.parametrize(
    "text", ["שלום\u200f!", "\u0645\u06cc\u200c\u062e", "👩\u200d👧", "naïve \u4f60\u597d", "a\\x1b", "one\r\ntwo"]
)
def test_ordinary_texts_are_shown_as_they_are(text: str) -> None:
    assert show_controls(text) == text.replace("\r\n", "\n")


def test_no_command_has_a_console_of_its_own() -> None:
    outputs = re.compile(r"[^e]Console\(|\bConsole\(\)|\b(?:typer|click)\.echo\(")
    files = [path for name in ("lamina", "jobs", "benchmarks") for path in (ROOT / name).rglob("*.py")]

    assert [path for path in files if outputs.search(path.read_text())] == []


def test_a_log_line_is_written_out_too(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.text import Text

    SafeConsole(width=300).print(Text(HOSTILE), [HOSTILE], {"a": HOSTILE})

    assert obeyed(capsys.readouterr().out) == set()
