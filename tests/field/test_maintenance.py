"""Field cases 36 and 57: a job touches nobody else's rows, and many tenants cost each of them nothing."""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.sql import SQL, Identifier

from lamina.core.runs import JobName
from lamina.embedded import EmbeddedPostgres
from lamina.maintenance.row_jobs import DECAY, EDGES, ENTITIES, sweep_of
from lamina.models.hashing import HashingModel
from lamina.stores.postgres import aging, job_changes, job_runs
from lamina.stores.postgres.connection import QUERIES as SESSION_QUERIES
from lamina.stores.postgres.generations import claim_generation
from lamina.stores.postgres.job_changes import RowChange, _json
from tests.support.application import Application
from tests.support.databases import new_database
from tests.support.jobs import in_days, run_job

Json = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A job, and after how many days it has something to do to what `fill` has stored."""

    job: JobName
    days: float


QUERIES = {**aging.QUERIES, **job_changes.QUERIES, **job_runs.QUERIES}
# Add a job here, and to `fill` what gives it something to do.
CASES = (Case("sweep", 8), Case("decay", 12), Case("entities", 400), Case("edges", 100))

# Tables of nobody: queues, and the installation's own. A tenant's rows of the outbox are empty when it is indexed.
LEFT_OUT = {
    "projection_stores",
    "refused_texts",
    "stale_words",
    "archive_identity",
    "outbox",
    "schema_migrations",
    "embedding_generations",
    "job_runs",
    "job_partitions",
    "job_changes",
    "former_stores",
    "hash_secret",
    "receipt_keys",
    "api_keys",  # Their last use is written some time later.
    "usage_days",  # What requests used is written some time later.
}
# Tables without a tenant, whose rows belong to those of another one.
OWNED = {
    "edge_evidence": "edge_id IN (SELECT id FROM edges WHERE tenant = %(tenant)s)",
    "edge_replacements": "edge_id IN (SELECT id FROM edges WHERE tenant = %(tenant)s)",
    "entity_embeddings": "entity_id IN (SELECT id FROM entities WHERE tenant = %(tenant)s)",
    "entity_witnesses": "entity_id IN (SELECT id FROM entities WHERE tenant = %(tenant)s)",
    "file_versions": "document_id IN (SELECT id FROM documents WHERE tenant = %(tenant)s)",
    "note_sources": "note_id IN (SELECT id FROM notes WHERE tenant = %(tenant)s)",
    "note_versions": "note_id IN (SELECT id FROM notes WHERE tenant = %(tenant)s)",
    "procedure_embeddings": "procedure_id IN (SELECT id FROM procedures WHERE tenant = %(tenant)s)",
    "procedure_outcomes": "procedure_id IN (SELECT id FROM procedures WHERE tenant = %(tenant)s)",
    "procedure_witnesses": "procedure_id IN (SELECT id FROM procedures WHERE tenant = %(tenant)s)",
    "webhook_dead_letters": "webhook_id IN (SELECT id FROM webhooks WHERE tenant = %(tenant)s)",
}


async def fill(app: Application) -> None:
    """Store something of every kind, in two workspaces."""
    for workspace in ("default", "other"):
        ids = {"workspace": workspace}
        first = await post(app, "notes", content="Marta Keller repairs the old ferry at Mill Lane", user="ann", **ids)
        note = {"content": "Marta Keller repairs it", "derived_from": [first["id"]], **ids}
        await post(app, "notes", **note)
        await app.client().patch(f"/v1/notes/{first['id']}", json={"content": "Marta Keller repaired the old ferry"})
        said = [{"role": "user", "content": f"Rolf Brandt said so {number} times"} for number in range(4)]
        await post(app, "turns", session="s1", messages=said, **ids)
        edge = {"subject": "Marta Keller", "type": "works_at", "object": "Initech", "source": "wiki"}
        await post(app, "graph/edges", edges=[edge], **ids)
        procedure = await post(app, "procedures", trigger="Deploy the shop", action="Run the script", **ids)
        await post(app, f"procedures/{procedure['id']}/outcomes", succeeded=True)
        await post(app, "documents", key="handbook", title="Handbook", content="The keel is painted. " * 50, **ids)
        await app.client().patch("/v1/profile", json={"user": "ann", "patch": {"likes": "tea"}, **ids})
    await app.indexed()


async def post(app: Application, path: str, **body: Any) -> Json:
    answer = await app.client().post(f"/v1/{path}", json=body)
    assert answer.is_success, (path, answer.text)
    stored: Json = answer.json()
    return stored


@pytest.fixture
async def neighbour(application: Application) -> AsyncIterator[Application]:
    """A tenant beside that of the application, with the same memories, and an id that goes on where the other ends."""
    other = application.for_tenant(f"{application.tenant}%")
    for app in (application, other):
        await fill(app)
    yield other
    await other.close_clients()


def tables(url: str) -> dict[str, str]:
    """Return each table with the condition by which its rows are those of a tenant."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT t.table_name, bool_or(c.column_name = 'tenant') FROM information_schema.tables t "
            "JOIN information_schema.columns c USING (table_schema, table_name) "
            "WHERE table_schema = 'public' AND table_type = 'BASE TABLE' GROUP BY 1"
        ).fetchall()
    owned = {name: "tenant = %(tenant)s" if has_tenant else OWNED.get(name, "") for name, has_tenant in found}
    return {name: condition for name, condition in owned.items() if name not in LEFT_OUT}


