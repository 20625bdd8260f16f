import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.cli.common import guarded
from lamina.cli.local import LocalService, data_dir_lock, ensure_local_key
from lamina.embedded import EmbeddedFalkorDB, EmbeddedPostgres
from lamina.host.private_files import OTHERS, every_path, make_private
from lamina.projections.locations import identify_folder
from lamina.settings.stores import EmbeddedFalkorDBSettings, EmbeddedPostgresSettings
from lamina.stores.archive.files import _replace_on_disk
from lamina.stores.index.edge.shard import _create
from lamina.stores.postgres.migrate import migrate
from tests.support.scratch import new_folder


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> list[str]:
    """Paths that others may use; sockets and links have modes of no meaning."""
    found = ((path, path.lstat().st_mode) for path in every_path(folder))
    return [
        f"{path.relative_to(folder)} {stat.S_IMODE(mode):o}"
        for path, mode in found
        if mode & OTHERS and not stat.S_ISLNK(mode) and not stat.S_ISSOCK(mode)
    ]


def widen(folder: Path) -> None:
    for path in list(every_path(folder)):
        path.chmod(0o755 if path.is_dir() else 0o644)


def test_a_local_instance_leaves_nothing_to_others_also_where_it_did_before(caplog: pytest.LogCaptureFixture) -> None:
    with new_folder() as folder:
        data = folder / "data"
        postgres = EmbeddedPostgres(data / "postgres", EmbeddedPostgresSettings())
        graph = EmbeddedFalkorDB(data / "graph", EmbeddedFalkorDBSettings())
        found: list[list[str]] = []
        for _ in range(2):
            with data_dir_lock(data):
                url = postgres.start()
                graph.start()
                migrate(url)
                identify_folder(data / "edge")
                service = LocalService("http://127.0.0.1:1", ensure_local_key(data, url), 1)
                with service.announced(data):
                    found.append(open_to_others(data))
            postgres.stop()
            graph.stop()
            widen(data)
            caplog.clear()

    # The data directory itself lets the user of Postgres pass through, where that is another one.
    allowed = [". 710"] if os.geteuid() == 0 else []
    assert found == [allowed, allowed]


def test_what_was_open_is_closed_and_told_of_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("edge/notes/segment", "archive/tenant/notes.parquet", "local.key", "holiday.jpg"):
        file = tmp_path / "data" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("s3cret")
    widen(tmp_path / "data")

    with data_dir_lock(tmp_path / "data"):
        left = open_to_others(tmp_path / "data")
    first = list(caplog.messages)
    caplog.clear()
    with data_dir_lock(tmp_path / "data"):
        pass

    assert left == ["holiday.jpg 644"]  # Not ours; and nobody can enter the folder.
    assert any("who could read there" in line for line in first)
    assert caplog.messages == []


def test_a_shared_folder_and_a_link_are_left_as_they_are(tmp_path: Path) -> None:
    shared, elsewhere = tmp_path / "shared", tmp_path / "elsewhere"
    shared.mkdir()
    shared.chmod(0o1777)
    elsewhere.mkdir(mode=0o755)
    (tmp_path / "link").symlink_to(elsewhere)

    make_private(shared)
    make_private(tmp_path / "link")

    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o755


def test_indexes_and_archives_are_their_owners_alone(tmp_path: Path) -> None:
    _create(tmp_path / "edge" / "notes", 4, 1, {"format": 1})
    _replace_on_disk(tmp_path / "archive" / "tenant" / "notes.parquet", b"s3cret")

    assert stat.S_IMODE((tmp_path / "edge").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "edge" / "notes").stat().st_mode) == 0o700
    assert open_to_others(tmp_path / "archive") == []


def test_every_command_makes_files_for_its_owner_alone(tmp_path: Path) -> None:
    guarded(lambda: (tmp_path / "receipt.json").write_text("{}"))  # type: ignore[arg-type]

    assert open_to_others(tmp_path) == []


@pytest.mark.parametrize("module", ["deployments.searcher", "actors.scheduler", "jobs.runner", "jobs.launching"])
def test_every_process_that_writes_files_denies_them_to_others(module: str) -> None:
    source = Path(*module.split(".")).with_suffix(".py")

    assert "    deny_others()\n" in (Path(__file__).parents[2] / source).read_text()
