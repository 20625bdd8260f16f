"""`lamina connect` in homes of the tests' own, and the hooks that it writes, run as a coding agent runs them."""

import asyncio
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lamina.cli import commands
from lamina.cli import hook as hook_room
from lamina.cli.hook import DEADLINES_S, HOOK_TIMEOUT_S, HookVerb, turn_of
from lamina.cli.hook import app as hook_app
from lamina.errors import InvalidInput
from lamina.text.jsonc import parsed
from lamina.text.turn_parts import fitting_id
from tests.support.application import Application
from tests.support.ingress import uvicorn_of

AGENTS = ("claude-code", "codex", "opencode", "cursor")
PATIENCE_S = 60.0
MINE = {
    ".claude.json": '{"numStartups": 7, "mcpServers": {"mine": {"command": "x"}}}',
    ".claude/settings.json": '{\n  "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]},\n"a": 1}\n',
    ".codex/config.toml": '# mine\nmodel = "gpt-5"  # best\n\n[mcp_servers.mine]\ncommand = "x"',
    ".codex/hooks.json": "{}\n",
    ".config/opencode/opencode.jsonc": '{\n  // mine\n  "theme": "dark", /* yes */\n}\n',
    ".cursor/mcp.json": '{"mcpServers":{"mine":{"url":"https://example.com"}}}',
    ".cursor/hooks.json": '{"version": 1, "hooks": {}}',
}
HAND_WRITTEN = '{"command": "lamina", "args": ["mcp", "--workspace", "a"], "env": {"LAMINA_API_KEY": "mine"}}'
HAND_TOML = '[mcp_servers.lamina]\nurl = "http://127.0.0.1:8000/mcp"\n'
A, B = (("--url", "http://127.0.0.1:1", "--user", "ann"), ("--url", "http://127.0.0.1:2", "--workspace", "b"))


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
def test_the_options_say_which_service_an_agent_gets_and_else_the_environment(
    home: Path, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINA_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("LAMINA_API_KEY", "lamina_elsewhere")

    said = connect(agent, "--data-dir", str(home / "data"))
    of_options = b"".join(files(home).values()).decode()
    said_of_environment = connect(agent)
    of_environment = b"".join(files(home).values()).decode()
    said_with_key = connect(agent, "--key-file", str(home / "key"))
    with_key = b"".join(files(home).values()).decode()

    assert of_options.count(str(home / "data")) == of_environment.count("http://127.0.0.1:9") > 1
    assert "http://127.0.0.1:9" not in of_options
    assert with_key.count(str(home / "key")) == with_key.count("http://127.0.0.1:9")
    assert "no --key-file: http://127.0.0.1:9 gets LAMINA_API_KEY" in said_of_environment
    assert "no --key-file" not in said + said_with_key


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
        ("codex", ".codex/config.toml", f"# >>> lamina connect\n{HAND_TOML}# <<< lamina connect\n"),
        ("opencode", ".config/opencode/opencode.json", "[]"),
        ("opencode", ".config/opencode/opencode.json", f'{{"mcp": {{"lamina": {HAND_WRITTEN}}}}}'),
        ("opencode", ".config/opencode/plugins/lamina.js", "export const Mine = 1\n"),
        ("claude-code", ".claude.json", f'{{"mcpServers": {{"lamina": {HAND_WRITTEN}}}}}'),
        ("claude-code", ".claude.json", '{"mcpServers": {"lamina": null}}'),
        ("cursor", ".cursor/mcp.json", '{"mcpServers": {"lamina": {"url": "http://127.0.0.1:8000/mcp"}}}'),
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


def test_what_codex_writes_inside_the_block_stays(home: Path) -> None:
    fill(home)
    path = home / ".codex/config.toml"
    connect("codex", *A, "--key-file", str(home / "key"))
    theirs = '[projects."/home/ann"]\ntrust_level = "trusted"\n\n# theirs\n[mcp_servers.other]\ncommand = "y"\n'
    end = "# <<< lamina connect\n"
    path.write_text(path.read_text().replace(end, f"startup_timeout_sec = 20\n\n{theirs}{end}"))

    connect("codex", *B)
    again = tomllib.loads(path.read_text())
    text = path.read_text()
    connect("codex", "--remove")

    left = tomllib.loads(path.read_text())
    assert again["mcp_servers"]["lamina"]["startup_timeout_sec"] == 20
    assert "http://127.0.0.1:2" in again["mcp_servers"]["lamina"]["args"]
    assert "env" not in again["mcp_servers"]["lamina"]
    assert again["projects"] == left["projects"] == {"/home/ann": {"trust_level": "trusted"}}
    assert left["mcp_servers"] == {"mine": {"command": "x"}, "other": {"command": "y"}}
    assert theirs in text
    assert theirs in path.read_text()
    assert "lamina" not in path.read_text()


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("[mcp_servers.lamina]", '["mcp_servers".lamina]'),
        ("[mcp_servers.lamina]\n", '[mcp_servers.lamina]\nnote = """\n[profiles.x]\ny = 1\n"""\n'),
    ],
)
def test_a_server_in_a_form_that_is_not_known_is_left_with_an_error(home: Path, written: str, instead: str) -> None:
    connect("codex", *A)
    path = home / ".codex/config.toml"
    path.write_text(path.read_text().replace(written, instead))
    before = files(home)

    with pytest.raises(InvalidInput, match="cannot be changed"):
        connect("codex", "--remove")

    assert files(home) == before


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("is_new", [False, True])
def test_a_second_call_with_other_options_is_taken_back_whole(home: Path, agent: str, *, is_new: bool) -> None:
    before = files(home) if is_new else fill(home)

    connect(agent, *A)
    connect(agent, *B)
    connect(agent, "--remove", *B)

    assert files(home) == before


