"""Write the OpenAPI document of a release, with which later ones are compared (`python -m tests.support.openapi`)."""

import json
from pathlib import Path

from deployments.api import document

RELEASED = Path(__file__).resolve().parents[2] / "clients" / "openapi.json"


def main() -> None:
    """Write the document; the list of what breaks since then begins anew."""
    RELEASED.write_text(json.dumps(document(), indent=1, ensure_ascii=False) + "\n")
    listed = RELEASED.with_name("breaking_changes.txt")
    listed.write_text("".join(line for line in listed.read_text().splitlines(keepends=True)[:2]))


if __name__ == "__main__":
    main()
