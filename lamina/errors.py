"""The error tree: one class for each reaction of a caller.

The HTTP edge maps every class to one status; the CLI prints the text. Fields go to
``super().__init__`` so that an error survives pickling between processes.
"""

from typing import ClassVar


class LaminaError(Exception):
    """Base of every error that a caller may act on.

    Attributes:
        wording: Its text, a format string over its fields; without one, the arguments.
    """

    wording: ClassVar[str] = ""

    def __str__(self) -> str:
        return self.wording.format_map(vars(self)) if self.wording else super().__str__()


class InvalidInput(LaminaError):
    """The request cannot be accepted as it is; change the named field.

    Args:
        field: Path of the field, as the caller wrote it (``messages.0.content``).
        reason: What is wrong and what would be right.
    """

    wording = "{field}: {reason}"

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(field, reason)
        self.field = field
        self.reason = reason


class TooLarge(InvalidInput):
    """The request would take more of the machine than one may; send it in parts.

    Args:
        field: Path of the field that is too large.
        reason: What it would take, and the largest size that is accepted.
    """


class Unauthenticated(LaminaError):
    """No key, or a key that is unknown or revoked; send a valid one."""

    wording = "no valid API key; send `Authorization: Bearer <key>` (create one with `lamina keys create`)"


class InvalidToken(Unauthenticated):
    """A token in place of a key that is not valid; get another one from its issuer.

    Args:
        reason: What is wrong with it.
    """

    wording = "the token is not valid: {reason}; get one from its issuer for this service"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Forbidden(LaminaError):
    """The key is valid but its role does not reach this far.

    Args:
        role: Role of the key.
        needed: Lowest role that would do.
    """

    wording = "this key has the role {role}; this call needs {needed}"

    def __init__(self, role: str, needed: str) -> None:
        super().__init__(role, needed)
        self.role = role
        self.needed = needed


class OutsideBounds(LaminaError):
    """The key is valid but bound to other ids or to fewer verbs; name others, or use another key.

    Args:
        field: The field of the request or of the key that reaches too far.
        reason: How it does, and what would do.
    """

    wording = "{field}: {reason}"

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(field, reason)
        self.field = field
        self.reason = reason


class InsufficientScope(LaminaError):
    """The token is valid but its scopes do not reach this far; ask its issuer for one with these, too.

    Args:
        scopes: All scopes that the call needs.
    """

    wording = "the scopes of this token do not reach this far; get one with {scopes}"

    def __init__(self, scopes: str) -> None:
        super().__init__(scopes)
        self.scopes = scopes


class NotFound(LaminaError):
    """Nothing with this id is visible to the caller.

    Args:
        kind: What was looked for (``note``).
        id: Its id, as the caller wrote it.
        hint: What became of it, if that is known.
    """

    def __init__(self, kind: str, id: str, hint: str = "") -> None:
        super().__init__(kind, id, hint)
        self.kind = kind
        self.id = id
        self.hint = hint

    def __str__(self) -> str:
        return f"no {self.kind} {self.id}{self.hint and f': {self.hint}'}"


class Conflict(LaminaError):
    """The change contradicts stored data.

    Args:
        reason: What it contradicts and how to go on.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PreconditionFailed(LaminaError):
    """The stored row is in another state than the one on which the request insists; read it again.

    Args:
        header: The header that insists (``If-Match``).
        reason: The state that was found, and how to go on.
    """

    wording = "{header}: {reason}"

    def __init__(self, header: str, reason: str) -> None:
        super().__init__(header, reason)
        self.header = header
        self.reason = reason


class Unavailable(LaminaError):
    """A part that the call cannot do without does not answer; try again.

    Args:
        part: Which part (``postgres``, ``embedder``).
        reason: What was seen.
        retry_after_s: After how many seconds a retry makes sense.
    """

    wording = "{part} is not available: {reason}; retry in {retry_after_s} s"

    def __init__(self, part: str, reason: str, retry_after_s: int = 1) -> None:
        super().__init__(part, reason, retry_after_s)
        self.part = part
        self.reason = reason
        self.retry_after_s = retry_after_s


TURN = "turn"
"""Part of the error of a search that had no place among those that run: whoever repeats it repeats no work."""


class Overloaded(Unavailable):
    """A bounded queue is full: nothing was done, retry later."""


class TextRefused(Unavailable):
    """A model takes others, but not this text: the same call again is refused again.

    Args:
        part: Which model (``embedder``).
        reason: How it refuses.
        retry_after_s: As of any other failure of it.
    """


class ModelLimit(Unavailable):
    """The calls or tokens that a model may have for now are used up: it answers again later, whatever the text.

    Args:
        part: Which model (``embedder``).
        reason: Which limit.
        retry_after_s: After how many seconds a retry makes sense.
    """


class LimitReached(Overloaded):
    """A key, tenant or address has used up its share for now; nothing was done, retry later.

    Args:
        part: Whose limit (``tenant``).
        reason: Which limit, and how much it is.
        retry_after_s: After how many seconds a retry makes sense.
    """

    wording = "limit of this {part}: {reason}; retry in {retry_after_s} s"


class Misconfigured(LaminaError):
    """The configuration contradicts the data or the machine; the process must not start.

    Args:
        what: What contradicts what.
        remedy: What the operator can do.
    """

    wording = "{what}; {remedy}"

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what, remedy)
        self.what = what
        self.remedy = remedy


def describe_error(error: BaseException) -> str:
    """Return an error's text: ours and those of late answers as they are, others' first lines with their type.

    Postgres quotes the values of a row in the lines behind the first.
    """
    if isinstance(error, LaminaError | TimeoutError):
        return str(error)
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
