"""Generations of vectors: the active one, those being built, and the switch between them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import psycopg
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from lamina.core.ports import ModelIdentity
from lamina.errors import Misconfigured
from lamina.policies.retention.vector_generations import GenerationStatus
from lamina.settings.models import ThresholdName
from lamina.stores.postgres.connection import Connection, Pool, connect, connect_directly
from lamina.stores.postgres.epochs import unsettle_all
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.tiers import EMBEDDED
from lamina.stores.postgres.vector_indexes import refuse_dimension, takes_dimension, unbind_columns, vectors_locked

QUERIES = load_queries("generations.sql")

# Younger memories may lack vectors of a generation that becomes active: the next run of `reembed` embeds them.
GRACE = timedelta(hours=1)
Thresholds = Mapping[ThresholdName, float]


@dataclass(frozen=True, slots=True)
class Generation:
    """The active generation of vectors.

    Args:
        number: From 1.
        identity: The model that makes them.
        began_at: When this database stored its first vector. It tells this database from any other, and from an
            earlier one of the same name.
        activations: How often it became the active one, from 1.
        thresholds: Cosines of the model, by the names of the settings that they replace.
    """

    number: int
    identity: ModelIdentity
    began_at: datetime | None = None
    activations: int = 1
    thresholds: Thresholds = field(default_factory=dict)

    @property
    def suffix(self) -> str:
        """Return the suffix of the names of its indexes and deployments; that of the first generation is empty."""
        place = self.number, self.activations
        return "" if place == (1, 1) else f"-{self.number}-{self.activations}"


def claim_generation(url: str, identity: ModelIdentity, thresholds: Thresholds | None = None) -> Generation:
    """Return the active generation: the first model creates it; another model's generation, once built, replaces it.

    Args:
        url: The database.
        identity: The configured model.
        thresholds: Cosines to store with the generation; the stored ones stay if there are none.

    Raises:
        Misconfigured: If the stores hold vectors of another model and lack this one's, or no index takes this one's.
    """
    refuse_dimension(identity)
    with connect_directly(url) as connection:
        connection.execute(QUERIES["insert_generation"], _parameters(identity, thresholds))
        stored = _active(connection)
    if stored.identity != identity:
        stored = activate_generation(url, identity)
    _make_room(url, identity)
    return _with_thresholds(url, stored, thresholds or stored.thresholds)


def begin_building(url: str, identity: ModelIdentity, thresholds: Thresholds | None = None) -> None:
    """Prepare the stores for a model's vectors beside those that searches read.

    Nothing changes where the columns of vectors are bound to the model's dimension already. Otherwise its generation
    begins, and has its indexes before its first vector.

    Args:
        url: The database.
        identity: The model.
        thresholds: Cosines to store with the generation.

    Raises:
        Misconfigured: If no index takes vectors of the model's dimension.
    """
    refuse_dimension(identity)
    with connect_directly(url) as connection:
        if takes_dimension(connection, identity.dimension):
            return
        connection.execute(QUERIES["begin_generation"], _parameters(identity, thresholds))
    _make_room(url, identity)


def _make_room(url: str, identity: ModelIdentity) -> None:
    """Let the columns take the model's vectors, and index those of the generations in use."""
    with connect_directly(url) as connection:
        if not takes_dimension(connection, identity.dimension):
            with vectors_locked(connection):
                unbind_columns(connection)


def activate_generation(url: str, identity: ModelIdentity, *, grace: timedelta = GRACE) -> Generation:
    """Make a model's generation the active one: every process that starts from now on reads its vectors alone.

    One transaction, which moves no vector and makes every cached answer stale. Processes that still read the old
    generation find its memories until they end.

    Args:
        url: The database.
        identity: The model.
        grace: Memories younger than this may lack vectors.

    Raises:
        Misconfigured: If no run has built the generation, or anything older lacks its vectors.
    """
    with connect_directly(url) as connection, connection.transaction():
        return _switch(connection, identity, grace)


def _switch(connection: psycopg.Connection[DictRow], identity: ModelIdentity, grace: timedelta) -> Generation:
    rows = connection.execute(QUERIES["lock_generations"], _parameters(identity)).fetchall()
    active = next((_generation(row) for row in rows if row["state"] == "active"), None)
    wanted = next((row for row in rows if _identity(row) == identity), None)
    if active is not None and active.identity == identity:
        return active
    if wanted is None:
        raise _other_model(identity, active)
    parameters = {"generation": wanted["generation"], "grace": grace}
    counted = {kind: connection.execute(rows.count, parameters).fetchone() for kind, rows in EMBEDDED.items()}
    lacking = {kind: _lacking(row) for kind, row in counted.items()}
    if any(lacking.values()):
        raise _other_model(identity, active, lacking)
    connection.execute(QUERIES["retire_generation"])
    row = connection.execute(QUERIES["activate_generation"], {"generation": wanted["generation"]}).fetchone()
    unsettle_all(connection)
    assert row is not None  # noqa: S101 - it is locked
    return _generation(row)


