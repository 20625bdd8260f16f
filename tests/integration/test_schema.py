import psycopg
import pytest

from lamina.errors import Misconfigured
from lamina.stores.postgres.migrate import migrate, migrations
from tests.support.schema import SNAPSHOT, dump


def test_the_schema_is_the_sum_of_its_migrations(database: str) -> None:
    assert dump(database) == SNAPSHOT.read_text()


def test_migrations_are_numbered_without_a_gap() -> None:
    assert [migration.version for migration in migrations()] == list(range(1, len(migrations()) + 1))


def test_migrating_again_changes_nothing(database: str) -> None:
    assert migrate(database) == []


def test_a_database_of_a_newer_release_is_refused_with_the_remedy(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("INSERT INTO schema_migrations VALUES (9999, '9999_future.sql', 'x')")

    with pytest.raises(Misconfigured, match=r"schema version 9999.*run the release that wrote it"):
        migrate(database)


def test_a_failing_migration_leaves_nothing_behind(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from lamina.stores.postgres import migrate as module

    broken = module.Migration(9999, "9999_broken.sql", "CREATE TABLE half_done (id integer); SELECT 1 / 0;")
    monkeypatch.setattr(module, "migrations", lambda: [*migrations(), broken])

    with pytest.raises(psycopg.errors.DivisionByZero):
        migrate(database)

    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT to_regclass('half_done')").fetchone() == (None,)


def test_notes_are_checked_while_others_write_them(database: str) -> None:
    [check] = [migration for migration in migrations() if migration.name == "0040_checked_notes.sql"]
    with psycopg.connect(database) as writer, psycopg.connect(database, autocommit=True) as connection:
        connection.execute("ALTER TABLE notes ADD CONSTRAINT later CHECK (importance >= 0) NOT VALID")
        writer.execute("LOCK TABLE notes IN ROW EXCLUSIVE MODE")
        connection.execute("SET lock_timeout = '2s'")
        connection.execute(check.text.replace("notes_category_check", "later").encode())
        found = connection.execute("SELECT conname, convalidated FROM pg_constraint WHERE conrelid = 'notes'::regclass")

        assert all(is_valid for _, is_valid in found.fetchall())


def test_a_migration_that_a_deadlock_ended_is_applied_again(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from lamina.stores.postgres import migrate as module

    ended = "DO $$ BEGIN IF nextval('tries') < 3 THEN RAISE deadlock_detected; END IF; END $$; CREATE TABLE done ();"
    again = module.Migration(9999, "9999_again.sql", ended)
    monkeypatch.setattr(module, "migrations", lambda: [*migrations(), again])
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE SEQUENCE tries")

        assert migrate(database) == [again.name]
        assert connection.execute("SELECT to_regclass('done') IS NOT NULL").fetchone() == (True,)
