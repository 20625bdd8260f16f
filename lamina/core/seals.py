"""Seals of JSON documents: Ed25519 signatures over a hash of each field, so that a changed field can be named.

Hashes and signatures are made of JSON in canonical form (RFC 8785): the order of keys, blanks and the spelling of
numbers do not matter.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from lamina.errors import InvalidInput

SEAL = "seal"
_END_OF_KEY = "-----END PUBLIC KEY-----"


def new_private_key() -> bytes:
    """Return a new private key: PEM, PKCS #8, without a password."""
    return Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def load_private_key(pem: bytes) -> Ed25519PrivateKey:
    """Read a private key.

    Raises:
        InvalidInput: If it is no Ed25519 key in PEM without a password.
    """
    try:
        key = load_pem_private_key(pem, None)
    except (ValueError, TypeError) as error:
        raise InvalidInput("key", "is no private key in PEM without a password") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidInput("key", "is no Ed25519 key; make one with `openssl genpkey -algorithm ed25519`")
    return key


def load_public_keys(text: str) -> list[Ed25519PublicKey]:
    """Read public keys in PEM, one after the other.

    Raises:
        InvalidInput: If there is none, or one is no Ed25519 key.
    """
    blocks = [block + _END_OF_KEY for block in text.split(_END_OF_KEY)[:-1]]
    try:
        keys = [load_pem_public_key(block.encode()) for block in blocks]
    except ValueError as error:
        raise InvalidInput("key", "is no public key in PEM") from error
    found = [key for key in keys if isinstance(key, Ed25519PublicKey)]
    if not found or len(found) < len(keys):
        raise InvalidInput("key", "holds no Ed25519 public key in PEM; `lamina receipts keys` prints the service's")
    return found


def public_pem(key: Ed25519PublicKey) -> str:
    """Return a public key in PEM."""
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def key_id(key: Ed25519PublicKey) -> str:
    """Return the id of a key: 32 hex digits of a hash of it."""
    return hashlib.sha256(key.public_bytes(Encoding.Raw, PublicFormat.Raw)).hexdigest()[:32]


def seal(fields: Mapping[str, Any], key: Ed25519PrivateKey) -> dict[str, Any]:
    """Return the document with its seal.

    Args:
        fields: JSON; whole numbers below 2 to the power of 53.
        key: Signs it.
    """
    hashes = {name: hashlib.sha256(rfc8785.dumps(value)).hexdigest() for name, value in fields.items()}
    signed: dict[str, Any] = {"algorithm": "Ed25519", "key": key_id(key.public_key()), "sha256": hashes}
    signature = base64.b64encode(key.sign(rfc8785.dumps(signed))).decode()
    return {**fields, SEAL: {**signed, "signature": signature}}


def parse_document(text: str) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        InvalidInput: If it is none, or an object in it has a name twice, of which readers see different ones.
    """
    try:
        found = json.loads(text, object_pairs_hook=_without_repetition)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("receipt", f"is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidInput("receipt", "is no JSON object")
    return found


def faults_of(document: Mapping[str, Any], keys: Iterable[Ed25519PublicKey]) -> list[str]:
    """Return everything that is wrong with a sealed document, in words; nothing if the seal holds."""
    sealed = document.get(SEAL)
    if not isinstance(sealed, Mapping):
        return ["it has no seal"]
    by_id = {key_id(key): key for key in keys}
    signed = {name: value for name, value in sealed.items() if name != "signature"}
    key = by_id.get(str(sealed.get("key")))
    if key is None:
        return [f"it is signed with the key {sealed.get('key')}, given is {' and '.join(by_id) or 'none'}"]
    if not _is_signed(key, signed, sealed.get("signature")):
        return ["the signature does not belong to the seal: the seal was changed, or another key signed it"]
    return _changed(document, signed.get("sha256"))


def _changed(document: Mapping[str, Any], hashes: object) -> list[str]:
    expected: Mapping[str, object] = hashes if isinstance(hashes, Mapping) else {}
    fields = {name: value for name, value in document.items() if name != SEAL}
    missing = [f"{name} is missing" for name in sorted(expected.keys() - fields.keys())]
    added = [f"{name} was added" for name in sorted(fields.keys() - expected.keys())]
    both = sorted(expected.keys() & fields.keys())
    return missing + added + [f"{name} was changed" for name in both if _hash_or_none(fields[name]) != expected[name]]


def _is_signed(key: Ed25519PublicKey, signed: Mapping[str, Any], signature: object) -> bool:
    try:
        key.verify(base64.b64decode(str(signature), validate=True), rfc8785.dumps(dict(signed)))
    except (InvalidSignature, binascii.Error, rfc8785.CanonicalizationError):
        return False
    return True


def _hash_or_none(value: Any) -> str | None:
    try:
        return hashlib.sha256(rfc8785.dumps(value)).hexdigest()
    except rfc8785.CanonicalizationError:  # Numbers that no receipt has.
        return None


def _without_repetition(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"it says {next(name for name in names if names.count(name) > 1)!r} twice")
    return found
