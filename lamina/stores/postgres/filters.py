"""A query's scope and filters as statement parameters."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pgvector import Vector

from lamina.queries import Filters, Place, Query
from lamina.scope import Scope
from lamina.stores.postgres.connection import scope_parameters


def filter_parameters(query: Query) -> dict[str, Any]:
    """Return everything that a searching statement may refer to."""
    embedding = None if query.embedding is None else Vector(np.frombuffer(query.embedding, dtype=np.float32))
    return {
        **list_parameters(query.scope, query.filters),
        "embedding": embedding,
        "generation": query.generation,
        "words": " ".join(query.words),
    }


def list_parameters(scope: Scope, filters: Filters) -> dict[str, Any]:
    """Return everything that a listing statement may refer to."""
    return {
        **scope_parameters(scope),
        "tags": list(filters.tags),
        "since": filters.since,
        "until": filters.until,
        "min_confidence": filters.min_confidence,
    }


def place_parameters(places: Sequence[Place]) -> dict[str, Any]:
    """Return (memory id, chunk) places as two arrays of equal length."""
    return {"ids": [id_ for id_, _ in places], "chunks": [chunk for _, chunk in places]}
