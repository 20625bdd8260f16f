"""Rendezvous hashing: few keys move when an owner comes or goes."""

import hashlib
from collections.abc import Collection

_LENGTH_BYTES = 4


def owner(names: Collection[str], key: tuple[str, ...]) -> str:
    """Return the name that a key, made of ids, belongs to: the one whose hash with the key is highest.

    Every process that is given the same names finds the same owner, in any order of the names. A new name takes its
    share of the keys from all others; no key moves between those. Costs a hash a name, about 2 µs.

    Source:
        Thaler, Ravishankar, IEEE/ACM Transactions on Networking 1998.
    """
    encoded = encode_ids(key)  # Once for all names.
    return max(names, key=lambda name: (hashlib.blake2b(encoded + name.encode(), digest_size=8).digest(), name))


def encode_ids(ids: tuple[str, ...]) -> bytes:
    """Return the ids as bytes, each after its length, so that no two tuples read the same."""
    texts = [id_.encode() for id_ in ids]
    return b"".join(len(text).to_bytes(_LENGTH_BYTES) + text for text in texts)
