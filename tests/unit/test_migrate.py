import pytest

from lamina.errors import Misconfigured
from lamina.stores.postgres.migrate import Migration, migrations, pending

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
