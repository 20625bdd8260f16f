"""A Neo4j whose data folder is put back as it was an hour ago."""

import shutil
from pathlib import Path

import pytest

from lamina.models.hashing import HashingModel
from tests.support.application import running, settings_for
from tests.support.neo4j_server import Neo4jServer, missing_for_neo4j
from tests.support.older_stores import claim, is_noticed, restored
from tests.support.scratch import new_folder


async def test_a_graph_on_neo4j_whose_data_folder_is_put_back_gets_what_it_lacks(database: str, tmp_path: Path) -> None:
    if missing := missing_for_neo4j():
        pytest.skip(missing)
    with new_folder() as home, new_folder() as backup:
        server = Neo4jServer(home)
        try:
            server.start()
            settings = settings_for(database, tmp_path, graph=server.settings)
            async with running(settings, database, HashingModel(), follow=False) as app:
                claim(settings, database, "graph")

                def save() -> None:
                    # While nobody writes, as a snapshot of its disk: each start takes 7 s.
                    shutil.copytree(home / "data", backup / "data")

                def put_back() -> None:
                    server.kill()
                    shutil.rmtree(home / "data")
                    shutil.copytree(backup / "data", home / "data")
                    server.start()

                is_noticed(*await restored(app, "graph", save, put_back))
        finally:
            server.kill()
