"""Which Neo4j the tests start, and which worker asks it."""

import pytest

from tests.support.neo4j_server import version_told
from tests.support.schedule import needs_neo4j


@pytest.mark.parametrize(
    ("told", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "25-ea" 2025-09-16', 25),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_the_version_of_java_is_read_as_any_of_them_tells_it(told: str, version: int | None) -> None:
    assert version_told(told) == version


@pytest.mark.parametrize(
    ("test", "asks"),
    [
        ("tests/contract/test_graph_store.py::test_links_are_followed[on_neo4j]", True),
        ("tests/integration/test_neo4j.py::test_what_is_written_is_found", True),
        ("tests/contract/test_graph_store.py::test_links_are_followed[on_bolt]", False),
    ],
)
def test_one_worker_has_all_tests_that_ask_a_neo4j(test: str, asks: bool) -> None:
    assert needs_neo4j(test) is asks
