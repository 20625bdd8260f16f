"""Embedding generations: which model's vectors the stores hold, which are being built, and the switch."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import psycopg
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import Jsonb

from lamina.core.ports import ModelIdentity
from lamina.errors import Misconfigured
from lamina.settings import ThresholdName
from lamina.stores.postgres.connection import Connection, Pool, connect
from lamina.stores.postgres.epochs import unsettle_all
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.tiers import EMBEDDED

QUERIES = load_queries("generations.sql")

GRACE = timedelta(hours=1)
"""What is younger may lack vectors of a generation that becomes active: the next run of `reembed` catches it up."""
Thresholds = Mapping[ThresholdName, float]


@dataclass(frozen=True, slots=True)
class Generation:
    """The active generation of vectors.

    Args:
        number: From 1.
        identity: The model that makes them.
        began_at: When this database took its first vector; no other database has the same, nor this one made anew.
        activations: How often it became the active one, from 1.
        thresholds: Cosines that belong to the model, by the names of the settings whose place they take.
    """

    number: int
    identity: ModelIdentity
    began_at: datetime | None = None
    activations: int = 1
    thresholds: Thresholds = field(default_factory=dict)

    @property
    def suffix(self) -> str:
        """Return what tells its indexes and deployments from those of others; the first generation has none."""
        place = self.number, self.activations
        return "" if place == (1, 1) else f"-{self.number}-{self.activations}"


@dataclass(frozen=True, slots=True)
class GenerationStatus:
    """A generation in any state.

    Args:
        state: ``active``, ``building`` or ``retired``.
        retired_at: When another one took its place.
    """

    number: int
    identity: ModelIdentity
    state: str
    retired_at: datetime | None

    @property
    def is_active(self) -> bool:
        """Tell whether searches read it."""
        return self.state == "active"


def claim_generation(url: str, identity: ModelIdentity, thresholds: Thresholds | None = None) -> Generation:
    """Return the active generation; the first model to come creates it, another one that is built takes its place.

    Args:
        url: The database.
        identity: The configured model.
        thresholds: What to keep with the generation; what was kept stays if there are none.

    Raises:
        Misconfigured: If the stores hold vectors of another model and lack this one's, or cannot hold this one's.
    """
    with _connected(url) as connection:
        column = connection.execute(QUERIES["vector_dimension"]).fetchone()
        _refuse_other_dimension(identity, int(column["dimension"]) if column else 0)
        connection.execute(QUERIES["insert_generation"], _parameters(identity, thresholds))
        stored = _active(connection)
    if stored.identity != identity:
        stored = activate_generation(url, identity)
    return _with_thresholds(url, stored, thresholds or stored.thresholds)


def activate_generation(url: str, identity: ModelIdentity, *, grace: timedelta = GRACE) -> Generation:
    """Make a model's generation the active one: whoever begins from now on reads its vectors alone.

    One transaction, which moves no vector and ends everything that was cached. Those who still read the old
    generation find its memories until they end.

    Args:
        url: The database.
        identity: The model.
        grace: What is younger may lack vectors.

    Raises:
        Misconfigured: If no run has built the generation, or anything older lacks its vectors.
    """
    with _connected(url) as connection, connection.transaction():
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
    return _activated(connection, wanted["generation"])


def _activated(connection: psycopg.Connection[DictRow], number: int) -> Generation:
    connection.execute(QUERIES["retire_generation"])
    row = connection.execute(QUERIES["activate_generation"], {"generation": number}).fetchone()
    unsettle_all(connection)
    assert row is not None  # noqa: S101 - it is locked
    return _generation(row)


def _connected(url: str) -> psycopg.Connection[DictRow]:
    return psycopg.connect(url, autocommit=True, row_factory=dict_row)


def _active(connection: psycopg.Connection[DictRow]) -> Generation:
    row = connection.execute(QUERIES["active_generation"]).fetchone()
    if row is None:
        raise Misconfigured("no embedding generation is active", "restore the row in embedding_generations")
    return _generation(row)


def _with_thresholds(url: str, generation: Generation, thresholds: Thresholds) -> Generation:
    if thresholds == generation.thresholds:
        return generation
    with _connected(url) as connection:
        parameters = {"generation": generation.number, "thresholds": Jsonb(dict(thresholds))}
        connection.execute(QUERIES["keep_thresholds"], parameters)
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


def _refuse_other_dimension(identity: ModelIdentity, dimension: int) -> None:
    if identity.dimension != dimension:
        raise Misconfigured(
            f"embedding.model {identity.model} makes vectors of {identity.dimension} dimensions, "
            f"the stores hold {dimension}",
            f"set embedding.model to a model of {dimension} dimensions",
        )


def _other_model(
    identity: ModelIdentity, active: Generation | None, lacking: Mapping[str, int] | None = None
) -> Misconfigured:
    stored = active.identity.model if active else "no model"
    return Misconfigured(
        f"embedding.model is {identity.model}, but the stores hold vectors of {stored}; they cannot be compared",
        f"set embedding.model to {stored}, or first run `python -m jobs reembed` with {identity.model}, which embeds "
        f"everything anew beside the running service{_told(lacking or {})}, or start with another data_dir or database",
    )


def _told(lacking: Mapping[str, int]) -> str:
    parts = [f"{count} {name}" for name, count in lacking.items() if count]
    return f" ({', '.join(parts)} are left)" if parts else ""


async def list_generations(pool: Pool) -> list[GenerationStatus]:
    """Return every generation that there is or was, oldest first."""
    async with connect(pool) as connection:
        cursor = await connection.execute(QUERIES["list_generations"])
        return [
            GenerationStatus(row["generation"], _identity(row), row["state"], row["retired_at"]) async for row in cursor
        ]


async def begin_generation(
    connection: Connection, identity: ModelIdentity, thresholds: Thresholds | None = None
) -> int:
    """Return the number of a model's generation; one that is not the active one is built from now on."""
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
    """Return the active generation, to which a model's vectors may be added.

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
    """Tell whether something of anybody has no vectors of the active generation."""
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
