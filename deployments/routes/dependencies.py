"""Parameters that several resources take: a page, the ids of a scope, the key of a write."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Annotated, Any

from fastapi import Depends, Header, Query, Request

from deployments.services import ServicesDep
from lamina.api.fields import Id, Strict
from lamina.api.problems import ProblemOut
from lamina.api.scope import ScopeIn
from lamina.core.preconditions import Precondition, read_etags
from lamina.core.principals import Bounds
from lamina.core.scope import DEFAULT_NAMESPACE, DEFAULT_WORKSPACE
from lamina.errors import InvalidInput
from lamina.policies.caching.cache_keys import digest
from lamina.stores.postgres.idempotency import Once, hash_request
from lamina.text.hygiene import clean_id

MAX_ETAGS_CHARS = 2000


def sent_ids(request: Request, **ids: str | None) -> dict[str, str]:
    """Return the ids that a request names in its query: a key's bounds fill the others in."""
    return {name: id_ for name, id_ in ids.items() if id_ is not None and name in request.query_params}


async def scope_in(
    request: Request,
    workspace: Annotated[Id, Query(description="Project.")] = DEFAULT_WORKSPACE,
    namespace: Annotated[Id, Query(description="Subdivision of the workspace.")] = DEFAULT_NAMESPACE,
    user: Annotated[Id | None, Query(description="Person.")] = None,
    agent: Annotated[Id | None, Query(description="Agent.")] = None,
    swarm: Annotated[Id | None, Query(description="Group of agents.")] = None,
) -> ScopeIn:
    """Read the ids of a request without a body."""
    ids = {"workspace": workspace, "namespace": namespace, "user": user, "agent": agent, "swarm": swarm}
    return ScopeIn(**sent_ids(request, **ids))


ScopeDep = Annotated[ScopeIn, Depends(scope_in)]


class PlaceIn(Strict):
    """The place that a request without a body names."""

    workspace: str = DEFAULT_WORKSPACE
    namespace: str = DEFAULT_NAMESPACE


class WorkspaceIn(Strict):
    """The workspace that a request without a body names."""

    workspace: str = DEFAULT_WORKSPACE


async def place_in(
    request: Request,
    workspace: Annotated[Id, Query(description="Project.")] = DEFAULT_WORKSPACE,
    namespace: Annotated[Id, Query(description="Subdivision of the workspace.")] = DEFAULT_NAMESPACE,
) -> PlaceIn:
    """Read the workspace and namespace of a request without a body."""
    return PlaceIn(**sent_ids(request, workspace=workspace, namespace=namespace))


async def workspace_in(
    request: Request, workspace: Annotated[Id, Query(description="Project.")] = DEFAULT_WORKSPACE
) -> WorkspaceIn:
    """Read the workspace of a request without a body."""
    return WorkspaceIn(**sent_ids(request, workspace=workspace))


PlaceDep = Annotated[PlaceIn, Depends(place_in)]
WorkspaceDep = Annotated[WorkspaceIn, Depends(workspace_in)]


PRECONDITION_FAILED: dict[int | str, dict[str, Any]] = {
    412: {"model": ProblemOut, "description": "It is in another state"}
}
IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        max_length=MAX_ETAGS_CHARS,
        description="ETags of which it has to have one; * for any.",
    ),
]
IfNoneMatch = Annotated[
    str | None,
    Header(
        alias="If-None-Match",
        max_length=MAX_ETAGS_CHARS,
        description="ETags of which it may have none; * if it may not be there yet.",
    ),
]


async def if_match(value: IfMatch = None) -> Precondition:
    """Read the header If-Match of a change.

    Raises:
        InvalidInput: If it is no list of ETags.
    """
    return Precondition(read_etags(value, "If-Match"))


IfMatchDep = Annotated[Precondition, Depends(if_match)]


@dataclass(frozen=True, slots=True)
class WriteKey:
    """The Idempotency-Key of a request, if it has one, and how long its answer is given again."""

    key: str | None
    lifetime: timedelta

    def of_bounds(self, bounds: Bounds) -> "WriteKey":
        """Return the key as one of all keys with the same bounds: others neither meet it nor get its answers."""
        return self if self.key is None else replace(self, key=digest(bounds.lists(), self.key).hex())

    def once(self, tenant: str, body: Strict) -> Once | None:
        """Identify a write by its key and body, so that it happens once; ``None`` without a key."""
        if self.key is None:
            return None
        # Postgres keeps a hash of this: under another class name, a key that was sent before would be refused.
        try:
            sent = body.model_dump(mode="json", exclude_unset=True)
        except ValueError as error:  # Pydantic's own limit, some 250 levels.
            raise InvalidInput("body", "is nested too deeply") from error
        request = {"request": type(body).__name__, **sent}
        return self.once_for_request(tenant, request, body.user if isinstance(body, ScopeIn) else None)

    def once_for_request(self, tenant: str, request: object, user: str | None = None) -> Once | None:
        """Identify a write of a person by its key and its request as JSON; ``None`` without a key."""
        return None if self.key is None else Once(tenant, self.key, hash_request(request), self.lifetime, user)


async def write_key(
    services: ServicesDep,
    idempotency_key: Annotated[
        Id | None,
        Header(
            alias="Idempotency-Key",
            description="Your id of this write: sending it again within `write.idempotency_days` returns the first "
            "answer and writes nothing; 409 if what it stored was deleted since.",
        ),
    ] = None,
) -> WriteKey:
    """Read the Idempotency-Key.

    Raises:
        InvalidInput: If it is not 1 to 128 printable characters.
    """
    key = None if idempotency_key is None else clean_id(idempotency_key, "Idempotency-Key")
    return WriteKey(key, timedelta(days=services.settings.write.idempotency_days))


WriteKeyDep = Annotated[WriteKey, Depends(write_key)]
