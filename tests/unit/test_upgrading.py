import re
from pathlib import Path

from lamina.stores.postgres.migrate import migrations

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "upgrading.md"


def test_the_document_on_upgrades_says_of_each_migration_what_old_replicas_make_of_it() -> None:
    rows = re.findall(r"^\| (\d{4})(?: to (\d{4}))? \|", DOCUMENT.read_text(), re.MULTILINE)

    told = {version for first, last in rows for version in range(int(first), int(last or first) + 1)}

    assert told == {migration.version for migration in migrations()}
