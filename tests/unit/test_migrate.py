import re
import time

import pytest

from lamina.errors import Misconfigured
from lamina.stores.postgres.migrate import Migration, is_outage, migrations, pending, wait_for_server

FIRST = Migration(1, "0001_core.sql", "CREATE TABLE notes ();")
SECOND = Migration(2, "0002_graph.sql", "CREATE TABLE edges ();")
THIRD = Migration(3, "0003_cache.sql", "CREATE TABLE cache ();")
ALL = [FIRST, SECOND, THIRD]


def applied(*steps: Migration) -> dict[int, str]:
    return {step.version: step.checksum for step in steps}


@pytest.mark.parametrize(
    ("done", "todo"),
    [([], ALL), ([FIRST], [SECOND, THIRD]), ([FIRST, SECOND], [THIRD]), (ALL, []), ([SECOND], [FIRST, THIRD])],
)
def test_what_was_not_applied_is_pending_oldest_first(done: list[Migration], todo: list[Migration]) -> None:
    assert pending(ALL, applied(*done)) == todo


@pytest.mark.parametrize("known", [[FIRST, SECOND], [FIRST], []])
def test_a_database_that_is_newer_is_refused(known: list[Migration]) -> None:
    with pytest.raises(Misconfigured, match=rf"schema version 3, this release knows {len(known)}") as refused:
        pending(known, applied(*ALL))

    assert "newer" in refused.value.remedy


@pytest.mark.parametrize("done", [[FIRST], [FIRST, SECOND], ALL])
def test_a_migration_that_was_rewritten_is_refused_naming_it(done: list[Migration]) -> None:
    rewritten = Migration(1, FIRST.name, FIRST.text + "\nDROP TABLE notes;")

    with pytest.raises(Misconfigured, match=r"0001_core\.sql") as refused:
        pending([rewritten, SECOND, THIRD], applied(*done))

    assert "new migration" in refused.value.remedy


def test_a_migration_may_be_renamed() -> None:
    renamed = Migration(1, "0001_foundation.sql", FIRST.text)

    assert pending([renamed, SECOND], applied(FIRST)) == [SECOND]


def test_the_migrations_of_this_release_are_numbered_without_gaps() -> None:
    released = migrations()

    assert [migration.version for migration in released] == list(range(1, len(released) + 1))
    assert all(migration.text.strip() for migration in released)


def test_no_migration_reads_a_whole_table_under_the_lock_that_changes_it() -> None:
    late = [migration for migration in migrations() if migration.version >= 30]
    empty = {table for migration in late for table in re.findall(r"CREATE TABLE (\w+)", migration.text)}

    for migration in late:
        changed = set(re.findall(r"ALTER TABLE (\w+)\s+(?!VALIDATE)", migration.text)) - empty
        indexed = set(re.findall(r"CREATE (?:UNIQUE )?INDEX \w+\s+ON (\w+)", migration.text))
        added = re.findall(r"ADD CONSTRAINT [^;]+;", migration.text)
        assert not changed & indexed, f"{migration.name}: build the index in a migration of its own"
        assert all(text.endswith(" NOT VALID;") for text in added), f"{migration.name}: validate in one of its own"
        assert not changed or "VALIDATE" not in migration.text, migration.name


# Written by the work on operations, which begins again after a deadlock.
OF_OPERATIONS = {"operations", "trash"}


def test_no_migration_since_0042_locks_two_tables_that_are_written() -> None:
    late = [migration for migration in migrations() if migration.version >= 42]
    for migration in late:
        created = set(re.findall(r"CREATE TABLE (\w+)", migration.text))
        changed = re.findall(r"ALTER TABLE (\w+)|CREATE (?:UNIQUE )?INDEX \w+\s+ON (\w+)", migration.text)
        locked = {altered or indexed for altered, indexed in changed} - created - OF_OPERATIONS
        assert len(locked) <= 1, f"{migration.name}: turns may hold one of {locked} and wait for another"


@pytest.mark.parametrize(
    ("said", "may_pass"),
    [
        ('connection to server at "10.0.0.1", port 5432 failed: Connection refused', True),
        ("FATAL:  the database system is starting up", True),
        ('could not translate host name "postgres" to address', True),
        ('FATAL:  password authentication failed for user "lamina"', False),
        ('FATAL:  database "lamina" does not exist', False),
    ],
)
def test_only_what_may_pass_by_itself_is_waited_for(said: str, may_pass: bool) -> None:
    assert is_outage(said) == may_pass


@pytest.mark.parametrize(("wait_s", "least_s"), [(0, 0), (0.5, 0.45)])
def test_a_server_that_never_comes_is_waited_for_as_long_as_it_is_set_to_be(wait_s: float, least_s: float) -> None:
    begin = time.monotonic()

    wait_for_server("postgresql://nobody@127.0.0.1:1/nowhere", wait_s)

    assert least_s <= time.monotonic() - begin < least_s + 120


def test_what_is_no_url_is_not_waited_for() -> None:
    begin = time.monotonic()

    wait_for_server("no url", 600)

    assert time.monotonic() - begin < 300
