"""Notes that nobody found for a year, which a sweep makes cold."""

from typing import Any

import psycopg


def idle(url: str, tenant: str, namespaces: int, notes: int = 4) -> int:
    """Write warm notes that nobody found for a year; return how many."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO epochs (tenant, workspace, namespace) SELECT %s, 'w', 'n' || n FROM generate_series(1, %s) n",
            [tenant, namespaces],
        )
        connection.execute(
            "INSERT INTO notes (id, tenant, workspace, namespace, category, content, content_hash, importance,"
            " confidence, source, event_at, last_hit_at)"
            " SELECT gen_random_uuid(), %s, 'w', 'n' || n, 'note', 'note ' || i, sha256_of('note ' || i), 0.5, 1,"
            " 'api', now(), now() - interval '1 year' FROM generate_series(1, %s) n, generate_series(1, %s) i",
            [tenant, namespaces, notes],
        )
    return namespaces * notes


def cold(url: str, tenant: str = "acme") -> int:
    return one_of(url, "SELECT count(*) FROM notes WHERE temperature = 'cold' AND tenant = %s", tenant)


def one_of(url: str, statement: str, *values: Any) -> Any:
    with psycopg.connect(url) as connection:
        row = connection.execute(statement.encode(), values).fetchone()
    return row and row[0]
