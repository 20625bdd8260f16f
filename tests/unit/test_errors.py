import pickle

import pytest

from lamina import errors
from lamina.errors import (
    Conflict,
    Forbidden,
    InsufficientScope,
    InvalidInput,
    InvalidToken,
    LaminaError,
    LimitReached,
    Misconfigured,
    ModelLimit,
    NotFound,
    OutsideBounds,
    Overloaded,
    PreconditionFailed,
    TextRefused,
    TooLarge,
    Unauthenticated,
    Unavailable,
)

EXAMPLES: list[LaminaError] = [
    LaminaError("something"),
    InvalidInput("messages.0.content", "is blank; send at least one visible character"),
    TooLarge("messages", "is about 9 tokens; at most 5 are accepted; send it in parts"),
    Unauthenticated(),
    InvalidToken("it expired at 12:00"),
    InsufficientScope("lamina.read lamina.write"),
    Forbidden("reader", "writer"),
    OutsideBounds("user", "is bob; this key is bound to ann, name one of these"),
    NotFound("note", "123"),
    PreconditionFailed("If-Match", "the file was written since; read it again"),
    Conflict("another note has the same text; change that one"),
    Unavailable("postgres", "connection refused", 5),
    Unavailable("postgres", "connection refused"),
    Overloaded("embedder", "512 calls are waiting", 2),
    TextRefused("embedder", "its endpoint answers 413"),
    ModelLimit("embedder", "its endpoint answers 429, its limit is reached", 60),
    LimitReached("tenant", "600 requests a minute", 2),
    Misconfigured("the vectors have 384 dimensions, the index 768", "run lamina reembed"),
]


def test_there_is_an_example_of_every_class() -> None:
    classes = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LaminaError)}

    assert {type(error) for error in EXAMPLES} == classes


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_survives_the_way_to_another_process(error: LaminaError) -> None:
    arrived = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes

    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    assert vars(arrived) == vars(error)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_tells_its_fields_in_a_text_without_a_full_stop(error: LaminaError) -> None:
    text = str(error)

    assert text
    assert not text.endswith(".")
    assert all(str(value) in text for value in vars(error).values())


def test_who_waits_out_an_outage_waits_out_an_overload_too() -> None:
    assert issubclass(Overloaded, Unavailable)
