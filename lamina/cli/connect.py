"""`lamina connect`: gives a coding agent memory, by the MCP entry and the hooks of its configuration."""

import json
import os
import re
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

from lamina.cli.common import ConfigOption, DataDirOption, UrlOption, UserOption, settings_of, url_of_environment
from lamina.cli.console import console
from lamina.cli.hook import HOOK_TIMEOUT_S, MOST_TEXT_CHARS
from lamina.core.scope import DEFAULT_WORKSPACE
from lamina.errors import InvalidInput
from lamina.host.private_files import private_opener
from lamina.text import jsonc

BACKUP = ".lamina-backup"
_BEGIN, _END = "# >>> lamina connect", "# <<< lamina connect"
_HEADER = "[mcp_servers.lamina]"
_OWN_HEADERS = re.compile(r"\[mcp_servers\.lamina[.\]]")
_OWN_KEYS = re.compile(r"(command|args|env)\s*=")
_KEY_FILE = "LAMINA_API_KEY_FILE"
_MORE_OPTIONS = ((), ("--user",), ("--key-file",), ("--user", "--key-file"))
_OPENCODE_PLUGIN = """// Written by `lamina connect opencode`; `--remove` takes it back.
import { spawn } from "node:child_process"

const command = %s
const MOST_TEXT_CHARS = %d

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

const isPrompt = ({ role, content }) => role === "user" && content.trim() !== ""

export const Lamina = async ({ client }) => {
  const recalled = new Map()
  return {
    "chat.message": async (input, output) => {
      const prompt = text(output.parts).slice(-MOST_TEXT_CHARS)
      recalled.set(input.sessionID, run("recall", { session_id: input.sessionID, prompt }))
    },
    "experimental.chat.system.transform": async (input, output) => {
      const block = await recalled.get(input.sessionID)
      if (block) output.system.push(block)
    },
    event: async ({ event }) => {
      if (event.type !== "session.idle") return
      const session_id = event.properties.sessionID
      const { data } = await client.session.messages({ path: { id: session_id } })
      const all = (data ?? []).map(({ info, parts }) => ({
        role: info.role,
        id: info.id,
        content: text(parts).slice(0, MOST_TEXT_CHARS),
      }))
      // A long session has more text than a hook reads: its last turn alone.
      await run("record", { session_id, messages: all.slice(Math.max(all.findLastIndex(isPrompt), 0)) })
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
    url = url or url_of_environment(data_dir)
    place = ["--url", url] if url else ["--data-dir", str(settings_of(config, data_dir).data_dir.absolute())]
    options = [*place, "--workspace", workspace, *(["--user", user] if user else [])]
    if key_file:
        options += ["--key-file", str(key_file.absolute())]
    planned = [(edit, *_planned(edit, remove=remove)) for edit in edits(agent, Path.home(), options)]
    for edit, old, new in planned:
        state = "unchanged" if old == new else "removed" if new is None else "written"
        if not dry_run:
            _apply(edit, old, new, remove=remove)
        console.print(f"{'would be ' if dry_run and old != new else ''}{state}: {edit.path}", soft_wrap=True)
    if url and not key_file and not remove:
        console.print(
            f"no --key-file: {url} gets LAMINA_API_KEY of wherever {agent} is started, and without one refuses it",
            soft_wrap=True,
        )


def edits(agent: CodingAgent, home: Path, options: list[str]) -> list[Edit]:
    """Return the files of an agent with the entries that it gets."""
    found = Path(sys.executable).with_name("lamina")
    program = str(found) if found.exists() else shutil.which("lamina") or "lamina"
    server: dict[str, Any] = {"command": program, "args": ["mcp", *options]}
    hook = [program, "hook", *options]
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
            command = json.dumps([*hook, "--form", "text"])
            plugin = _OPENCODE_PLUGIN % (command, MOST_TEXT_CHARS, HOOK_TIMEOUT_S * 1000)
            return [
                _member(jsonc_path if jsonc_path.exists() else folder / "opencode.json", ("mcp", "lamina"), local),
                _whole(folder / "plugins/lamina.js", plugin),
            ]


def _member(path: Path, member: tuple[str, ...], value: Any) -> Edit:
    """Return a JSON file with an entry for the server; one of somebody else stays as it is."""
    *_, name = member

    def named(text: str) -> Mapping[str, Any]:
        there = jsonc.parsed(text)
        for outer in member[:-1]:
            there = there.get(outer, {})
        return dict(there)

    def put(text: str) -> str:
        there = named(text)
        if name in there and not _is_own_server(there[name], value):
            raise ValueError(f"{'.'.join(member)} is there already, written by somebody else; remove it first")
        return jsonc.with_member(text, member, value)

    def cut(text: str) -> str:
        return jsonc.without_member(text, member) if _is_own_server(named(text).get(name)) else text

    return Edit(path, put, cut)


def _is_own_server(there: Any, value: Mapping[str, Any] | None = None) -> bool:
    """Tell whether an entry runs `lamina mcp` as connect writes it, with no more members than those of ``value``."""
    if not isinstance(there, dict):
        return False
    command, args = there.get("command"), there.get("args", [])
    environment = {"env", "environment"} & there.keys()  # Earlier releases named the file with the key there.
    if value is not None:
        keys = [key for name in environment for key in there[name]]
        if there.keys() - environment - value.keys() or not {*keys} <= {_KEY_FILE}:
            return False
    match [*command, *args] if isinstance(command, list) else [command, *args]:
        case [str() as program, "mcp", "--url" | "--data-dir", str(), "--workspace", str(), *more]:
            return Path(program).name == "lamina" and tuple(more[::2]) in _MORE_OPTIONS and len(more) % 2 == 0
    return False


def _whole(path: Path, content: str) -> Edit:
    """Return a file that is Lamina's alone, known by its first line."""
    first = content.splitlines(keepends=True)[0]

    def put(text: str) -> str:
        if text.strip() and not text.startswith(first):
            raise ValueError("it is there already, written by somebody else; move it away first")
        return content

    return Edit(path, put, lambda text: "" if text.startswith(first) else text)


