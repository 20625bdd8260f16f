"""The erasure of users, from the rows to the receipt."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from lamina.core.erasures import Remnant
from lamina.core.ports import Embedder
from lamina.core.seals import key_id, public_pem, seal
from lamina.core.tiers import ProjectionName
from lamina.ingest.erasure import EraseElsewhere, Eraser
from lamina.maintenance.erasures import Compaction, ErasedPlaces, Erasures, Seal
from lamina.projections.audit import Audit
from lamina.projections.leftovers import remove_leftovers
from lamina.settings.loading import Settings
from lamina.stores.postgres.connection import Connection, Pool, in_transaction
from lamina.stores.postgres.erasure import erase_elsewhere
from lamina.stores.postgres.erasures import ErasureTable
from lamina.stores.postgres.generations import Generation
from lamina.stores.postgres.graph_trash import erase_user_graph
from lamina.stores.postgres.operations import erase_user_operations
from lamina.stores.postgres.outbox import Outbox
from lamina.stores.postgres.rewriting import rewrite_tables
from lamina.stores.postgres.trash import erase_user_trash
from lamina.stores.signing_key import load_signing_key
from lamina.wiring.archives import build_archived_notes
from lamina.wiring.caches import CacheParts
from lamina.wiring.services import build_memory_linker
from lamina.wiring.stores import session_url, utc_now

MIB = 1024**2


@dataclass(frozen=True, slots=True)
class ErasureParts:
    """The parts of a replica that an erasure reaches."""

    pool: Pool
    embedder: Embedder
    generation: Generation
    caches: CacheParts
    outbox: Outbox
    audits: Mapping[ProjectionName, Audit]
    compactions: Mapping[ProjectionName, Compaction]


def build_erasures(settings: Settings, parts: ErasureParts) -> Erasures:
    """Build the erasure of users."""
    table, chosen = ErasureTable(parts.pool), settings.erasure

    async def forget(tenant: str) -> None:
        await parts.caches.flush()
        await parts.caches.clearing.clear(tenant)
        await parts.caches.shared.forget(tenant)

    async def leftovers() -> Sequence[Remnant]:
        former = await table.former_stores()
        return await asyncio.to_thread(remove_leftovers, settings, parts.generation, former)

    return Erasures(
        session_url(settings),
        table,
        parts.outbox,
        build_eraser(settings, parts),
        ErasedPlaces(
            audits=parts.audits,
            compactions=parts.compactions,
            forget=forget,
            rewrite=lambda: rewrite_tables(session_url(settings), largest_bytes=chosen.rewrite_mib * MIB),
            leftovers=leftovers,
            cached_for=timedelta(seconds=max(settings.caches.turn_hash.ttl_s, settings.caches.swarm.ttl_s)),
        ),
        build_seal(settings),
        clock=utc_now,
        wait_s=chosen.wait_s,
    )


def build_seal(settings: Settings) -> Seal:
    """Build the signing of receipts."""

    async def sign(fields: Mapping[str, Any]) -> tuple[Mapping[str, Any], str, str]:
        key = await asyncio.to_thread(load_signing_key, settings.erasure.signing_key, settings.data_dir)
        public = key.public_key()
        return seal(fields, key), key_id(public), public_pem(public)

    return sign


def build_eraser(settings: Settings, parts: ErasureParts) -> Eraser:
    """Build the erasure of the rows of users."""
    archives, tables = build_archived_notes(settings, parts.pool), parts.caches.tables

    async def trash(tenant: str, user: str) -> int:
        async def act(connection: Connection) -> int:
            memories = await erase_user_trash(connection, tenant, user)
            return memories + await erase_user_graph(connection, tenant, user)

        return await in_transaction(parts.pool, act)

    elsewhere: Mapping[str, EraseElsewhere] = {
        "responses": tables.responses.erase_user,
        "response_chains": partial(erase_elsewhere, parts.pool, "response_chains"),
        "archived": lambda tenant, user: archives.erase_user(tenant, user, utc_now()),
        "idempotency_keys": partial(erase_elsewhere, parts.pool, "idempotency_keys"),
        "keys": partial(erase_elsewhere, parts.pool, "keys"),
        "trash": trash,
        "operations": partial(erase_user_operations, parts.pool),
        "events": partial(erase_elsewhere, parts.pool, "events"),
    }
    linker = build_memory_linker(settings, parts.embedder, parts.generation.number)
    return Eraser(parts.pool, linker, elsewhere)
