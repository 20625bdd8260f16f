import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lamina.core.ports import ModelIdentity
from lamina.errors import Misconfigured
from lamina.projections.leftovers import remove_leftovers
from lamina.settings.loading import Settings
from lamina.settings.stores import FalkorDBServerSettings, NoGraphSettings
from lamina.stores.postgres.erasures import FormerStore
from lamina.stores.postgres.generations import Generation
from lamina.stores.signing_key import load_signing_key

GENERATION = Generation(2, ModelIdentity("model", 384, normalised=True))
LEFT = datetime(2026, 3, 1, tzinfo=UTC)


def settings_of(data_dir: Path, graph: object) -> Settings:
    return Settings(data_dir=data_dir, graph=graph)  # type: ignore[arg-type]


def test_stores_that_are_used_stay_unnamed_and_others_are_named_or_removed(tmp_path: Path) -> None:
    used = ["notes-2-1", "notes-2-1.build-7", "messages-2-1", "cold-2-1", "documents-2-1"]
    for name in (*used, "notes", "notes.format-2", "new-x1"):
        (tmp_path / "edge" / name).mkdir(parents=True)
    for name in ("graph", "graph.unreadable", "archive", "postgres"):
        (tmp_path / name).mkdir()

    remnants = remove_leftovers(settings_of(tmp_path, NoGraphSettings()), GENERATION, [])

    assert [remnant.where for remnant in remnants] == ["edge/notes/*", "graph/*"]
    assert not (tmp_path / "graph.unreadable").exists()
    assert not (tmp_path / "edge" / "notes.format-2").exists()
    assert (tmp_path / "edge" / "notes-2-1.build-7").exists()


def test_what_was_set_aside_and_cannot_be_removed_is_named(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "edge").mkdir()
    (tmp_path / "edge" / "notes-2-1.unreadable").symlink_to(elsewhere)

    remnants = remove_leftovers(settings_of(tmp_path, NoGraphSettings()), GENERATION, [])

    assert [remnant.where for remnant in remnants] == ["edge/notes-2-1.unreadable/*"]


def test_the_graph_that_lamina_up_runs_is_used(tmp_path: Path) -> None:
    (tmp_path / "graph").mkdir()
    settings = settings_of(tmp_path, FalkorDBServerSettings(url="unix:///run/graph.sock"))

    assert remove_leftovers(settings, GENERATION, []) == []


def test_stores_that_a_move_left_are_named_where_they_are(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "edge" / "notes"
    elsewhere.mkdir(parents=True)
    former = [
        FormerStore("notes", f"qdrant_edge id {elsewhere}", LEFT),
        FormerStore("cold", "qdrant_edge id /nowhere/edge/cold", LEFT),
        FormerStore("graph", "neo4j bolt://host neo4j", LEFT),
        FormerStore("graph", "embedded", LEFT),
    ]

    remnants = remove_leftovers(settings_of(tmp_path / "here", NoGraphSettings()), GENERATION, former)

    assert [remnant.where for remnant in remnants] == [f"qdrant_edge id {elsewhere}", "neo4j bolt://host neo4j"]
    assert remnants[1].holds == "what graph held until 2026-03-01"


async def test_the_key_of_an_installation_is_made_once(tmp_path: Path) -> None:
    made = [asyncio.to_thread(load_signing_key, None, tmp_path / "data") for _ in range(8)]
    keys = {key.private_bytes_raw() for key in await asyncio.gather(*made)}

    assert len(keys) == 1
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["receipts.pem"]


def test_a_file_that_is_no_key_is_refused_with_its_setting(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret")

    with pytest.raises(Misconfigured, match=r"no private key in PEM.*erasure\.signing_key"):
        load_signing_key(tmp_path / "key", tmp_path)