def test_a_backup_with_entries_is_never_put_back(home: Path) -> None:
    before = fill(home)
    connect("cursor", *A)
    for name in (".cursor/mcp.json", ".cursor/hooks.json"):
        (home / f"{name}.lamina-backup").write_bytes((home / name).read_bytes())
    connect("cursor", *B)

    connect("cursor", "--remove", *B)

    assert files(home).keys() == before.keys()
    assert not any("lamina" in text.decode() for text in files(home).values())


@pytest.mark.parametrize("agent", AGENTS)
def test_no_backup_is_left_of_files_that_changed_since(home: Path, agent: str) -> None:
    before = fill(home)
    connect(agent, *A)
    for name in before:
        (home / name).write_bytes((home / name).read_bytes() + b"\n")

    connect(agent, "--remove", *A)

    assert files(home).keys() == before.keys()
    assert not any("lamina" in text.decode() for text in files(home).values())


def test_files_of_others_stay_when_entries_are_taken_back(home: Path) -> None:
    path = home / ".config/opencode/plugins/lamina.js"
    path.parent.mkdir(parents=True)
    path.write_text("export const Mine = 1\n")
    (home / ".claude.json").write_text(f'{{"mcpServers": {{"lamina": {HAND_WRITTEN}}}}}')
    before = files(home)

    for agent in AGENTS:
        connect(agent, "--remove")

    assert files(home) == before


def test_a_linked_file_is_taken_back_to_the_byte(home: Path) -> None:
    real = home / "dotfiles/claude.json"
    real.parent.mkdir()
    real.write_text("{}")
    (home / ".claude.json").symlink_to(real)
    before = files(home)

    connect("claude-code", *A)
    connect("claude-code", "--remove", *A)

    assert files(home) == before
    assert (home / ".claude.json").is_symlink()