def _active(connection: psycopg.Connection[DictRow]) -> Generation:
    row = connection.execute(QUERIES["active_generation"]).fetchone()
    if row is None:
        raise Misconfigured("no embedding generation is active", "restore the row in embedding_generations")
    return _generation(row)


def _with_thresholds(url: str, generation: Generation, thresholds: Thresholds) -> Generation:
    if thresholds == generation.thresholds:
        return generation
    with connect_directly(url) as connection:
        parameters = {"generation": generation.number, "thresholds": Jsonb(dict(thresholds))}
        connection.execute(QUERIES["write_thresholds"], parameters)
    return replace(generation, thresholds=thresholds)


def _parameters(identity: ModelIdentity, thresholds: Thresholds | None = None) -> dict[str, Any]:
    return {
        "model": identity.model,
        "dimension": identity.dimension,
        "normalised": identity.normalised,
        "thresholds": Jsonb(dict(thresholds)) if thresholds else None,
    }


def _identity(row: DictRow) -> ModelIdentity:
    return ModelIdentity(row["model"], row["dimension"], row["normalised"])


def _generation(row: DictRow) -> Generation:
    return Generation(row["generation"], _identity(row), row["created_at"], row["activations"], row["thresholds"] or {})


def _other_model(
    identity: ModelIdentity, active: Generation | None, lacking: Mapping[str, int] | None = None
) -> Misconfigured:
    stored = active.identity.model if active else "no model"
    counts = ", ".join(f"{count} {name}" for name, count in (lacking or {}).items() if count)
    left = f" ({counts} are left)" if counts else ""
    return Misconfigured(
        f"embedding.model is {identity.model}, but the stores hold vectors of {stored}; they cannot be compared",
        f"set embedding.model to {stored}, or first run `python -m jobs reembed` with {identity.model}, which embeds "
        f"everything anew beside the running service{left}, or start with another data_dir or database",
    )


async def list_generations(pool: Pool) -> list[GenerationStatus]:
    """Return every generation, retired ones too, oldest first."""
    async with connect(pool) as connection:
        cursor = await connection.execute(QUERIES["list_generations"])
        return [
            GenerationStatus(row["generation"], _identity(row), row["state"], row["retired_at"]) async for row in cursor
        ]


async def begin_generation(
    connection: Connection, identity: ModelIdentity, thresholds: Thresholds | None = None
) -> int:
    """Return the number of a model's generation; it is being built from now on, unless it is the active one."""
    cursor = await connection.execute(QUERIES["begin_generation"], _parameters(identity, thresholds))
    row = await cursor.fetchone()
    assert row is not None  # noqa: S101 - the upsert returns its row
    return int(row["generation"])


async def active_generation(pool: Pool) -> Generation | None:
    """Return the generation that searches read; ``None`` before the first start."""
    async with connect(pool) as connection:
        return await read_active_generation(connection)


async def read_active_generation(connection: Connection) -> Generation | None:
    """Return the generation that searches read; ``None`` before the first start."""
    row = await (await connection.execute(QUERIES["active_generation"])).fetchone()
    return None if row is None else _generation(row)


async def require_generation(pool: Pool, identity: ModelIdentity) -> Generation:
    """Return the active generation, which must be this model's.

    Raises:
        Misconfigured: If it is another model's, or there is none.
    """
    active = await active_generation(pool)
    if active is None or active.identity != identity:
        stored = active.identity.model if active else "none"
        raise Misconfigured(
            f"embedding.model is {identity.model}, the stores hold vectors of {stored}",
            "run the job with the settings of the service",
        )
    return active


async def lacks_vectors(pool: Pool) -> bool:
    """Report whether any row of any tenant lacks vectors of the active generation."""
    active = await active_generation(pool)
    if active is None:
        return False
    parameters = {"generation": active.number, "grace": timedelta(0)}
    async with connect(pool) as connection:
        for rows in EMBEDDED.values():
            if _lacking(await (await connection.execute(rows.count, parameters)).fetchone()):
                return True
    return False


def _lacking(row: DictRow | None) -> int:
    return int(row["lacking"]) if row else 0
