"""A folder is mirrored into a workspace: changes, renames and removals, with whatever lies in it."""

import asyncio
import os
import shutil
import socket
import threading
import time
import unicodedata
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from typer.testing import CliRunner

from lamina.cli.commands import app as command_line
from lamina.cli.folders import follow
from lamina.client import Client
from lamina.client.calls import Call, Json
from lamina.client.mirror import FolderAwayError, FolderMirror, FolderRules, Synced, clean_prefix, view_folder
from lamina.errors import InvalidInput, LaminaError, LimitReached
from tests.support.application import Application
from tests.support.uvicorn_server import serving

SCOPE = {"workspace": "atlas"}


@asynccontextmanager
async def served(app: Application, port: int = 0) -> AsyncIterator[int]:
    listening = socket.create_server(("127.0.0.1", port))
    try:
        async with serving(uvicorn.Config(app.api, lifespan="off", log_level="critical"), [listening]):
            yield listening.getsockname()[1]
    finally:
        listening.close()


class CountingClient(Client):
    """Notes the methods and paths of its calls."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.writes: list[tuple[str, str]] = []

    def send(self, call: Call) -> Json:
        if call.method != "GET":
            self.writes.append((call.method, call.path.partition("/files/")[2]))
        return super().send(call)


class RefusingClient(CountingClient):
    """Has a service that does not take some files for now."""

    refused: frozenset[str] = frozenset()

    def send(self, call: Call) -> Json:
        answer = super().send(call) if call.path.partition("/files/")[2] not in self.refused else None
        if answer is None:
            raise LimitReached("tenant", "2 documents are stored; delete some")
        return answer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    made.mkdir()
    return made


@pytest.fixture
async def client(application: Application) -> AsyncIterator[CountingClient]:
    async with served(application) as port:
        made = CountingClient(f"http://127.0.0.1:{port}", application.key, scope=SCOPE)
        yield made
        made.close()


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    for path, content in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)


async def synced(mirror: FolderMirror, *, anew: bool = False) -> Synced:
    def work() -> Synced:
        if anew:
            mirror.list_remote()
        return mirror.sync()

    return await asyncio.to_thread(work)


async def files_of(client: Client) -> dict[str, str]:
    def read() -> dict[str, str]:
        return {one["path"]: client.file(one["path"])["content"] for one in client.files(limit=1000)["files"]}

    return await asyncio.to_thread(read)


async def listed(client: Client) -> list[Any]:
    return list((await asyncio.to_thread(client.files))["files"])


async def test_a_folder_is_sent_once_and_then_what_changed_alone(client: CountingClient, folder: Path) -> None:
    write(folder, {"a.md": "one", "docs/b.md": "two", "docs/deep/c.md": "", "设计/计划.md": "四"})
    mirror = FolderMirror(client, folder, "here")
    first, again = await synced(mirror, anew=True), await synced(mirror)
    write(folder, {"a.md": "one, changed"})
    (folder / "docs/b.md").rename(folder / "docs/renamed.md")
    (folder / "docs/deep/c.md").unlink()
    changed = await synced(mirror)

    assert sorted(first.sent) == ["a.md", "docs/b.md", "docs/deep/c.md", "设计/计划.md"]
    assert (again.sent, again.removed) == ((), ())
    assert (sorted(changed.sent), sorted(changed.removed)) == (
        ["a.md", "docs/renamed.md"],
        ["docs/b.md", "docs/deep/c.md"],
    )
    assert await files_of(client) == {"a.md": "one, changed", "docs/renamed.md": "two", "设计/计划.md": "四"}


async def test_after_a_restart_nothing_is_sent_twice_and_what_went_meanwhile_is_removed(
    client: CountingClient, folder: Path
) -> None:
    write(folder, {"a.md": "one", "b.md": "two", "c.md": "three"})
    await synced(FolderMirror(client, folder, "here"), anew=True)
    client.writes.clear()
    (folder / "a.md").unlink()
    os.utime(folder / "b.md")
    write(folder, {"c.md": "three, changed"})
    after = await synced(FolderMirror(client, folder, "here"), anew=True)

    assert (after.sent, after.removed) == (("c.md",), ("a.md",))
    assert client.writes == [("PUT", "c.md"), ("DELETE", "a.md")]


async def test_nothing_is_removed_that_somebody_else_put(client: CountingClient, folder: Path) -> None:
    await asyncio.to_thread(client.put_file, "by hand.md", "by hand")
    await asyncio.to_thread(client.put_file, "other.md", "another folder's", mirror="there")
    write(folder, {"a.md": "one"})
    mirror = FolderMirror(client, folder, "here")
    await synced(mirror, anew=True)
    await asyncio.to_thread(client.put_file, "a.md", "changed by hand")
    (folder / "a.md").unlink()
    after = await synced(mirror)

    assert after.removed == ()
    assert await files_of(client) == {
        "by hand.md": "by hand",
        "other.md": "another folder's",
        "a.md": "changed by hand",
    }


async def test_what_is_no_text_or_leads_out_is_not_sent_and_said_once(client: CountingClient, folder: Path) -> None:
    outside = folder.parent / "outside"
    write(outside, {"secret.txt": "the password is swordfish"})
    write(
        folder,
        {
            "good.md": "good",
            ".git/config": "[core]",
            "sub/.git/HEAD": "ref",
            ".env": "PASSWORD=1",
            "key.pem": "x",
            "a.md~": "x",
            "image.png": b"\x89PNG\r\n\x1a\n\x00\x00",
            "latin.txt": "naïve".encode("latin-1"),
            "large.txt": "x" * 10_000_000,
            "back\\slash.txt": "x",
            "target.md": "inside",
        },
    )
    (folder / "link out.txt").symlink_to(outside / "secret.txt")
    (folder / "folder out").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    (folder / "dangling").symlink_to(folder / "nothing")
    (folder / "link in.md").symlink_to(folder / "target.md")
    os.mkfifo(folder / "pipe")
    (folder / os.fsdecode(b"bad\xff.txt")).write_text("x")
    mirror = FolderMirror(client, folder, "here")
    first, again = await synced(mirror, anew=True), await synced(mirror)

    assert sorted(first.sent) == ["good.md", "link in.md", "target.md"]
    assert set(first.skipped) == {
        "image.png",
        "latin.txt",
        "large.txt",
        "back\\slash.txt",
        "link out.txt",
        "folder out",
        "bad?.txt",
    }
    assert again == Synced((), (), first.skipped)
    assert "swordfish" not in str(await files_of(client))


async def test_a_file_that_becomes_binary_or_too_large_is_removed_and_comes_back(
    client: CountingClient, folder: Path
) -> None:
    write(folder, {"a.md": "one", "b.md": "two"})
    mirror = FolderMirror(client, folder, "here", rules=FolderRules(max_bytes=100))
    await synced(mirror, anew=True)
    write(folder, {"a.md": b"\x00\x01", "b.md": "x" * 101})
    gone = await synced(mirror)
    write(folder, {"a.md": "one again", "b.md": "two again"})
    back = await synced(mirror)

    assert (gone.sent, sorted(gone.removed), set(gone.skipped)) == ((), ["a.md", "b.md"], {"a.md", "b.md"})
    assert (sorted(back.sent), back.skipped) == (["a.md", "b.md"], {})


async def test_a_file_that_the_service_refuses_is_sent_again_only_when_it_has_changed(
    client: CountingClient, folder: Path
) -> None:
    write(folder, {"large.txt": "word " * 300_000, "a.md": "one"})
    mirror = FolderMirror(client, folder, "here", rules=FolderRules(max_bytes=5_000_000))
    first, again = await synced(mirror, anew=True), await synced(mirror)
    write(folder, {"large.txt": "short now"})
    mended = await synced(mirror)

    assert (first.sent, set(first.skipped)) == (("a.md",), {"large.txt"})
    assert "files.max_bytes" in first.skipped["large.txt"]
    assert again.skipped == first.skipped
    assert [path for method, path in client.writes if method == "PUT"].count("large.txt") == 2
    assert (mended.sent, mended.skipped) == (("large.txt",), {})


def texts_in(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def take_away(folder: Path) -> Path:
    return folder.rename(folder.parent / "aside")


def unmount(folder: Path) -> Path:
    aside = take_away(folder)
    folder.mkdir()
    return aside


def put_back(aside: Path, folder: Path) -> None:
    aside.rename(folder)


async def test_a_folder_that_is_away_removes_nothing(client: CountingClient, folder: Path) -> None:
    write(folder, {"a.md": "one"})
    mirror = FolderMirror(client, folder, "here")
    await synced(mirror, anew=True)
    aside = take_away(folder)
    with pytest.raises(FolderAwayError):
        await synced(mirror)
    write(folder, {".git/HEAD": "ref"})  # As a mount point without its file system.
    with pytest.raises(FolderAwayError):
        await synced(mirror)
    shutil.rmtree(folder)
    put_back(aside, folder)
    back = await synced(mirror)

    assert (back.sent, back.removed) == ((), ())
    assert await files_of(client) == {"a.md": "one"}


@pytest.mark.parametrize("there", [{}, {".git/HEAD": "ref"}])
async def test_a_folder_that_is_empty_at_the_start_removes_nothing_unless_that_is_asked_for(
    client: CountingClient, folder: Path, there: dict[str, str | bytes]
) -> None:
    write(folder, {"a.md": "one", "b.md": "two"})
    await synced(FolderMirror(client, folder, "here"), anew=True)
    aside = unmount(folder)
    write(folder, there)
    mirror = FolderMirror(client, folder, "here")
    for _ in range(2):
        with pytest.raises(FolderAwayError, match=r"workspace has 2 of it.*--allow-empty"):
            await synced(mirror, anew=True)
    assert await files_of(client) == {"a.md": "one", "b.md": "two"}
    shutil.rmtree(folder)
    put_back(aside, folder)
    mounted = await synced(mirror, anew=True)
    (folder / "a.md").unlink()
    (folder / "b.md").unlink()
    emptied = await synced(mirror)

    assert (mounted.sent, mounted.removed) == ((), ())
    assert emptied.removed == ("a.md", "b.md")


async def test_an_empty_folder_is_mirrored_where_that_is_asked_for_or_nothing_is_lost(
    client: CountingClient, folder: Path
) -> None:
    await asyncio.to_thread(client.put_file, "theirs.md", "of somebody else")
    nothing = await synced(FolderMirror(client, folder, "here"), anew=True)
    write(folder, {"a.md": "one"})
    await synced(FolderMirror(client, folder, "here"), anew=True)
    (folder / "a.md").unlink()
    asked_for = await synced(FolderMirror(client, folder, "here", allows_empty=True), anew=True)

    assert (nothing.removed, asked_for.removed) == ((), ("a.md",))
    assert await files_of(client) == {"theirs.md": "of somebody else"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read_is_said(folder: Path) -> None:
    write(folder, {"sub/a.md": "one"})
    (folder / "sub").chmod(0)

    assert list(view_folder(folder, FolderRules()).skipped) == ["sub/"]


async def test_a_file_is_kept_while_it_cannot_be_told_what_it_is(client: CountingClient, folder: Path) -> None:
    nfd = unicodedata.normalize("NFD", "Überblick.md")
    write(folder, {"a.md": "one", "b.md": "two", nfd: "three"})
    mirror = FolderMirror(client, folder, "here")
    await synced(mirror, anew=True)
    before = await files_of(client)
    for name in ("a.md", nfd):
        (folder / name).unlink()
    # Neither can be asked for its state, as every file of a network file system that is away.
    (folder / "a.md").symlink_to("x" * 300)
    (folder / nfd).symlink_to(nfd)
    (folder / "b.md").unlink()
    after = await synced(mirror)

    assert after.removed == ("b.md",)
    assert await files_of(client) == {path: text for path, text in before.items() if path != "b.md"}
    assert {reason.partition(":")[0] for reason in after.skipped.values()} == {"cannot be read"}
    assert len(after.skipped) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
async def test_nothing_of_a_folder_is_removed_whose_names_alone_may_be_read(
    client: CountingClient, folder: Path
) -> None:
    write(folder, {"sub/a.md": "one"})
    mirror = FolderMirror(client, folder, "here")
    await synced(mirror, anew=True)
    (folder / "sub").chmod(0o444)
    after = await synced(mirror)
    (folder / "sub").chmod(0o755)

    assert (after.removed, set(after.skipped)) == ((), {"sub/a.md"})


async def test_a_file_that_is_not_taken_now_holds_up_no_other_and_no_removal(
    application: Application, folder: Path
) -> None:
    async with served(application) as port:
        client = RefusingClient(f"http://127.0.0.1:{port}", application.key, scope=SCOPE)
        mirror = FolderMirror(client, folder, "here")
        write(folder, {"gone.md": "one"})
        await synced(mirror, anew=True)
        (folder / "gone.md").unlink()
        write(folder, {f"{name}.md": f"text of {name}" for name in "abcd"})
        client.refused = frozenset({"a.md", "b.md"})
        rounds = [await synced(mirror) for _ in range(4)]
        client.refused = frozenset()
        mended = await synced(mirror)
        left = await files_of(client)
        client.close()

    assert [str(one.trouble).partition(";")[0] for one in rounds] == [
        "limit of this tenant: 2 documents are stored"
    ] * 4
    assert (rounds[0].sent, rounds[0].removed, rounds[0].is_whole) == ((), ("gone.md",), False)
    assert [one.sent for one in rounds[1:]] == [(), ("c.md", "d.md"), ()]
    assert [path for _, path in client.writes[2:]] == ["c.md", "d.md", "a.md", "b.md"]
    assert (mended.sent, mended.trouble, set(left)) == (("a.md", "b.md"), None, {"a.md", "b.md", "c.md", "d.md"})


async def test_files_of_another_agent_are_left_alone_and_named(application: Application, folder: Path) -> None:
    admin = application.admin()
    made = await admin.post("/v1/keys", json={"name": "coder", "role": "writer", "agents": ["coder"]})
    async with served(application) as port:
        url = f"http://127.0.0.1:{port}"
        client = Client(url, application.key, scope=SCOPE)
        for path in ("theirs.md", "gone.md"):
            await asyncio.to_thread(client.put_file, path, "of nobody", mirror="here")
        bound = CountingClient(url, made.json()["key"], scope={**SCOPE, "agent": "coder"})
        write(folder, {"theirs.md": "changed", "z.md": "mine"})
        mirror = FolderMirror(bound, folder, "here")
        first, again = await synced(mirror, anew=True), await synced(mirror)
        left = await files_of(client)
        client.close()
        bound.close()

    assert (first.sent, first.removed, first.trouble) == (("z.md",), (), None)
    assert {path: "a file of no agent" in reason for path, reason in first.skipped.items()} == {
        "theirs.md": True,
        "gone.md": True,
    }
    assert again.skipped == first.skipped
    assert bound.writes.count(("PUT", "theirs.md")) == 1
    assert left == {"theirs.md": "of nobody", "gone.md": "of nobody", "z.md": "mine"}


async def test_of_two_forms_of_a_name_one_is_mirrored_and_the_other_said(client: CountingClient, folder: Path) -> None:
    nfc = "Überblick.md"
    nfd = unicodedata.normalize("NFD", nfc)
    write(folder, {nfd: "decomposed"})
    mirror = FolderMirror(client, folder, "here")
    alone = await synced(mirror, anew=True)
    write(folder, {nfc: "composed"})
    both = await synced(mirror)

    assert (alone.sent, alone.skipped) == ((nfc,), {})
    assert len(both.skipped) == 1
    assert len(await files_of(client)) == 1


async def test_files_that_come_and_go_while_they_are_looked_at_do_no_harm(client: CountingClient, folder: Path) -> None:
    stop = threading.Event()

    def churn() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            place = folder / f"{number % 7}" / f"{number % 5}.md"
            place.parent.mkdir(exist_ok=True)
            place.write_text(f"text {number} " * (number % 50))
            if number % 3 == 0:
                place.unlink()
            if number % 11 == 0:
                for one in list(place.parent.iterdir()):
                    one.unlink()
                place.parent.rmdir()
            time.sleep(0.001)

    mirror = FolderMirror(client, folder, "here")
    churning = asyncio.get_running_loop().run_in_executor(None, churn)
    for _ in range(5):
        await synced(mirror)
    stop.set()
    await churning
    await synced(mirror)

    assert await files_of(client) == texts_in(folder)


async def test_two_watchers_of_one_folder_do_no_harm(client: CountingClient, folder: Path) -> None:
    mirrors = [FolderMirror(client, folder, "here") for _ in range(2)]
    for number in range(3):
        write(folder, {f"{name}.md": f"text {number} of {name}" for name in "abc"})
        if number:
            (folder / "a.md").unlink()
        await asyncio.gather(*(synced(mirror) for mirror in mirrors))
    last = await asyncio.gather(*(synced(mirror) for mirror in mirrors))

    assert [(one.sent, one.removed) for one in last] == [((), ())] * 2
    assert await files_of(client) == {"b.md": "text 2 of b", "c.md": "text 2 of c"}
    assert {one["version"] for one in await listed(client)} == {3}


async def test_what_others_changed_is_as_the_folder_has_it_after_the_next_list(
    client: CountingClient, folder: Path
) -> None:
    write(folder, {"a.md": "one", "b.md": "two"})
    mirror = FolderMirror(client, folder, "here")
    await synced(mirror, anew=True)
    await asyncio.to_thread(client.put_file, "a.md", "changed by hand")
    await asyncio.to_thread(client.delete_file, "b.md")
    await synced(mirror, anew=True)

    assert await files_of(client) == {"a.md": "one", "b.md": "two"}


async def test_a_folder_lies_under_its_prefix_and_patterns_say_what_is_always_shown(
    client: CountingClient, folder: Path
) -> None:
    write(folder, {"rules.md": "Ask first.", "notes/x.md": "x", "notes/y.log": "y"})
    rules = FolderRules(ignored=("*.log",), always=("rules.md",))
    mirror = FolderMirror(client, folder, "here", clean_prefix("/team a/"), rules)
    await synced(mirror, anew=True)
    marked = {one["path"]: one["always"] for one in await listed(client)}
    block = await asyncio.to_thread(client.context, "anything")
    mirror.rules = FolderRules(ignored=("*.log",))
    changed = await synced(mirror)

    assert marked == {"team a/rules.md": True, "team a/notes/x.md": False}
    assert "[File: team a/rules.md]\nAsk first." in block["text"]
    assert changed.sent == ("rules.md",)
    with pytest.raises(InvalidInput):
        clean_prefix("../up")


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not await asyncio.to_thread(holds):  # noqa: ASYNC110 - a thread makes it true
            await asyncio.sleep(0.05)


async def test_a_watcher_goes_on_after_the_service_was_away(application: Application, folder: Path) -> None:
    write(folder, {"a.md": "one"})
    stop, lines = threading.Event(), list[str]()
    async with served(application) as port:
        client = Client(f"http://127.0.0.1:{port}", application.key, scope=SCOPE, connect_retries=0)
        mirror = FolderMirror(client, folder, "here")
        work = threading.Thread(target=follow, args=(mirror, stop), kwargs={"interval_s": 0.05, "report": lines.append})
        work.start()
        await until(lambda: "sent     a.md" in lines)
    write(folder, {"b.md": "two"})
    (folder / "a.md").unlink()
    await until(lambda: any(line.startswith("waiting: ") for line in lines))
    async with served(application, port):
        await until(lambda: "removed  a.md" in lines and "sent     b.md" in lines)
        stop.set()
        await asyncio.to_thread(work.join)
        left = await files_of(client)

    assert left == {"b.md": "two"}
    assert lines.count("sent     b.md") == 1
    client.close()


async def test_a_watcher_ends_where_its_key_is_refused(application: Application, folder: Path) -> None:
    async with served(application) as port:
        with Client(f"http://127.0.0.1:{port}", "lamina_nobody", scope=SCOPE) as client:
            mirror = FolderMirror(client, folder, "here")
            with pytest.raises(LaminaError, match="no valid API key"):
                await asyncio.to_thread(follow, mirror, threading.Event(), interval_s=0.05, report=print)


async def test_the_command_removes_the_files_of_an_empty_folder_on_demand_alone(
    application: Application, folder: Path
) -> None:
    async with served(application) as port:
        url = f"http://127.0.0.1:{port}"
        command = [
            "watch-folder",
            str(folder),
            "--workspace",
            "atlas",
            "--once",
            "--url",
            url,
            "--key",
            application.key,
        ]
        invoke = partial(asyncio.to_thread, CliRunner().invoke, command_line)
        write(folder, {"a.md": "one"})
        sent = await invoke(command)
        (folder / "a.md").unlink()
        refused, asked_for = await invoke(command), await invoke([*command, "--allow-empty"])

    assert "sent     a.md" in sent.output
    assert (refused.exit_code, "--allow-empty" in refused.output) == (1, True)
    assert (asked_for.exit_code, "removed  a.md" in asked_for.output) == (0, True)
