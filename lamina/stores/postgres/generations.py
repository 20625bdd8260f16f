"""Embedding generations: which model's vectors the stores hold."""

from dataclasses import dataclass
from datetime import datetime

import psycopg
from psycopg.rows import dict_row

from lamina.errors import Misconfigured
from lamina.ports import ModelIdentity
from lamina.stores.postgres.connection import statement


@dataclass(frozen=True, slots=True)
class Generation:
    """The active generation of vectors.

    Args:
        number: From 1.
        identity: The model that makes them.
        began_at: When this database took its first vector; no other database has the same, nor this one made anew.
    """

    number: int
    identity: ModelIdentity
    began_at: datetime | None = None


def claim_generation(url: str, identity: ModelIdentity) -> Generation:
    """Return the active generation; the first model to come creates it.

    Raises:
        Misconfigured: If the stores hold vectors of another model, or cannot hold this one's.
    """
    with psycopg.connect(url, autocommit=True, row_factory=dict_row) as connection:
        column = connection.execute(statement("vector_dimension")).fetchone()
        _refuse_other_dimension(identity, int(column["dimension"]) if column else 0)
        connection.execute(
            statement("insert_generation"),
            {"model": identity.model, "dimension": identity.dimension, "normalised": identity.normalised},
        )
        row = connection.execute(statement("active_generation")).fetchone()
    if row is None:
        raise Misconfigured("no embedding generation is active", "restore the row in embedding_generations")
    stored = ModelIdentity(row["model"], row["dimension"], row["normalised"])
    _refuse_other_model(identity, stored)
    return Generation(row["generation"], stored, row["created_at"])


def _refuse_other_dimension(identity: ModelIdentity, dimension: int) -> None:
    if identity.dimension != dimension:
        raise Misconfigured(
            f"embedding.model {identity.model} makes vectors of {identity.dimension} dimensions, "
            f"the stores hold {dimension}",
            f"set embedding.model to a model of {dimension} dimensions",
        )


def _refuse_other_model(identity: ModelIdentity, stored: ModelIdentity) -> None:
    if identity != stored:
        raise Misconfigured(
            f"embedding.model is {identity.model}, but the stores hold vectors of {stored.model}; "
            "they cannot be compared",
            f"set embedding.model to {stored.model}, or start with another data_dir or database",
        )