def test_the_plugin_of_opencode_sends_the_last_turn_alone(home: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("without node")
    connect("opencode", *A)
    plugin = home / ".config/opencode/plugins/lamina.js"
    said = home / "said.json"
    keeper = home / "keeper.cjs"  # In place of `lamina`, a program that keeps what it is given.
    keeper.write_text(f"process.stdin.pipe(require('fs').createWriteStream({json.dumps(str(said))}))")
    command = json.dumps([node, str(keeper)])
    written = re.sub(r"const command = .*", lambda _: f"const command = {command}", plugin.read_text())
    (home / "plugin.mjs").write_text(f"{written}\n{DRIVER}")

    subprocess.run([node, str(home / "plugin.mjs")], check=True, timeout=PATIENCE_S)

    event = json.loads(said.read_bytes())
    assert said.stat().st_size < 100_000
    assert [item["id"] for item in event["messages"]] == ["u2", "a2", "s"]
    assert [item["content"][:3] for item in turn_of(event)] == ["xxx", "Ok."]


DRIVER = """
const message = (id, role, text, synthetic = false) => {
  return { info: { id, role }, parts: [{ type: "text", text, synthetic }] }
}
const long = "x".repeat(3_000_000)
const data = [
  message("u1", "user", long), message("a1", "assistant", long),
  message("u2", "user", long), message("a2", "assistant", "Ok."), message("s", "user", "told", true),
]
const plugin = await Lamina({ client: { session: { messages: async () => ({ data }) } } })
await plugin.event({ event: { type: "session.idle", properties: { sessionID: "s" } } })
"""


@pytest.mark.parametrize("agent", AGENTS)
def test_a_workspace_of_any_script_is_named_as_it_is(home: Path, agent: str) -> None:
    options = ("--url", "http://127.0.0.1:9", "--workspace", 'harbour 🦊 "หนึ่ง" \\')

    connect(agent, *options)
    written = files(home)
    connect(agent, *options)

    assert files(home) == written
    if agent == "codex":
        args = tomllib.loads(written[".codex/config.toml"].decode())["mcp_servers"]["lamina"]["args"]
        assert args[args.index("--workspace") + 1] == options[-1]
    connect(agent, "--remove", *options)
    assert files(home) == {}


def test_the_summary_of_a_compaction_is_no_prompt(tmp_path: Path) -> None:
    transcript = tmp_path / "transcript.jsonl"
    prompt = {"uuid": "u", "message": {"role": "user", "content": "The Marlin gets berth seven."}}
    answer = {"uuid": "a", "message": {"role": "assistant", "content": "Ok."}}
    summary = {"message": {"role": "user", "content": "This session is being continued from a previous one."}}
    marks = ({"isCompactSummary": True}, {"isVisibleInTranscriptOnly": True}, {"isMeta": True})
    lines = [prompt, *({**summary, **mark} for mark in marks), answer]
    transcript.write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    said = [item["content"] for item in turn_of({"transcript_path": str(transcript)})]

    assert said == ["The Marlin gets berth seven.", "Ok."]


def test_half_a_character_is_recorded_as_a_question_mark() -> None:
    said = list(turn_of(json.loads('{"messages": [{"role": "user", "content": "berth \\ud83d"}]}')))

    assert [item["content"] for item in said] == ["berth ?"]


@pytest.fixture
async def service(application: Application) -> AsyncIterator[str]:
    async with uvicorn_of(application.api, application.services.settings.serve.front_door) as port:
        yield f"http://127.0.0.1:{port}"


async def hook(command: str, event: Any, key: str = "") -> tuple[int, str]:
    """Run a hook in this process, without its deadline, and return its exit status and what it printed."""
    _, verb, *arguments = shlex.split(command)
    assert verb == "hook"
    body = event if isinstance(event, bytes) else json.dumps(event).encode()
    done = await asyncio.to_thread(
        CliRunner().invoke,
        hook_app,
        [*arguments, "--deadline", str(PATIENCE_S)],
        input=body,
        env={"LAMINA_API_KEY": key},
    )
    return done.exit_code, done.stdout


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
    # Once as the agent does, in a process; its deadline is later, since the machine may be busy.
    done = await asyncio.to_thread(
        subprocess.run,
        [*shlex.split(commands["UserPromptSubmit"]), "--deadline", str(PATIENCE_S - 10)],
        input=json.dumps(asked).encode(),
        env={**os.environ, "LAMINA_API_KEY": application.key},
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )

    read = await application.client().get("/v1/sessions/monday/messages", params={"workspace": "harbour"})
    assert recorded == [(0, "")] * 2
    assert [item["content"] for item in read.json()["messages"]] == ["The Marlin gets berth seven.", "Ok."]
    assert done.returncode == 0
    output = json.loads(done.stdout)["hookSpecificOutput"]
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


async def test_an_event_that_is_too_large_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_room, "MOST_INPUT_BYTES", 20)

    done = CliRunner().invoke(hook_app, ["recall", "--url", "http://127.0.0.1:9"], input=b'{"prompt": "a long one"}')

    assert (done.exit_code, done.stdout) == (0, "")
    assert "more than 20 bytes" in done.stderr


