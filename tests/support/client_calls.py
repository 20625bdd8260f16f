"""The calls that the methods of the client make, and the documented route of each."""

import inspect
import re
from collections.abc import Mapping
from functools import cache
from typing import Any
from uuid import UUID

from deployments.api import document
from lamina.client.calls import Call, Calls
from lamina.client.routes import Method

SCOPE = {name: f"{name} é" for name in ("workspace", "namespace", "user", "agent", "session", "swarm")}
_LISTS = ("messages", "edges", "entities", "names", "ids", "calls", "notes", "procedures", "documents")
_ARGUMENTS: Mapping[str, Any] = {
    **{name: [] for name in _LISTS},
    "patch": {},
    "content": b"text",
    "succeeded": True,
    "version": 1,
    "id_": UUID(int=7),
}
METHODS: Mapping[str, Method[Any, Any]] = {
    name: method for name, method in vars(Calls).items() if isinstance(method, Method)
}


class Unsent(Calls):
    """A client that returns each call instead of sending it."""

    def answer(self, method: Method[Any, Any], call: Call[Any]) -> Any:
        return call

    def each(self, method: Method[Any, Any], *args: Any, **fields: Any) -> Any:
        raise NotImplementedError


def call_of(name: str, scope: Mapping[str, str] = SCOPE) -> Call[Any]:
    """Return the call of a method with the least arguments, by a client of a scope."""
    return METHODS[name].call(Unsent(dict(scope)), **arguments_of(name))


def arguments_of(name: str, /, **known: Any) -> dict[str, Any]:
    """Return the least arguments of a method; those that are not known are made up."""
    parameters = inspect.signature(METHODS[name].make).parameters.values()
    needed = [one.name for one in parameters if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
    return {each: known.get(each, _ARGUMENTS.get(each, "x")) for each in needed if each != "self"}


@cache
def documented() -> Mapping[str, Any]:
    """Return what the OpenAPI document says of each route, as in `GET /v1/notes`."""
    calls = document()["paths"].items()
    return {f"{method.upper()} {path}": call for path, its in calls for method, call in its.items()}


def route_of(call: Call[Any]) -> str:
    """Return the documented route of a call, that with the fewest ids if it fits several; else its own path."""
    sent = f"{call.method} {call.path}"
    fitting = [route for route in documented() if re.fullmatch(_pattern(route), sent)]
    return min(fitting, key=lambda route: route.count("{"), default=sent)


def _pattern(route: str) -> str:
    return re.sub(r"\\\{(\w+)\\\}", lambda id_: ".+" if id_[1] == "path" else "[^/]+", re.escape(route))
