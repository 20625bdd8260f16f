"""Put a store's data back as they were, and check that it is filled again."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from lamina.core.tiers import ProjectionName
from lamina.errors import Unavailable
from lamina.models.hashing import HashingModel
from lamina.projections.audit import audit
from lamina.projections.lost_data import StoreWatch
from lamina.projections.ownership import claim_projection
from lamina.settings.loading import Settings
from lamina.stores.postgres.builds import read_installation
from lamina.stores.postgres.generations import claim_generation
from lamina.stores.postgres.outbox import Outbox, enqueue_all
from tests.support.application import Application

BEFORE, SINCE = "The lighthouse of Brest has a red lamp.", "The ferry to Ouessant leaves at noon."
GONE = "The tide table hangs in the kitchen."


def claim(settings: Settings, url: str, *names: ProjectionName) -> None:
    generation = claim_generation(url, HashingModel().identity)
    for name in names:
        claim_projection(settings, url, name, None if name == "graph" else generation, is_new=False)


def watch(app: Application, name: ProjectionName) -> StoreWatch:
    (parts,) = (parts for parts in app.tiers.values() if name in parts.projections)
    installation = read_installation(app.url)
    fill = partial(enqueue_all, app.url, name)
    return StoreWatch(name, parts.keepers[name], installation, fill, Outbox(app.pool), parts.projections[name].marks)


async def remember(app: Application, text: str) -> str:
    edge = {"subject": text.split()[1], "type": "stands_in", "object": text.rstrip(".").rpartition(" ")[2]}
    assert (await app.client().post("/v1/graph/edges", json={"edges": [edge]})).is_success
    note = (await app.client().post("/v1/notes", json={"content": text})).json()
    await app.indexed()
    return str(note["id"])


async def drift(app: Application, name: ProjectionName) -> int:
    (parts,) = (parts for parts in app.tiers.values() if name in parts.projections)
    found = await audit(Outbox(app.pool), name, parts.projections[name], app.tenant)
    assert found.expected
    return len(found.ids())


async def mended(app: Application, name: ProjectionName) -> tuple[int, list[str]]:
    """Have a store's losses noticed and made up for; return its drift before, and the warnings."""
    watched, said = watch(app, name), []
    before = await drift(app, name)
    for _ in range(2):
        with suppress(Unavailable):
            await watched.look()
            continue
        said.append(watched.reason)
    await app.indexed()
    await watched.look()
    assert not watched.is_filling
    return before, said


async def restored(
    app: Application, name: ProjectionName, save: Callable[[], object], put_back: Callable[[], object]
) -> tuple[int, list[str], int]:
    """Put back an earlier state of a store; return its drift, the warnings, and its drift after the repair."""
    await watch(app, name).store.belong_to(read_installation(app.url))
    await remember(app, BEFORE)
    gone = await remember(app, GONE)
    save()
    await remember(app, SINCE)
    assert (await app.client().delete(f"/v1/notes/{gone}")).is_success
    await app.indexed()
    put_back()
    before, said = await mended(app, name)
    return before, said, await drift(app, name)


def is_noticed(before: int, said: list[str], after: int) -> None:
    assert before > 0
    assert said
    assert all("came back older" in words for words in said)
    assert after == 0
