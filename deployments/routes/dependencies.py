"""Parameters that several resources take: a page, the ids of a scope, the key of a write."""

from typing import Annotated

from fastapi import Depends, Header, Query

from lamina.api.fields import Strict
from lamina.api.scope import ScopeIn
from lamina.core.scope import DEFAULT_NAMESPACE, DEFAULT_WORKSPACE
from lamina.stores.postgres.idempotency import Once, once_for
from lamina.text.hygiene import clean_id

MAX_OFFSET = 1_000_000
PageLimit = Annotated[int, Query(ge=1, le=1000, description="Most entries of the page.")]
PageOffset = Annotated[int, Query(ge=0, le=MAX_OFFSET, description="Entries to skip.")]
IdempotencyKey = Annotated[
    str | None,
    Header(description="Your id of this write: sending it again returns the first answer and writes nothing."),
]


async def scope_in(
    workspace: Annotated[str, Query(description="Project.")] = DEFAULT_WORKSPACE,
    namespace: Annotated[str, Query(description="Subdivision of the workspace.")] = DEFAULT_NAMESPACE,
    user: Annotated[str | None, Query(description="Person.")] = None,
    agent: Annotated[str | None, Query(description="Agent.")] = None,
    swarm: Annotated[str | None, Query(description="Group of agents.")] = None,
) -> ScopeIn:
    """Read the ids of a request without a body."""
    ids = {"workspace": workspace, "namespace": namespace, "user": user, "agent": agent, "swarm": swarm}
    return ScopeIn(**{name: id_ for name, id_ in ids.items() if id_ is not None})


ScopeDep = Annotated[ScopeIn, Depends(scope_in)]


def once_for_body(tenant: str, key: str | None, body: Strict) -> Once | None:
    """Identify a write by its key and body, so that it happens once; ``None`` without a key."""
    # Postgres keeps a hash of this: under another class name, a key that was sent before would be refused.
    return once_for_request(
        tenant, key, {"request": type(body).__name__, **body.model_dump(mode="json", exclude_unset=True)}
    )


def once_for_request(tenant: str, key: str | None, request: object) -> Once | None:
    """Identify a write by its key and its request as JSON; ``None`` without a key.

    Raises:
        InvalidInput: If the key is not 1 to 128 printable characters.
    """
    return None if key is None else once_for(tenant, clean_id(key, "Idempotency-Key"), request)
