"""How a call of the API, written once, becomes a method of every client."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, update_wrapper
from types import MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    TypeVar,
    get_args,
    get_type_hints,
    overload,
)
from urllib.parse import quote

from pydantic import BaseModel

from lamina.errors import InvalidInput

if TYPE_CHECKING:
    from lamina.client.client import AsyncClient, AsyncLamina, Client, Lamina

Json = dict[str, Any]
MEMORY_PARTS = 3
"""Of `/v1/memories/{id}`, whose deletion answers the kind of what is gone: a second one cannot."""
P = ParamSpec("P")
Model = TypeVar("Model")
Item = TypeVar("Item")
Answer = TypeVar("Answer")
Items = TypeVar("Items")


@dataclass(frozen=True, slots=True)
class Call(Generic[Model]):
    """One HTTP request, without its address and key.

    Args:
        method: HTTP method.
        path: Path with its ids, each quoted.
        json: Body, if it is JSON.
        params: Query.
        headers: Headers of this request alone.
        form: Fields of a form, in place of a JSON body.
        file: Name, bytes and media type of the form's file.
    """

    method: str
    path: str
    json: Json | None = None
    params: Json = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    form: Json = field(default_factory=dict)
    file: tuple[str, bytes, str] | None = None

    @property
    def is_repeatable(self) -> bool:
        """Whether sent twice it does no more than sent once, and its answer stays the same.

        A change of a version that is done already would be refused, for that version is there no more.
        """
        if "Idempotency-Key" in self.headers:
            return True
        is_of_version = not self.headers.keys().isdisjoint({"If-Match", "If-None-Match"})
        return not (self.method == "POST" or is_of_version or self._tells_what_it_deleted)

    @property
    def _tells_what_it_deleted(self) -> bool:
        return (
            self.method == "DELETE" and self.path.startswith("/v1/memories/") and self.path.count("/") == MEMORY_PARTS
        )


@dataclass(frozen=True, slots=True)
class ListCall(Call[Model], Generic[Model, Item]):
    """A call that returns a page.

    Args:
        items: Field of the answer that holds the page's items.
    """

    items: str = ""

    def following(self, page: Json) -> Self | None:
        """Return the call for the page after one, or ``None`` after the last one."""
        if (cursor := page.get("next_cursor")) is not None:
            return self._from(cursor=cursor)
        # Of events, whose next place is there before the next event is.
        return self._from(after=page["next"]) if page.get("more") and page["next"] is not None else None

    def _from(self, **place: Any) -> Self:
        others = {name: value for name, value in self.params.items() if name not in {"offset", "after", "cursor"}}
        return replace(self, params={**others, **place})


class Method(Generic[P, Model]):
    """A method of every client.

    Args:
        make: Makes the call of the client's scope and the arguments.
    """

    def __init__(self, make: Callable[Concatenate[Any, P], Call[Model]]) -> None:
        self.make = make
        update_wrapper(self, make)

    @cached_property
    def model(self) -> type[BaseModel]:
        """The model of the answer; read when one is asked for, since the models take half a second."""
        from lamina.client import models  # noqa: PLC0415 - as above

        hints = get_type_hints(self.make, {**self.make.__globals__, "models": models})
        model: type[BaseModel] = get_args(hints["return"])[0]
        return model

    def __call__(self, client: Any, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Make the call and send it by a client."""
        return client.answer(self, self.call(client, *args, **kwargs))

    def call(self, client: Any, *args: P.args, **kwargs: P.kwargs) -> Call[Model]:
        """Make the call.

        Raises:
            InvalidInput: For an id that no path can hold.
        """
        try:
            return self.make(client, *args, **kwargs)
        except UnicodeEncodeError as error:
            raise unsendable(error) from error