async def test_of_a_turn_that_is_too_long_the_prompt_and_what_was_said_last_are_recorded(
    home: Path, application: Application, service: str
) -> None:
    connect("opencode", "--url", service)
    said = [{"role": "assistant", "content": f"Step {number}.", "id": f"a{number}"} for number in range(299)]
    event = {"session_id": "long", "messages": [{"role": "user", "content": "Go on.", "id": "u"}, *said]}

    await hook(f"lamina hook record --url {service} --form text", event, application.key)

    listed = await application.client().get("/v1/sessions/long/messages", params={"limit": 500})
    texts = [message["content"] for message in listed.json()["messages"]]
    assert len(texts) == 256
    assert (texts[0], texts[1], texts[-1]) == ("Go on.", "Step 44.", "Step 298.")


async def test_whatever_an_agent_says_is_recorded(home: Path, application: Application, service: str) -> None:
    said = [
        {"role": "user", "content": "Read it.\0", "id": "u" * 300},
        {"role": "assistant", "content": "\u200b", "id": "blank"},
        *({"role": "assistant", "content": f"{n}. " + "สวัสดี" * 3_000, "id": f"{n}"} for n in range(12)),
    ]

    await hook(f"lamina hook record --url {service}", {"session_id": "s" * 300, "messages": said}, application.key)
    asked = {"session_id": "s" * 300, "prompt": "\0" + " " * 30_000}
    nothing = await hook(f"lamina hook recall --url {service}", asked, application.key)

    path = f"/v1/sessions/{fitting_id('s' * 300)}/messages"
    listed = (await application.client().get(path, params={"limit": 500})).json()["messages"]
    assert [message["content"][:8] for message in listed] == ["Read it.", *(f"{n}. สวัสดี"[:8] for n in range(12))]
    assert nothing == (0, "")


def test_a_hook_that_records_is_given_the_time_that_the_agent_allows() -> None:
    assert DEADLINES_S[HookVerb.RECALL] < DEADLINES_S[HookVerb.RECORD] < HOOK_TIMEOUT_S
    assert HOOK_TIMEOUT_S - DEADLINES_S[HookVerb.RECORD] <= 1


IN_A_PROCESS = """
import socket, sys, time
socket.getaddrinfo = lambda *_, **__: time.sleep(600)
from lamina.cli import main
main()
"""


@pytest.mark.parametrize(
    "options",
    [["recall", "--nonsense"], ["recall", "--url", "http://lamina.example", "--deadline", "0.5"]],
    ids=["wrong options", "a name that is looked up for ever"],
)
def test_the_process_of_a_hook_ends_with_0(home: Path, options: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS, "hook", *options],
        input=b'{"prompt": "x"}',
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize("event", [b"", b"{", b"[]", b"\xff", {"prompt": 7}, {"session_id": "s", "prompt": "x"}])
async def test_a_service_that_is_away_or_an_event_that_is_none_never_stops_the_agent(home: Path, event: Any) -> None:
    connect("codex", "--url", "http://127.0.0.1:9")
    commands = commands_of(home, ".codex/hooks.json")

    assert await hook(commands["UserPromptSubmit"], event) == (0, "")
    assert await hook(commands["Stop"], event) == (0, "")
