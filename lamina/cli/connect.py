"""`lamina connect`: gives a coding agent memory, by the MCP entry and the hooks of its configuration."""

import json
import os
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from lamina.cli.common import ConfigOption, DataDirOption, UrlOption, UserOption, settings_of
from lamina.cli.console import console
from lamina.core.scope import DEFAULT_WORKSPACE
from lamina.errors import InvalidInput
from lamina.private_files import private_opener
from lamina.text import jsonc

BACKUP = ".lamina-backup"
HOOK_TIMEOUT_S = 10
_BEGIN, _END = "# >>> lamina connect\n", "# <<< lamina connect\n"
_OPENCODE_PLUGIN = """// Written by `lamina connect opencode`; `--remove` takes it back.
import { spawn } from "node:child_process"

const command = %s

const run = (verb, body) =>
  new Promise((resolve) => {
    const child = spawn(command[0], [...command.slice(1, 2), verb, ...command.slice(2)], { timeout: %d })
    let said = ""
    child.stdout.on("data", (part) => (said += part))
    child.on("error", () => resolve(""))
    child.on("close", () => resolve(said))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(body))
  })

const text = (parts) => {
  const own = parts.filter((part) => part.type === "text" && !part.synthetic)
  return own.map((part) => part.text).join("\\n")
}

export const Lamina = async ({ client }) => {
  const recalled = new Map()
  return {
    "chat.message": async (input, output) => {
      recalled.set(input.sessionID, run("recall", { session_id: input.sessionID, prompt: text(output.parts) }))
    },
    "experimental.chat.system.transform": async (input, output) => {
      const block = await recalled.get(input.sessionID)
      if (block) output.system.push(block)
    },
    event: async ({ event }) => {
      if (event.type !== "session.idle") return
      const session_id = event.properties.sessionID
      const { data } = await client.session.messages({ path: { id: session_id } })
      const messages = (data ?? []).map(({ info, parts }) => ({ role: info.role, id: info.id, content: text(parts) }))
      await run("record", { session_id, messages })
    },
  }
}
"""


class CodingAgent(StrEnum):
    """An agent that can be connected."""

    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    OPENCODE = "opencode"
    CURSOR = "cursor"


@dataclass(frozen=True, slots=True)
class Edit:
    """A file of an agent's configuration.

    Args:
        path: Where it is.
        put: Returns its text with the entries of Lamina.
        cut: Returns it without them.
    """

    path: Path
    put: Callable[[str], str]
    cut: Callable[[str], str]


def connect(
    agent: Annotated[CodingAgent, typer.Argument(help="Which agent.")],
    remove: Annotated[bool, typer.Option("--remove", help="Take the entries back.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show which files would change, and change none.")] = False,
    workspace: Annotated[str, typer.Option("--workspace", "-w", help="Project.")] = DEFAULT_WORKSPACE,
    user: UserOption = None,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    url: UrlOption = None,
    key_file: Annotated[
        Path | None, typer.Option("--key-file", help="File with the API key, for a service that --url names.")
    ] = None,
) -> None:
    """Give a coding agent memory: the tools over MCP, and hooks that recall on a prompt and record on a stop."""
    place = ["--url", url] if url else ["--data-dir", str(settings_of(config, data_dir).data_dir.absolute())]
    options = [*place, "--workspace", workspace, *(["--user", user] if user else [])]
    environment = {"LAMINA_API_KEY_FILE": str(key_file.absolute())} if key_file else {}
    planned = [(edit, *_planned(edit, remove=remove)) for edit in edits(agent, Path.home(), options, environment)]
    for edit, old, new in planned:
        state = "unchanged" if old == new else "removed" if new is None else "written"
        if not dry_run and old != new:
            _apply(edit.path, old, new)
        console.print(f"{'would be ' if dry_run and old != new else ''}{state}: {edit.path}", soft_wrap=True)


def edits(agent: CodingAgent, home: Path, options: list[str], environment: Mapping[str, str]) -> list[Edit]:
    """Return the files of an agent with the entries that it gets."""
    found = Path(sys.executable).with_name("lamina")
    program = str(found) if found.exists() else shutil.which("lamina") or "lamina"
    server: dict[str, Any] = {"command": program, "args": ["mcp", *options]}
    if environment:
        server["env"] = dict(environment)
    hook = [program, "hook", *options, *(f"--key-file={path}" for path in environment.values())]
    match agent:
        case CodingAgent.CLAUDE_CODE:
            folder = Path(os.environ.get("CLAUDE_CONFIG_DIR", home / ".claude"))
            own = folder if "CLAUDE_CONFIG_DIR" in os.environ else home
            return [
                _member(own / ".claude.json", ("mcpServers", "lamina"), {"type": "stdio", **server}),
                _hooks(folder / "settings.json", {"UserPromptSubmit": "recall", "Stop": "record"}, hook, _nested),
            ]
        case CodingAgent.CODEX:
            folder = Path(os.environ.get("CODEX_HOME", home / ".codex"))
            return [
                _toml(folder / "config.toml", server),
                _hooks(folder / "hooks.json", {"UserPromptSubmit": "recall", "Stop": "record"}, hook, _nested),
            ]
        case CodingAgent.CURSOR:
            verbs = {"sessionStart": "recall", "beforeSubmitPrompt": "record", "afterAgentResponse": "record"}
            folder = home / ".cursor"
            return [
                _member(folder / "mcp.json", ("mcpServers", "lamina"), server),
                _hooks(folder / "hooks.json", verbs, [*hook, "--form", "cursor"], _flat, version=1),
            ]
        case CodingAgent.OPENCODE:
            folder = Path(os.environ.get("XDG_CONFIG_HOME", home / ".config")) / "opencode"
            jsonc_path = folder / "opencode.jsonc"
            local = {"type": "local", "command": [program, *server["args"]], "enabled": True}
            if environment:
                local["environment"] = dict(environment)
            plugin = _OPENCODE_PLUGIN % (json.dumps([*hook, "--form", "text"]), HOOK_TIMEOUT_S * 1000)
            return [
                _member(jsonc_path if jsonc_path.exists() else folder / "opencode.json", ("mcp", "lamina"), local),
                Edit(folder / "plugins/lamina.js", lambda _: plugin, lambda _: ""),
            ]