class Route(Method[P, Model]):
    """A method whose answer has a model."""

    @overload
    def __get__(self, client: "Client", owner: object = None) -> Callable[P, Json]: ...
    @overload
    def __get__(self, client: "AsyncClient", owner: object = None) -> Callable[P, Coroutine[Any, Any, Json]]: ...
    @overload
    def __get__(self, client: "Lamina", owner: object = None) -> Callable[P, Model]: ...
    @overload
    def __get__(self, client: "AsyncLamina", owner: object = None) -> Callable[P, Coroutine[Any, Any, Model]]: ...
    @overload
    def __get__(self, client: None, owner: object = None) -> Self: ...

    def __get__(self, client: Any, owner: object = None) -> Any:
        """Return the method of a client."""
        return self if client is None else MethodType(self, client)


class Command(Method[P, None]):
    """A method whose answer has no content."""

    @overload
    def __get__(self, client: "Client | Lamina", owner: object = None) -> Callable[P, None]: ...
    @overload
    def __get__(
        self, client: "AsyncClient | AsyncLamina", owner: object = None
    ) -> Callable[P, Coroutine[Any, Any, None]]: ...
    @overload
    def __get__(self, client: None, owner: object = None) -> Self: ...

    def __get__(self, client: Any, owner: object = None) -> Any:
        """Return the method of a client."""
        return self if client is None else MethodType(self, client)


@dataclass(frozen=True, slots=True)
class Listing(Generic[P, Answer, Items]):
    """A list: called it returns a page; `each` goes through all pages.

    Args:
        page: Returns one page.
        each: Yields the items of all pages, which it asks for as they are needed; `limit` is the size of a page.
    """

    page: Callable[P, Answer]
    each: Callable[P, Items]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Answer:
        """Return one page."""
        return self.page(*args, **kwargs)


class ListRoute(Method[P, Model], Generic[P, Model, Item]):
    """A method that returns a page, and goes through all of them by its `each`."""

    def __init__(self, make: Callable[Concatenate[Any, P], ListCall[Model, Item]]) -> None:
        super().__init__(make)

    def first_page(self, client: Any, *args: P.args, **kwargs: P.kwargs) -> ListCall[Model, Item]:
        """Make the call for the first page."""
        call = self.call(client, *args, **kwargs)
        assert isinstance(call, ListCall)  # noqa: S101 - as `make` returns it
        return call

    @overload
    def __get__(self, client: "Client", owner: object = None) -> Listing[P, Json, Iterator[Json]]: ...
    @overload
    def __get__(
        self, client: "AsyncClient", owner: object = None
    ) -> Listing[P, Coroutine[Any, Any, Json], AsyncIterator[Json]]: ...
    @overload
    def __get__(self, client: "Lamina", owner: object = None) -> Listing[P, Model, Iterator[Item]]: ...
    @overload
    def __get__(
        self, client: "AsyncLamina", owner: object = None
    ) -> Listing[P, Coroutine[Any, Any, Model], AsyncIterator[Item]]: ...
    @overload
    def __get__(self, client: None, owner: object = None) -> Self: ...

    def __get__(self, client: Any, owner: object = None) -> Any:
        """Return the method of a client."""
        return self if client is None else Listing(MethodType(self, client), partial(client.each, self))


def unsendable(error: Exception) -> InvalidInput:
    """Return the error for a text or number that no request can hold."""
    if isinstance(error, UnicodeEncodeError):
        part = error.object[error.start : error.end].encode("unicode_escape").decode()
        return InvalidInput(
            "request", f"has {part[:40]}, which {error.encoding} cannot hold; leave it out or replace it"
        )
    return InvalidInput("request", f"cannot be sent: {error}")


def segment(id_: object) -> str:
    """Return an id as one segment of a path.

    Raises:
        InvalidInput: If it is empty: another route would be called.
    """
    text = str(id_)
    if not text:
        raise InvalidInput("id", "is empty; name one")
    # Slashes are quoted, too: a proxy may merge or cut them. So are dots that would lead to another path.
    return text.replace(".", "%2E") if text in {".", ".."} else quote(text, safe="")