def checksums(app: Application) -> dict[str, tuple[int, str | None]]:
    """Return of each table how many rows the tenant has, and a checksum of them."""
    text = "SELECT count(*), md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {} t WHERE "
    with psycopg.connect(app.url) as connection:
        found = {
            name: connection.execute(
                SQL(text).format(Identifier(name)) + SQL(condition),  # type: ignore[arg-type]
                {"tenant": app.tenant},
            ).fetchone()
            for name, condition in tables(app.url).items()
        }
    return {name: row for name, row in found.items() if row is not None}


def test_every_table_is_a_tenants_or_known_to_be_nobodys(database: str) -> None:
    known = tables(database)

    assert [name for name, condition in known.items() if not condition] == []
    assert known.keys() >= {"notes", "messages", "entities", "edges", *OWNED}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.job)
async def test_a_run_on_one_tenant_leaves_every_row_of_another_unchanged(
    application: Application, neighbour: Application, case: Case
) -> None:
    before, own = checksums(neighbour), checksums(application)

    run = await run_job(application, case.job, in_days(case.days))
    await application.indexed()

    assert run.counts.changed > 0
    assert checksums(application) != own
    assert checksums(neighbour) == before
    assert {"notes", "messages", "edges", "entities", "procedures", "documents"} <= {
        name for name, (count, _) in before.items() if count
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.job)
async def test_a_run_on_one_workspace_leaves_the_rows_of_the_tenants_other_one_unchanged(
    application: Application, case: Case
) -> None:
    await fill(application)

    run = await run_job(application, case.job, in_days(case.days), workspace="other")

    whole = await run_job(application, case.job, in_days(case.days))
    assert run.counts.changed > 0
    assert run.counts.units == 1
    assert whole.counts.changed == run.counts.changed


FEW, MANY, ROWS_OF_EACH = 500, 5_000, 4
FILLS = (
    """
    INSERT INTO workspace_settings (tenant, workspace, settings, updated_at)
    SELECT 'tenant ' || t, 'w', '{"limit": 5}', now() FROM generate_series(%(first)s::int, %(last)s::int) AS t
    """,
    """
    INSERT INTO epochs (tenant, workspace, namespace)
    SELECT 'tenant ' || t, 'w', 'default' FROM generate_series(%(first)s::int, %(last)s::int) AS t
    """,
    """
    INSERT INTO notes (id, tenant, workspace, namespace, category, content, content_hash, importance, confidence,
                       source, event_at, last_hit_at)
    SELECT gen_random_uuid(), 'tenant ' || t, 'w', 'default', 'note', 'note ' || n, sha256(n::text::bytea), 0.5, 1,
           'api', now(), now() - interval '400 days'
    FROM generate_series(%(first)s::int, %(last)s::int) AS t, generate_series(1, %(rows)s::int) AS n
    """,
    """
    INSERT INTO feedback (memory_id, tenant, useful, pinned_at)
    SELECT id, tenant, 1, NULL FROM notes WHERE substr(tenant, 8)::int BETWEEN %(first)s AND %(last)s
    UNION ALL
    SELECT gen_random_uuid(), 'tenant ' || t, 0, now() FROM generate_series(%(first)s::int, %(last)s::int) AS t
    """,
    """
    INSERT INTO entities (id, tenant, workspace, namespace, key, name, type, confidence, generation, embedding,
                          first_seen_at, last_seen_at)
    SELECT gen_random_uuid(), 'tenant ' || t, 'w', 'default', 'name ' || n, 'name ' || n, 'thing', 0.5, 1,
           array_fill(0.05, ARRAY[384])::vector, now() - interval '400 days', now() - interval '400 days'
    FROM generate_series(%(first)s::int, %(last)s::int) AS t, generate_series(1, %(rows)s::int) AS n
    """,
    """
    INSERT INTO edges (id, tenant, workspace, namespace, from_id, type, to_id, strength, confidence, first_seen_at,
                       last_seen_at)
    SELECT gen_random_uuid(), tenant, workspace, namespace, id, 'is', id, 0.5, 0.5, last_seen_at, last_seen_at
    FROM entities
    WHERE substr(tenant, 8)::int BETWEEN %(first)s AND %(last)s
    """,
    """
    INSERT INTO memory_links (from_id, to_id, kind, from_tier, tenant, workspace, namespace, source, strength, seen_at)
    SELECT gen_random_uuid(), id, 'mentions', 2, tenant, workspace, namespace, 'note', 0.5, last_seen_at
    FROM entities
    WHERE substr(tenant, 8)::int BETWEEN %(first)s AND %(last)s
    """,
)
# Add the policy of a job here that reads by the scope and changes row by row.
CANDIDATES = (sweep_of(7), DECAY, ENTITIES, EDGES)
TENANT = "tenant 7"
SCOPE: Json = {"tenant": TENANT, "workspace": "w", "namespace": "default"}
UNITS: Json = SCOPE | {"partition": 0, "partitions": 1, "after": None, "limit": 500}
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Cost:
    """What a statement costs.

    Args:
        read: The tables it reads, each with its index.
        rows: Rows of tables that it came by.
    """

    read: frozenset[tuple[str, str]]
    rows: float