def _member(path: Path, member: tuple[str, ...], value: Any) -> Edit:
    return Edit(
        path,
        lambda text: jsonc.with_member(text, member, value),
        lambda text: jsonc.without_member(text, member),
    )


def _hooks(
    path: Path, verbs: Mapping[str, str], hook: list[str], form: Callable[[str], Any], *, version: int | None = None
) -> Edit:
    """Return a file of hooks, with one for each event."""

    def command_of(verb: str) -> str:
        return shlex.join([*hook[:2], verb, *hook[2:]])

    def put(text: str) -> str:
        if version is not None and "version" not in jsonc.parsed(text):
            text = jsonc.with_member(text, ("version",), version)
        for event, verb in verbs.items():
            text = jsonc.with_item(text, ("hooks", event), form(command_of(verb)), _is_own)
        return text

    def cut(text: str) -> str:
        for event in verbs:
            text = jsonc.without_item(text, ("hooks", event), _is_own)
        return text

    return Edit(path, put, cut)


def _nested(command: str) -> Any:
    return {"hooks": [{"type": "command", "command": command, "timeout": HOOK_TIMEOUT_S}]}


def _flat(command: str) -> Any:
    return {"command": command, "timeout": HOOK_TIMEOUT_S}


def _is_own(hook: Any) -> bool:
    """Tell whether a hook runs `lamina hook`, wherever that is installed, and nothing else."""
    inner = hook.get("hooks") if isinstance(hook, dict) else None
    if isinstance(inner, list):
        return len(inner) == 1 and _is_own(inner[0])
    command = hook.get("command") if isinstance(hook, dict) else None
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return False
    return len(words) > 2 and Path(words[0]).name == "lamina" and words[1] == "hook"  # noqa: PLR2004 - verb and options


def _toml(path: Path, server: Mapping[str, Any]) -> Edit:
    """Return a TOML file with the server as a block between two comments at its end."""

    def block() -> str:
        lines = ["[mcp_servers.lamina]", f"command = {json.dumps(server['command'])}"]
        lines.append(f"args = {json.dumps(server['args'])}")
        if "env" in server:
            named = ", ".join(f"{name} = {json.dumps(value)}" for name, value in server["env"].items())
            lines.append(f"env = {{ {named} }}")
        return f"{_BEGIN}{chr(10).join(lines)}\n{_END}"

    def cut(text: str) -> str:
        head, begin, rest = text.partition(_BEGIN)
        _, end, tail = rest.partition(_END)
        return (
            text if not begin or not end else head.removesuffix("\n") + tail if head.endswith("\n\n") else head + tail
        )

    def put(text: str) -> str:
        before = tomllib.loads(text)
        if _BEGIN not in text and "lamina" in before.get("mcp_servers", {}):
            raise ValueError("mcp_servers.lamina is there already, written by somebody else; remove it first")
        head, begin, rest = text.partition(_BEGIN)
        _, end, tail = rest.partition(_END)
        if begin and end:
            new = head + block() + tail
        else:
            new = (text if not text or text.endswith("\n") else f"{text}\n") + ("\n" if text else "") + block()
        tomllib.loads(new)
        return new

    return Edit(path, put, cut)


def _planned(edit: Edit, *, remove: bool) -> tuple[str | None, str | None]:
    """Return the text of a file and that which it is to have; ``None`` for a file that is not there.

    Raises:
        InvalidInput: If the file cannot be read or changed.
    """
    old = _read(edit.path)
    if not remove:
        return old, _changed(edit, edit.put, old or "")
    if old is None:
        return None, None
    backup = _read(edit.path.with_name(edit.path.name + BACKUP))
    # Nobody changed it since: then it becomes what it was, byte by byte.
    before = backup or ""
    if _changed(edit, edit.put, before) == old:
        return old, backup
    return old, _changed(edit, edit.cut, old) or None


def _changed(edit: Edit, change: Callable[[str], str], text: str) -> str:
    try:
        return change(text)
    except (ValueError, RecursionError, AttributeError, TypeError) as error:
        raise InvalidInput(str(edit.path), f"is left as it is, since it cannot be changed: {error}") from error


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(str(path), f"cannot be read: {error}") from error


def _apply(path: Path, old: str | None, new: str | None) -> None:
    """Write a file whole or not at all; the state before lies beside it until it is taken back."""
    path = path.resolve()  # A link stays one.
    backup = path.with_name(path.name + BACKUP)
    if new is None:
        path.unlink()
        backup.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if backup.exists() and _read(backup) == new:
        backup.unlink()
    elif old is not None:
        _write(backup, old)
    temporary = path.with_name(f"{path.name}.lamina-new")
    _write(temporary, new)
    if old is not None:
        temporary.chmod(path.stat().st_mode & 0o777)
    temporary.replace(path)


def _write(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with open(path, "wb", opener=private_opener) as file:
        file.write(text.encode())
