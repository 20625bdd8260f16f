"""Digest everything that a cached value depends on."""

import hashlib
import json
from typing import Any

from lamina.core.cache_layers import CacheKey, Layer


def digest(*parts: Any) -> bytes:
    """Return the SHA-256 of the parts: text, numbers, booleans, ``None``, bytes, and mappings and sequences of them.

    Different parts have different digests, for JSON quotes the texts that it joins: ("a", "bc") is not
    ("ab", "c"), and "1" is not 1.

    Raises:
        TypeError: For a part of another type.
    """
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=_bytes_as_json)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def embedding_key(generation: int, text: str) -> CacheKey:
    """Return the key of a text's embedding by a generation's model."""
    return CacheKey(Layer.EMBEDDINGS, digest("embedding", generation, text))


def _bytes_as_json(part: Any) -> Any:
    if isinstance(part, bytes):
        return {"\0bytes": part.hex()}
    raise TypeError(f"a key cannot hold a {type(part).__name__}")
