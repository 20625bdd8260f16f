"""One store of a projection takes its changes: the one that a service claimed last."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from uuid import UUID

from lamina.core.erasures import Remnant
from lamina.core.ports import AuditableProjection, Change, Compactable, Identified, Projection, Rebuildable
from lamina.core.tiers import ProjectionName
from lamina.errors import Misconfigured, Unavailable
from lamina.projections.locations import index_path, location_of
from lamina.projections.marks import HighWaterMark
from lamina.settings.loading import Settings, store_settings
from lamina.settings.stores import EmbeddedFalkorDBSettings, QdrantEdgeSettings
from lamina.stores.postgres.builds import claim_store, read_installation, read_store_status, served_store
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.generations import Generation

logger = logging.getLogger(__name__)
Result = TypeVar("Result")
# What tells the stores of two installations apart, by the kind of store.
SEPARATING = {
    "qdrant_edge": "data_dir",
    "qdrant": "hybrid.prefix and vectors.prefix",
    "meilisearch": "hybrid.prefix",
    "neo4j": "graph.database",
    "falkordb": "graph.url (each number of a database in it is another)",
}
Check = Callable[[], Awaitable[None]]


class RebuildableProjection(AuditableProjection[Any], Rebuildable[Any], Protocol):
    """A projection that can be fed, audited, and rebuilt beside itself."""


class IdentifiedStore(Identified, Protocol):
    """A store that tells whose it is, and is released afterwards."""

    async def close(self) -> None:
        """Release the connections."""
        ...


class ServerStore(IdentifiedStore, Protocol):
    """The store of a projection on a server."""

    async def prepare(self) -> bool:
        """Make the parts that are missing on the server; tell whether the store is empty."""
        ...


@dataclass(frozen=True, slots=True)
class OwnedBuild:
    """The store of a build that takes changes only while its projection is kept here.

    Args:
        store: Takes the changes.
        check: Raises if another store is to take them: refused ones stay in the outbox for that one.
    """

    store: Projection[Any]
    check: Check

    async def apply(self, changes: Sequence[Change[Any]]) -> None:
        """Take over the given states.

        Raises:
            Unavailable: If another store is to take them.
        """
        await self.check()
        await self.store.apply(changes)

    async def flush(self) -> None:
        """Return when everything applied so far survives a loss of power."""
        await self.store.flush()


@dataclass(frozen=True, slots=True)
class OwnedProjection(OwnedBuild):
    """A projection that takes changes only while it is kept here.

    Args:
        place: Where it is kept, without secrets.
        marks: Number its flushes, so that a store that is restored from an older state is noticed.
    """

    store: AuditableProjection[Any]
    place: str
    marks: HighWaterMark | None = None

    async def flush(self) -> None:
        """Return when everything applied so far survives a loss of power."""
        mark = await self.marks.before_flush() if self.marks else None
        await self.store.flush()
        if self.marks:
            await self.marks.after_flush(mark)

    async def compact(self, tenant: str) -> Sequence[Remnant]:
        """Have the store written anew without its deleted rows; return where some of them may be left.

        Raises:
            Unavailable: If another store takes the changes, or the store does not answer.
        """
        await self.check()
        if isinstance(self.store, Compactable):
            return await self.store.compact(tenant)
        return (Remnant(self.place, "what was deleted from it", "when the server has written its own files anew"),)

    async def inventory(self, tenant: str) -> Mapping[UUID, str]:
        """Return every memory of a tenant in it with the fingerprint of its state."""
        return await self.store.inventory(tenant)


@dataclass(frozen=True, slots=True)
class OwnedRebuildable(OwnedProjection):
    """A projection that takes changes only while it is kept here, and can be rebuilt beside itself."""

    store: RebuildableProjection

    def beside(self, build: int) -> OwnedBuild:
        """Return the store of a build, which takes changes under the same condition."""
        return OwnedBuild(self.store.beside(build), self.check)

    async def switch(self, build: int) -> None:
        """Have searches use the store of the build from now on."""
        await self.store.switch(build)


def owned(
    store: AuditableProjection[Any], check: Check, place: str, marks: HighWaterMark | None = None
) -> OwnedProjection:
    """Return the projection with the check before every change; it can be rebuilt beside itself if the store can.

    Args:
        store: The store.
        check: Raises if another store is to take the changes.
        place: Where it is, without secrets.
        marks: Number its flushes.
    """
    if isinstance(store, Rebuildable):
        return OwnedRebuildable(store, check, place, marks)
    return OwnedProjection(store, check, place, marks)


def owner_check(pool: Pool, projection: ProjectionName, location: str, generation: Generation | None) -> Check:
    """Return a check that refuses changes once another store is to take them; it costs one small statement.

    Args:
        pool: Connections to Postgres.
        projection: The projection.
        location: Place of its store here: another service may keep the projection elsewhere by now.
        generation: The generation of its vectors, if it has any. States are read with the vectors of the active
            generation: an index that was opened before a switch must not take over those of another model.
    """

    async def check() -> None:
        feeding = await read_store_status(pool, projection, location, generation)
        if generation is not None and not feeding.is_active:
            raise Unavailable("index", f"vectors of {generation.identity.model} are not the active ones any more")
        if not feeding.is_here:
            raise Unavailable(projection, "another service keeps it elsewhere now; end this one")

    return check


def claim_projection(
    settings: Settings, url: str, projection: ProjectionName, generation: Generation | None, *, is_new: bool
) -> bool:
    """Keep a projection here from now on; have it take over everything, if it may have missed changes.

    It may if it is empty, or the service kept it elsewhere before. Deletions that it missed do not come back
    in searches, which read Postgres; the audit removes the remains.

    Args:
        settings: Where the projection is kept.
        url: The database.
        projection: The projection.
        generation: The generation of its vectors.
        is_new: Whether it is empty, or does not answer.

    Returns:
        Whether everything is in the outbox for it now.
    """
    location = location_of(settings, projection, generation)
    is_shared = not getattr(store_settings(settings, projection), "is_local", False)
    return claim_store(url, projection, location, is_new=is_new, is_shared=is_shared)


def is_kept_here(settings: Settings, url: str, projection: ProjectionName, generation: Generation | None) -> bool:
    """Report whether a service keeps the projection where these settings say, or none has kept it anywhere."""
    if isinstance(store_settings(settings, projection), EmbeddedFalkorDBSettings):
        return True  # `lamina up` alone runs it.
    return served_store(url, projection) in (None, location_of(settings, projection, generation))


def refuse_stray_index(settings: Settings, url: str, projection: ProjectionName, generation: Generation) -> None:
    """Refuse to begin embedded indexes beside embedded ones: most often the command runs in another folder.

    Raises:
        Misconfigured: If the service keeps the projection in an embedded index of another folder.
    """
    served = served_store(url, projection) or ""
    if isinstance(store_settings(settings, projection), QdrantEdgeSettings) and served.startswith("qdrant_edge"):
        place = index_path(settings, projection, generation)
        raise Misconfigured(
            f"{place} is not where the service keeps {projection}: {served.partition(' ')[2]}",
            "name the service's --data-dir; a service that starts in another one fills it by itself",
        )


def is_new_store(make: Callable[[], ServerStore]) -> bool:
    """Report whether a server's store is empty, after making the parts that are missing; blocks.

    One that does not answer counts as empty: to apply everything again costs time, to miss something costs answers.

    Args:
        make: Connects to the store: connections belong to the event loop that uses them.

    Raises:
        Misconfigured: If the server refuses the key, is too old, or holds other vectors under this name.
    """

    async def prepare() -> bool:
        store = make()
        try:
            return await store.prepare()
        except Unavailable as error:
            logger.warning("the store of a projection is filled again: %s", error)
            return True
        finally:
            await store.close()

    return _in_thread(prepare)


def claim_installation(
    settings: Settings,
    url: str,
    projection: ProjectionName,
    generation: Generation | None,
    make: Callable[[], IdentifiedStore],
    *,
    is_new: bool,
) -> None:
    """Connect to the store of a projection and settle whose it is; blocks.

    Raises:
        Misconfigured: If it is another installation's.
    """

    async def claim() -> None:
        store = make()
        try:
            await settle_installation(settings, url, projection, generation, store, is_new=is_new)
        finally:
            await store.close()

    _in_thread(claim)


async def settle_installation(
    settings: Settings,
    url: str,
    projection: ProjectionName,
    generation: Generation | None,
    store: Identified,
    *,
    is_new: bool,
) -> None:
    """Have the store of a projection belong to this installation, unless it is another one's.

    One from before stores told whose they are gets its identity now, if it is empty or the service kept the projection
    there. One that does not answer is asked at the next start.

    Raises:
        Misconfigured: If it is another installation's.
    """
    chosen, location = store_settings(settings, projection), location_of(settings, projection, generation)
    # Of this machine alone: its place is written otherwise when its folder is moved.
    is_local = getattr(chosen, "is_local", False) or getattr(chosen, "url", "").startswith("unix://")
    mine = read_installation(url)
    try:
        found = await store.installation()
        if found == mine:
            return
        if found is not None or not (is_new or is_local or served_store(url, projection) == location):
            raise _another_installation(location, projection, SEPARATING[chosen.kind], found)
        await store.belong_to(mine)
    except Unavailable as error:
        logger.warning("whose the store of %s is cannot be asked: %s", projection, error)


def adopt_store(url: str, make: Callable[[], IdentifiedStore]) -> str | None:
    """Have a store belong to this installation from now on, whose ever it was; return whose that was; blocks.

    Raises:
        Unavailable: If it does not answer.
    """
    mine = read_installation(url)

    async def adopt() -> str | None:
        store = make()
        try:
            found = await store.installation()
            await store.belong_to(mine)
        finally:
            await store.close()
        return found

    return _in_thread(adopt)


def _another_installation(
    location: str, projection: ProjectionName, separating: str, found: str | None
) -> Misconfigured:
    whose = "something that this installation did not put there" if found is None else f"the installation {found}"
    return Misconfigured(
        f"{location} holds the {projection} of {whose}",
        f"separate them by {separating}; where the other one is gone, as after a restore, run `lamina adopt`",
    )


def _in_thread(run: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run a coroutine in a loop of its own: the caller's may run."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(run())).result()