@pytest.fixture(scope="module")
def costs(postgres: EmbeddedPostgres) -> Iterator[tuple[dict[str, Cost], dict[str, Cost]]]:
    """Return what the statements of one tenant's run cost among few tenants, and among many."""
    with (
        new_database(postgres) as url,
        psycopg.connect(url, autocommit=True, row_factory=dict_row) as connection,
    ):
        claim_generation(url, HashingModel().identity)
        connection.execute(SESSION_QUERIES["set_for_session"])
        connection.execute("DROP INDEX IF EXISTS entities_embedding")  # No job searches it, and it fills slowly.
        add_tenants(connection, 1, FEW)
        among_few = all_costs(connection)
        add_tenants(connection, FEW + 1, MANY)
        yield among_few, all_costs(connection)


def add_tenants(connection: "psycopg.Connection[dict[str, Any]]", first: int, last: int) -> None:
    for fill_table in FILLS:
        connection.execute(fill_table.encode(), {"first": first, "last": last, "rows": ROWS_OF_EACH})
    connection.execute("VACUUM (ANALYZE)")


def all_costs(connection: "psycopg.Connection[dict[str, Any]]") -> dict[str, Cost]:
    asked: dict[str, Json] = {"list_job_namespaces": UNITS, "count_job_namespaces": SCOPE}
    for policy in CANDIDATES:
        page = SCOPE | {"moment": datetime.now(UTC), "after": None, "limit": 2_000, "idle": policy.idle}
        asked[policy.candidates] = page
        changes = policy.decide(connection.execute(QUERIES[policy.candidates], page).fetchall(), page["moment"])
        assert len(changes) == ROWS_OF_EACH
        asked[f"change_{policy.rows}"] = changes_as_parameters(changes) | {"relation": policy.rows}
    return {name: cost(connection, name, parameters) for name, parameters in asked.items()}


def changes_as_parameters(changes: Sequence[RowChange]) -> Json:
    return {
        "ids": [change.id for change in changes],
        "guards": [_json(change.guard) for change in changes],
        "afters": [_json(change.after) for change in changes],
        "tenant": TENANT,
        "run_id": None,
    }


def cost(connection: "psycopg.Connection[dict[str, Any]]", name: str, parameters: Json) -> Cost:
    nodes = [node for node in ran(explain(connection, name, parameters)["Plan"]) if "Relation Name" in node]
    return Cost(
        frozenset((node["Relation Name"], index_of(node)) for node in nodes),
        sum((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"] for node in nodes),
    )


def explain(connection: "psycopg.Connection[dict[str, Any]]", name: str, parameters: Json) -> Json:
    """Explain a statement as it runs, and take back what it changes."""
    with connection.transaction(force_rollback=True):
        text = b"EXPLAIN (ANALYZE, FORMAT JSON) " + QUERIES[name]
        row = connection.execute(text, parameters).fetchone()
    assert row is not None
    plan: Json = row["QUERY PLAN"][0]
    return plan


def ran(node: Json) -> Iterator[Json]:
    """Return the nodes that ran, but those that write."""
    if node["Actual Loops"] and node["Node Type"] != "ModifyTable":
        yield node
    for below in node.get("Plans", []):
        yield from ran(below)


def index_of(node: Json) -> str:
    below = (one["Index Name"] for one in node.get("Plans", []) if one["Node Type"] == "Bitmap Index Scan")
    return str(node.get("Index Name") or next(below, ""))


def test_ten_times_the_tenants_cost_a_run_on_one_of_them_no_other_plan_and_no_more_rows(
    costs: tuple[dict[str, Cost], dict[str, Cost]],
) -> None:
    few, many = costs

    # By which of two indexes on their ids rows are found, the planner decides by their sizes.
    tables = [{name: {table for table, _ in one.read} for name, one in costs.items()} for costs in (few, many)]
    assert tables[0] == tables[1]
    assert {name: one.rows for name, one in many.items()} == {name: one.rows for name, one in few.items()}
    unindexed = {(name, table) for name, one in many.items() for table, index in one.read if not index}
    assert unindexed == set()
