"""A store of another installation is refused, with what separates the two."""

import asyncio
import uuid
from pathlib import Path

import pytest

from lamina.core.tiers import ProjectionName
from lamina.errors import Misconfigured
from lamina.projections.locations import OwnedFolder, location_of
from lamina.projections.ownership import adopt_store, claim_installation
from lamina.settings.loading import Settings
from lamina.settings.stores import MeilisearchSettings, Neo4jServerSettings, QdrantServerSettings
from lamina.stores.index.meilisearch.index import MeilisearchIndex
from lamina.stores.postgres.builds import claim_store, read_installation
from tests.support.application import settings_for
from tests.support.meilisearch import Wire, served

FOREIGN = str(uuid.uuid4())


def on_meilisearch(url: str) -> MeilisearchIndex:
    return MeilisearchIndex(MeilisearchSettings(url=url), "lamina_notes", dimension=64)


def settings_on(database: str, tmp_path: Path, url: str) -> Settings:
    return settings_for(database, tmp_path, hybrid=MeilisearchSettings(url=url))


async def claim(settings: Settings, database: str, url: str, *, is_new: bool) -> None:
    await asyncio.to_thread(
        claim_installation, settings, database, "notes", None, lambda: on_meilisearch(url), is_new=is_new
    )


async def installation_at(url: str) -> str | None:
    store = on_meilisearch(url)
    found = await store.installation()
    await store.close()
    return found


async def belong_to(url: str, installation: str) -> None:
    store = on_meilisearch(url)
    await store.belong_to(installation)
    await store.close()


async def test_the_first_start_makes_a_store_its_own_and_the_next_ones_find_it_so(
    database: str, tmp_path: Path
) -> None:
    with served(Wire()) as url:
        for is_new in (True, False):
            await claim(settings_on(database, tmp_path, url), database, url, is_new=is_new)

        assert await installation_at(url) == read_installation(database)


async def test_a_store_of_another_installation_is_refused_with_the_setting_that_separates_them(
    database: str, tmp_path: Path
) -> None:
    with served(Wire()) as url:
        await belong_to(url, FOREIGN)

        for is_new in (True, False):
            with pytest.raises(Misconfigured, match=rf"{FOREIGN}.*hybrid\.prefix.*lamina adopt"):
                await claim(settings_on(database, tmp_path, url), database, url, is_new=is_new)

        assert await installation_at(url) == FOREIGN


async def test_what_an_earlier_release_kept_there_is_taken_silently_and_what_it_did_not_is_refused(
    database: str, tmp_path: Path
) -> None:
    with served(Wire()) as url:
        settings = settings_on(database, tmp_path, url)
        with pytest.raises(Misconfigured, match="did not put there"):
            await claim(settings, database, url, is_new=False)
        claim_store(database, "notes", location_of(settings, "notes"), is_new=False, is_shared=True)

        await claim(settings, database, url, is_new=False)

        assert await installation_at(url) == read_installation(database)


async def test_a_server_that_is_away_holds_no_start_up(database: str, tmp_path: Path) -> None:
    url = "http://127.0.0.1:1"
    await claim(settings_on(database, tmp_path, url), database, url, is_new=True)


async def test_an_adopted_store_is_no_foreign_one_any_more(database: str, tmp_path: Path) -> None:
    with served(Wire()) as url:
        await belong_to(url, FOREIGN)

        former = await asyncio.to_thread(adopt_store, database, lambda: on_meilisearch(url))
        await claim(settings_on(database, tmp_path, url), database, url, is_new=False)

        assert former == FOREIGN


@pytest.mark.parametrize(
    ("projection", "section", "separating"),
    [
        ("notes", {"hybrid": QdrantServerSettings(url="/nowhere")}, r"hybrid\.prefix"),
        ("graph", {"graph": Neo4jServerSettings(url="bolt://127.0.0.1:1")}, r"graph\.database"),
    ],
)
def test_each_kind_of_store_names_what_separates_it(
    database: str, tmp_path: Path, projection: ProjectionName, section: dict[str, object], separating: str
) -> None:
    folder = OwnedFolder(tmp_path)
    asyncio.run(folder.belong_to(FOREIGN))
    settings = settings_for(database, tmp_path, **section)

    with pytest.raises(Misconfigured, match=separating):
        claim_installation(settings, database, projection, None, lambda: folder, is_new=False)