def _hooks(
    path: Path, verbs: Mapping[str, str], hook: list[str], form: Callable[[str], Any], *, version: int | None = None
) -> Edit:
    """Return a file of hooks, with one for each event."""

    def put(text: str) -> str:
        if version is not None and "version" not in jsonc.parsed(text):
            text = jsonc.with_member(text, ("version",), version)
        for event, verb in verbs.items():
            text = jsonc.with_item(text, ("hooks", event), form(shlex.join([*hook[:2], verb, *hook[2:]])), _is_own)
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
    """Return a TOML file with the server between two comments at its end.

    Codex writes tables of its own between them, and keys into ours: only the lines of the server are changed.
    """
    # As they are: JSON writes what is beyond 16 bits as two halves, which TOML refuses.
    command, args = (json.dumps(server[name], ensure_ascii=False) for name in ("command", "args"))
    lines = [f"command = {command}\n", f"args = {args}\n"]

    def put(text: str) -> str:
        there = tomllib.loads(text).get("mcp_servers", {}).get("lamina")
        if there is None:
            text = _without_table(text)
            start = (text if not text or text.endswith("\n") else f"{text}\n") + ("\n" if text else "")
            new = f"{start}{_BEGIN}\n{_HEADER}\n{''.join(lines)}{_END}\n"
        elif not _is_own_server(there, {**there, **server}):
            raise ValueError("mcp_servers.lamina is there already, written by somebody else; remove it first")
        elif {**there, **server} == there and "env" not in there:
            return text
        else:
            new = _with_table(text, lines)
        others = {name: value for name, value in (there or {}).items() if name not in {"command", "args", "env"}}
        return _checked(text, new, {**others, **server})

    def cut(text: str) -> str:
        there = tomllib.loads(text).get("mcp_servers", {}).get("lamina")
        return _checked(text, _without_table(text), None) if there is None or _is_own_server(there) else text

    return Edit(path, put, cut)


def _checked(before: str, after: str, server: Mapping[str, Any] | None) -> str:
    """Return a TOML text in which nothing but the server of Lamina may differ from the text before.

    Raises:
        ValueError: If anything else differs.
    """
    wanted, got = tomllib.loads(before), tomllib.loads(after)
    servers = {name: value for name, value in wanted.pop("mcp_servers", {}).items() if name != "lamina"}
    if server is not None:
        servers["lamina"] = server
    if {**wanted, "mcp_servers": servers} != {"mcp_servers": {}, **got}:
        raise ValueError("mcp_servers.lamina stands in a form that is not known; change it by hand")
    return after


def _without_table(text: str) -> str:
    """Return a TOML text without the tables of the server and the two comments; comments of others stay."""
    kept, is_own = list[str](), False
    for line in text.splitlines(keepends=True):
        written = line.strip()
        if written.startswith("["):
            is_own = _OWN_HEADERS.match(written) is not None
        if written == _BEGIN and kept and not kept[-1].strip():
            kept.pop()
        if written not in {_BEGIN, _END} and not (is_own and written and not written.startswith("#")):
            kept.append(line)
    return "".join(kept)


def _with_table(text: str, lines: list[str]) -> str:
    """Return a TOML text with other lines in the table of the server; keys of others stay."""
    kept, header = list[str](), ""
    for line in text.splitlines(keepends=True):
        written = line.strip()
        header = written if written.startswith("[") else header
        is_value = header == _HEADER and _OWN_KEYS.match(written)
        if not is_value and not (header == "[mcp_servers.lamina.env]" and written and not written.startswith("#")):
            kept.append(line)
        if written == _HEADER:
            kept += lines
    return "".join(kept)


def _planned(edit: Edit, *, remove: bool) -> tuple[str | None, str | None]:
    """Return the text of a file and that which it is to have; ``None`` for a file that is not there.

    Raises:
        InvalidInput: If the file cannot be read or changed.
    """
    old = _read(edit.path)
    if not remove:
        return old, _changed(edit, edit.put, old or "")
    if not old:
        return old, old
    backup = _read(_backup_of(edit.path))
    if backup is not None and _changed(edit, edit.cut, backup) != backup:
        backup = None  # It has entries of an earlier call.
    # Nobody changed it since: then it becomes what it was, byte by byte.
    if _changed(edit, edit.put, backup or "") == old:
        return old, backup
    return old, _changed(edit, edit.cut, old) or None


def _backup_of(path: Path) -> Path:
    path = path.resolve()
    return path.with_name(path.name + BACKUP)


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


def _apply(edit: Edit, old: str | None, new: str | None, *, remove: bool) -> None:
    """Write a file whole or not at all; the state without entries lies beside it until they are taken back."""
    path, backup = edit.path.resolve(), _backup_of(edit.path)  # A link stays one.
    if old != new and new is None:
        path.unlink()
    elif old != new and new is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not remove and old is not None and edit.cut(old) == old:
            _write(backup, old)
        temporary = path.with_name(f"{path.name}.lamina-new")
        _write(temporary, new)
        if old is not None:
            temporary.chmod(path.stat().st_mode & 0o777)
        temporary.replace(path)
    if remove and old is not None:
        backup.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with open(path, "wb", opener=private_opener) as file:
        file.write(text.encode())
