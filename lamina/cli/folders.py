"""`lamina watch-folder`: keep the files of a workspace as a folder has them."""

import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from lamina.cli.common import (
    LONG_TIMEOUT_S,
    ConfigOption,
    DataDirOption,
    KeyOption,
    UrlOption,
    UserOption,
    WorkspaceOption,
    address_of,
    fail,
)
from lamina.cli.console import console, errors
from lamina.client import Client
from lamina.client.mirror import (
    IGNORED,
    MAX_FILE_BYTES,
    FolderAwayError,
    FolderMirror,
    FolderRules,
    clean_prefix,
    default_name,
    summary_of,
)
from lamina.errors import Unavailable

# Others may change the workspace's files meanwhile: so often it is asked what it has.
LIST_AGAIN_S = 60.0
LONGEST_PAUSE_S = 30.0


def watch_folder(
    folder: Annotated[Path, typer.Argument(help="The folder that is mirrored.")] = Path("workspace"),
    workspace: WorkspaceOption = "default",
    namespace: Annotated[str | None, typer.Option(help="Subdivision of the workspace.")] = None,
    user: UserOption = None,
    prefix: Annotated[str, typer.Option(help="Where the folder lies in the workspace, as in docs/.")] = "",
    name: Annotated[
        str | None, typer.Option(help="Name of the mirror, by which it knows its files; by default machine and path.")
    ] = None,
    always: Annotated[
        list[str] | None, typer.Option("--always", help="Pattern of paths that every context block shows.")
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", help="Pattern of names or paths that are left out, too.")
    ] = None,
    max_bytes: Annotated[int, typer.Option(min=1, help="Largest file, in bytes.")] = MAX_FILE_BYTES,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks at the folder.")] = 1.0,
    *,
    once: Annotated[bool, typer.Option("--once", help="Look once, and end.")] = False,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Remove the mirror's files even if the folder is empty at the start.")
    ] = False,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Mirror a folder's text files into a workspace, removals too, and go on until Ctrl-C."""
    rules = FolderRules((*IGNORED, *(ignore or ())), tuple(always or ()), max_bytes)
    ids = {"workspace": workspace, "namespace": namespace, "user": user}
    scope = {name: id_ for name, id_ in ids.items() if id_ is not None}
    with Client(*address_of(config, data_dir, url, key), scope=scope, timeout_s=LONG_TIMEOUT_S) as client:
        known_as = name or default_name(folder, socket.gethostname())
        mirror = FolderMirror(client, folder, known_as, clean_prefix(prefix), rules, allows_empty=allow_empty)
        if once:
            _sync_once(mirror)
            return
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        console.print(f"watching {escape(str(folder))}; Ctrl-C stops", style="dim", highlight=False)
        follow(mirror, stop, interval_s=interval, report=_print)


def follow(mirror: FolderMirror, stop: threading.Event, *, interval_s: float, report: Callable[[str], None]) -> None:
    """Mirror a folder until the event is set; a service that does not answer is waited for.

    Raises:
        LaminaError: If the service refuses the mirror as a whole, as without a valid key.
    """
    reported: dict[str, str] = {}
    met: Unavailable | FolderAwayError | None
    listed_at, pause_s, trouble = -LIST_AGAIN_S, interval_s, ""
    while not stop.is_set():
        try:
            if time.monotonic() - listed_at >= LIST_AGAIN_S:
                mirror.list_remote()
                listed_at = time.monotonic()
            synced = mirror.sync(stop.is_set)
            for line in summary_of(synced, reported):
                report(line)
            reported, met = dict(synced.skipped), synced.trouble
        except (Unavailable, FolderAwayError) as error:
            met = error
        if met is None:
            pause_s, trouble = interval_s, ""
        else:
            if str(met) != trouble:
                report(f"waiting: {met}")
            # What was under way may have been done: it is asked for again.
            trouble, listed_at = str(met), -LIST_AGAIN_S
            pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)
        stop.wait(pause_s)


def _sync_once(mirror: FolderMirror) -> None:
    mirror.list_remote()
    try:
        synced = mirror.sync()
    except FolderAwayError as error:
        fail(str(error))
    for line in summary_of(synced, {}):
        _print(line)
    if synced.trouble is not None:
        raise synced.trouble
    console.print(f"{len(synced.sent)} sent, {len(synced.removed)} removed, {len(synced.skipped)} skipped")


def _print(line: str) -> None:
    target = errors if line.startswith(("skipped", "waiting")) else console
    target.print(escape(line), highlight=False, soft_wrap=True)
