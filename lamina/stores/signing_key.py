"""The key of an installation that signs receipts: a file that is made once, or one that the settings name."""

import os
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lamina.core.seals import load_private_key, new_private_key
from lamina.errors import InvalidInput, Misconfigured
from lamina.host.private_files import make_private

FILE = "receipts.pem"


def load_signing_key(chosen: Path | None, data_dir: Path) -> Ed25519PrivateKey:
    """Return the key that signs receipts; blocks.

    Args:
        chosen: File of a private key in PEM, if the settings name one.
        data_dir: Where one is made otherwise, which its owner alone can read.

    Raises:
        Misconfigured: If the file cannot be read or made, or holds no such key.
    """
    file = chosen or data_dir / FILE
    try:
        if chosen is None:
            _make(file)
        return load_private_key(file.read_bytes())
    except (OSError, InvalidInput) as error:
        what = f"the key of receipts {file} cannot be read: {error}"
        raise Misconfigured(what, "correct erasure.signing_key") from error


def _make(file: Path) -> None:
    """Make the file whole or not at all; the first of several processes makes it for all."""
    if file.exists():
        return
    make_private(file.parent)
    draft = file.with_name(f"{file.name}.{uuid4().hex}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
            opened.write(new_private_key())
            opened.flush()
            os.fsync(opened.fileno())
        with suppress(FileExistsError):
            os.link(draft, file)
    finally:
        draft.unlink(missing_ok=True)
