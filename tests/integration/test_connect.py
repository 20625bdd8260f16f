"""`lamina connect` in homes of the tests' own, and the hooks that it writes, run as a coding agent runs them."""

import asyncio
import json
import os
import shlex
import stat
import subprocess
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lamina.cli import commands
from lamina.text.jsonc import parsed
from tests.support.application import Application
from tests.support.ingress import uvicorn_of

AGENTS = ("claude-code", "codex", "opencode", "cursor")
PATIENCE_S = 60.0
# The hook gives up before its process is killed, and later than it does by itself: the machine may be busy.
HOOK_DEADLINE_S = 50
MINE = {
    ".claude.json": '{"numStartups": 7, "mcpServers": {"mine": {"command": "x"}}}',
    ".claude/settings.json": '{\n  "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]},\n"a": 1}\n',
    ".codex/config.toml": '# mine\nmodel = "gpt-5"  # best\n\n[mcp_servers.mine]\ncommand = "x"',
    ".codex/hooks.json": "{}\n",
    ".config/opencode/opencode.jsonc": '{\n  // mine\n  "theme": "dark", /* yes */\n}\n',
    ".cursor/mcp.json": '{"mcpServers":{"mine":{"url":"https://example.com"}}}',
    ".cursor/hooks.json": '{"version": 1, "hooks": {}}',
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def fill(home: Path) -> dict[str, bytes]:
    for name, text in MINE.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(text.encode())
    return files(home)


def files(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}


def connect(*arguments: str) -> str:
    done = CliRunner().invoke(commands.app, ["connect", *arguments], catch_exceptions=True)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_is_connected_once_and_taken_back_to_the_byte(home: Path, agent: str) -> None:
    before = fill(home)

    connect(agent, "--url", "http://127.0.0.1:1", "--workspace", "harbour town", "--user", "ann")
    connected = files(home)
    again = connect(agent, "--url", "http://127.0.0.1:1", "--workspace", "harbour town", "--user", "ann")
    same = files(home)
    connect(agent, "--remove")

    assert connected != before
    assert same == connected
    assert "written" not in again
    assert {name for name in connected if name.endswith(".lamina-backup")}
    for name in connected:
        if name.endswith(".lamina-backup"):
            assert connected[name] == before[name.removesuffix(".lamina-backup")]
    # Written for other options, it is not what `--remove` alone would write: the entries alone are taken out.
    assert {name: parsed(text.decode()) for name, text in files(home).items() if name.endswith(".json")}.keys() >= {
        name for name in before if name.endswith(".json")
    }
    connect(agent, "--remove", "--url", "http://127.0.0.1:1", "--workspace", "harbour town", "--user", "ann")
    assert not any("lamina" in text.decode() for name, text in files(home).items() if "backup" not in name)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("is_new", [False, True])
def test_the_same_call_with_remove_leaves_every_byte_as_it_was(home: Path, agent: str, *, is_new: bool) -> None:
    before = files(home) if is_new else fill(home)

    connect(agent, "--data-dir", str(home / "data"))
    connect(agent, "--data-dir", str(home / "data"), "--remove")

    assert files(home) == before
    assert "unchanged" in connect(agent, "--data-dir", str(home / "data"), "--remove")


@pytest.mark.parametrize("agent", AGENTS)
def test_a_dry_run_changes_nothing(home: Path, agent: str) -> None:
    before = fill(home)

    told = connect(agent, "--dry-run")

    assert files(home) == before
    assert told.count("would be written") == 2


@pytest.mark.parametrize(
    ("agent", "name", "text"),
    [
        ("claude-code", ".claude.json", '{"a": '),
        ("claude-code", ".claude/settings.json", '{"hooks": []}'),
        ("claude-code", ".claude/settings.json", '{"hooks": {"Stop": 7}}'),
        ("codex", ".codex/config.toml", "a = = 1"),
        ("codex", ".codex/config.toml", '[mcp_servers.lamina]\ncommand = "mine"\n'),
        ("codex", ".codex/config.toml", "mcp_servers = {}\n"),
        ("opencode", ".config/opencode/opencode.json", "[]"),
        ("cursor", ".cursor/mcp.json", "\xff"),
    ],
)
def test_a_file_that_is_broken_or_of_others_is_told_and_nothing_changes(
    home: Path, agent: str, name: str, text: str
) -> None:
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    (home / name).write_bytes(text.encode("latin-1"))
    before = files(home)

    with pytest.raises(Exception, match=Path(name).name):
        connect(agent)

    assert files(home) == before


def test_new_files_and_backups_are_their_owners_alone_and_a_link_stays_one(home: Path) -> None:
    real = home / "dotfiles.json"
    real.write_text('{"mcpServers": {}}')
    real.chmod(0o640)
    (home / ".claude.json").symlink_to(real)

    connect("claude-code")

    assert (home / ".claude.json").is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert "lamina" in json.loads(real.read_text())["mcpServers"]
    assert stat.S_IMODE((home / "dotfiles.json.lamina-backup").stat().st_mode) == 0o600
    assert stat.S_IMODE((home / ".claude/settings.json").stat().st_mode) == 0o600


def test_what_others_wrote_since_stays(home: Path) -> None:
    fill(home)
    connect("codex")
    path = home / ".codex/config.toml"
    path.write_text(path.read_text() + '\n[profiles.x]\nmodel = "y"\n')

    connect("codex", "--remove")

    left = tomllib.loads(path.read_text())
    assert left["profiles"] == {"x": {"model": "y"}}
    assert left["mcp_servers"] == {"mine": {"command": "x"}}
    assert "# mine" in path.read_text()


@pytest.fixture
async def service(application: Application) -> AsyncIterator[str]:
    async with uvicorn_of(application.api, application.services.settings.serve.front_door) as port:
        yield f"http://127.0.0.1:{port}"


async def hook(command: str, event: Any, key: str = "") -> tuple[int, str]:
    """Run a hook as an agent does, and return its exit status and what it printed."""
    environment = {**os.environ, "LAMINA_API_KEY": key}
    body = event if isinstance(event, bytes) else json.dumps(event).encode()
    done = await asyncio.to_thread(
        subprocess.run,
        [*shlex.split(command), "--deadline", str(HOOK_DEADLINE_S)],
        input=body,
        env=environment,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stdout.decode()


def commands_of(home: Path, name: str) -> dict[str, str]:
    hooks = json.loads((home / name).read_text())["hooks"]
    own = {event: items[-1] for event, items in hooks.items()}
    return {event: item["hooks"][0]["command"] if "hooks" in item else item["command"] for event, item in own.items()}


async def test_the_hooks_recall_on_a_prompt_and_record_on_a_stop(
    home: Path, application: Application, service: str
) -> None:
    connect("claude-code", "--url", service, "--workspace", "harbour")
    commands = commands_of(home, ".claude/settings.json")
    transcript = home / "transcript.jsonl"
    lines: list[Any] = [
        {"type": "user", "uuid": "u0", "message": {"role": "user", "content": "Earlier."}},
        {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "The Marlin gets berth seven."}},
        {"type": "assistant", "uuid": "a1", "message": {"role": "assistant", "content": [{"type": "tool_use"}]}},
        {
            "type": "assistant",
            "uuid": "a2",
            "message": {"role": "assistant", "content": [{"type": "text", "text": "Ok."}]},
        },
    ]
    transcript.write_text("broken\n" + "".join(f"{json.dumps(line)}\n" for line in lines))
    stop = {"session_id": "monday", "transcript_path": str(transcript), "hook_event_name": "Stop"}

    recorded = [await hook(commands["Stop"], stop, application.key) for _ in range(2)]
    await application.indexed()
    asked = {
        "session_id": "friday",
        "prompt": "Which berth does the Marlin have?",
        "hook_event_name": "UserPromptSubmit",
    }
    status, said = await hook(commands["UserPromptSubmit"], asked, application.key)

    read = await application.client().get("/v1/sessions/monday/messages", params={"workspace": "harbour"})
    assert recorded == [(0, "")] * 2
    assert [item["content"] for item in read.json()["messages"]] == ["The Marlin gets berth seven.", "Ok."]
    assert status == 0
    output = json.loads(said)["hookSpecificOutput"]
    assert output["hookEventName"] == "UserPromptSubmit"
    assert "The Marlin gets berth seven." in output["additionalContext"]


async def test_cursor_records_what_is_said_and_recalls_when_a_session_begins(
    home: Path, application: Application, service: str
) -> None:
    connect("cursor", "--url", service, "--workspace", "harbour")
    commands = commands_of(home, ".cursor/hooks.json")
    said = {"conversation_id": "c", "generation_id": "g"}

    await hook(commands["beforeSubmitPrompt"], {**said, "prompt": "The Marlin gets berth seven."}, application.key)
    await hook(commands["afterAgentResponse"], {**said, "text": "Ok."}, application.key)
    await application.indexed()
    begins = {"session_id": "d", "workspace_roots": ["/home/ann/Marlin"]}
    status, printed = await hook(commands["sessionStart"], begins, application.key)

    assert status == 0
    assert "The Marlin gets berth seven." in json.loads(printed)["additional_context"]


@pytest.mark.parametrize("event", [b"", b"{", b"[]", b"\xff", {"prompt": 7}, {"session_id": "s", "prompt": "x"}])
async def test_a_service_that_is_away_or_an_event_that_is_none_never_stops_the_agent(home: Path, event: Any) -> None:
    connect("codex", "--url", "http://127.0.0.1:9")
    commands = commands_of(home, ".codex/hooks.json")

    assert await hook(commands["UserPromptSubmit"], event) == (0, "")
    assert await hook(commands["Stop"], event) == (0, "")
