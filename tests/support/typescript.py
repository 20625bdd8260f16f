"""Write what the TypeScript client takes from the service: its types, by openapi-typescript, and a table of its routes.

Run it by `make clients`, which needs Node; a test says when it is due.
"""

import hashlib
import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deployments.api import document
from lamina.client.routes import ListCall
from tests.support.client_calls import METHODS, SCOPE, call_of, route_of

PACKAGE = Path(__file__).resolve().parents[2] / "clients" / "typescript"
SCHEMA, ROUTES = PACKAGE / "src" / "schema.ts", PACKAGE / "src" / "routes.ts"
GENERATOR = "openapi-typescript@7.13.0"
_WORDS = frozenset({"description", "title", "summary", "examples"})


def shape_of(document: Any) -> Any:
    """Return a document without its prose, of which no type depends."""
    if isinstance(document, list):
        return [shape_of(part) for part in document]
    if not isinstance(document, dict):
        return document
    return {name: shape_of(part) for name, part in document.items() if name not in _WORDS or isinstance(part, dict)}


def header_of(document: Mapping[str, Any]) -> str:
    """Return the first line of the types, which names the document that they were made from."""
    text = json.dumps(shape_of({"paths": document["paths"], "components": document["components"]}), sort_keys=True)
    return f"// Written by `make clients` from the OpenAPI document {hashlib.sha256(text.encode()).hexdigest()}.\n"


def routes_text() -> str:
    """Return the table of routes: where a client's scope goes, as in the Python client, and the items of lists."""
    lines = []
    for name in METHODS:
        call = call_of(name)
        body = {**(call.json or {}), **call.form}
        places = {
            "body": [each for each in SCOPE if body.get(each) == SCOPE[each]],
            "query": [each for each in SCOPE if call.params.get(each) == SCOPE[each]],
            "items": call.items if isinstance(call, ListCall) else "",
        }
        given = {place: what for place, what in places.items() if what}
        if given:
            lines.append(f"  {json.dumps(route_of(call))}: {json.dumps(given)},\n")
    return (
        "// Written by `make clients` from the Python client: where the ids of a scope go, and the items of lists.\n"
        "export const ROUTES: Record<string, { body?: string[]; query?: string[]; items?: string }> = {\n"
        f"{''.join(sorted(lines))}}};\n"
    )


def main() -> None:
    """Write both files."""
    ROUTES.write_text(routes_text())
    with tempfile.TemporaryDirectory() as folder:
        source, types = Path(folder) / "openapi.json", Path(folder) / "schema.ts"
        source.write_text(json.dumps(document()))
        command = ["npx", "--yes", GENERATOR, str(source), "--output", str(types), "--default-non-nullable", "false"]
        subprocess.run(command, check=True)
        SCHEMA.write_text(header_of(document()) + types.read_text())


if __name__ == "__main__":
    main()
