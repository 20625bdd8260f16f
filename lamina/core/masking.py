"""Secrets: names that stand for them, and how texts are masked."""

import re

_NAME = re.compile(
    r"key(?!word|_cache_s)|passw|passphrase|pwd|token(?!s)|secret|credential|connection_string|authorization",
    re.IGNORECASE,
)
# To the last @ before a space: a password may hold @ and / that should have been written as %40 and %2F.
_USER_INFO = re.compile(r"(?<!/)//[^\s'\"]{0,256}@")
_PARAMETER = re.compile(r"\b(?=\w{0,64}?(?:passw|pwd|secret|token|key))(\w++=)[^&\s'\"]++", re.IGNORECASE)


def is_secret(name: object) -> bool:
    """Report whether the value of a key of this name must never be shown."""
    return _NAME.search(str(name)) is not None


def mask_secrets(text: str) -> str:
    """Return a text without the users and passwords of the URLs in it."""
    return _PARAMETER.sub(r"\1…", _USER_INFO.sub("//…@", text))
