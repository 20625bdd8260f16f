"""`lamina receipts`: fetch receipts of erasures and deletions and their keys, and check a receipt offline."""

import hmac
import json
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer
from rich.markup import escape

from lamina.cli.common import fail, with_client
from lamina.cli.console import console, errors
from lamina.client import Client
from lamina.core.erasures import hash_user
from lamina.core.operations import RECEIPT_FORMAT
from lamina.errors import InvalidInput, NotFound
from lamina.text.visible import show_controls

app = typer.Typer(help="Receipts of erasures and deletions: fetch, check.", no_args_is_help=True)
FAULTY = 1


@app.command("show")
@with_client()
def show(
    client: Client,
    id: Annotated[
        UUID,
        typer.Argument(help="Id of the erasure that `DELETE /v1/users` returned, or of the deletion of a scope."),
    ],
) -> None:
    """Print the receipt of an erasure, or of a deletion of a scope, as JSON; exit 1 if it is not complete."""
    try:
        found, waits_for = client.erasure(id), "its turn"
        waits_for = "; ".join(found["waits_for"]) or waits_for
    except NotFound:
        found = client.operation(id)
        waits_for = found["waits_for"] or "its turn"
    if found["receipt"] is None:
        fail(f"{id} has no receipt: it is no deletion of a scope, or not complete; it waits for: {waits_for}")
    print(json.dumps(found["receipt"], indent=1))  # noqa: T201 - not wrapped, not coloured


@app.command("keys")
@with_client()
def show_keys(client: Client) -> None:
    """Print the public keys that check receipts, in PEM."""
    for found in client.receipt_keys()["keys"]:
        print(show_controls(found["pem"]), end="")  # noqa: T201 - not wrapped, not coloured


@app.command("verify")
def verify(
    file: Annotated[Path, typer.Argument(help="The receipt, as JSON.")],
    key: Annotated[Path, typer.Option("--key", help="File of the public keys, from `lamina receipts keys`.")],
    user: Annotated[str | None, typer.Option("--user", "-u", help="The user that it should be about.")] = None,
) -> None:
    """Check a receipt offline; exit 1, with everything that is wrong, if it was changed or is about somebody else."""
    from lamina.core.seals import faults_of, load_public_keys, parse_document  # noqa: PLC0415 - needs cryptography

    receipt = parse_document(_text(file))
    faults = faults_of(receipt, load_public_keys(_text(key)))
    if not faults and user is not None and not _is_about(receipt, user):
        faults = [f"it is not about {user}"]
    for fault in faults:
        errors.print(f"[bold red]not genuine[/] {escape(fault)}", highlight=False, soft_wrap=True)
    if faults:
        raise typer.Exit(FAULTY)
    remains = receipt["remains"]
    kind = "deletion" if receipt["format"] == RECEIPT_FORMAT else "erasure"
    console.print(f"genuine: {kind} {receipt['id']}, complete since {receipt['completed_at']}", highlight=False)
    if kind == "deletion":
        named = [f"{name} {id_}" for name, id_ in receipt["scope"].items() if id_ is not None]
        place = ", ".join(named) or f"the whole tenant {receipt['tenant']}"
        deleted = ", ".join(f"{count} {name}" for name, count in sorted(receipt["deleted"].items())) or "nothing"
        console.print(escape(f"  of {place}; deleted: {deleted}"), highlight=False)
    for remnant in remains:
        until = remnant["until"] or remnant["ends"]
        line = f"  may remain in {remnant['where']}: {remnant['holds']}; until: {until}"
        console.print(escape(line), highlight=False, soft_wrap=True)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(str(file), f"cannot be read: {error}") from error


def _is_about(receipt: dict[str, object], user: str) -> bool:
    match receipt.get("user"):
        case {"salt": str(salt), "sha256": str(expected)}:
            return hmac.compare_digest(hash_user(bytes.fromhex(salt), user).hex(), expected)
        case _:
            return False
