"""What errors of Neo4j mean: what an operator must change, and what time heals."""

import re

import pytest
from neo4j.exceptions import ConfigurationError, Neo4jError, ServiceUnavailable

from lamina.settings.stores import Neo4jServerSettings
from lamina.stores.graph.neo4j import refusal
from lamina.stores.graph.store import Dialect, statement

SETTINGS = Neo4jServerSettings(url="bolt://host", user="ann", database="memories")


def told(code: str, message: str = "so it is") -> Neo4jError:
    return Neo4jError._hydrate_neo4j(code=code, message=message)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("Security.Unauthorized", "refuses the user 'ann'; correct graph.user and graph.password"),
        ("Security.AuthenticationRateLimit", "refuses the user 'ann'; correct graph.user and graph.password"),
        ("Security.Forbidden", "allows the user 'ann' too little: so it is; .* in the database 'memories'"),
        ("Database.DatabaseNotFound", "has not the database 'memories'; create it, or correct graph.database"),
        ("Schema.IndexAlreadyExists", "no constraint; drop that index"),
    ],
)
def test_what_an_operator_must_change_is_named(code: str, text: str) -> None:
    refused = refusal(told(f"Neo.ClientError.{code}"), SETTINGS)

    assert refused is not None
    assert re.search(text, str(refused))


def test_a_server_that_cannot_be_spoken_with_is_a_wrong_url() -> None:
    assert "correct graph.url" in str(refusal(ConfigurationError("no"), SETTINGS))


@pytest.mark.parametrize(
    "error",
    [
        ServiceUnavailable("gone"),
        told("Neo.TransientError.Transaction.DeadlockDetected"),
        told("Neo.ClientError.Cluster.NotALeader"),
        told("Neo.DatabaseError.General.UnknownError"),
        told("Neo.ClientError.Statement.SyntaxError"),
        OSError("refused"),
    ],
)
def test_what_passes_is_no_refusal(error: Exception) -> None:
    assert refusal(error, SETTINGS) is None


@pytest.mark.parametrize(("dialect", "name"), [("neo4j", "unique_nodes"), ("falkordb", "index_nodes")])
def test_a_dialect_has_texts_of_its_own_beside_the_shared_ones(dialect: Dialect, name: str) -> None:
    assert statement(name, dialect).startswith("CREATE")
    assert statement("expand", dialect).startswith("UNWIND $ids")


def test_the_schema_of_neo4j_may_be_made_twice() -> None:
    assert all("IF NOT EXISTS" in statement(name, "neo4j") for name in ("unique_nodes", "index_tenants"))
