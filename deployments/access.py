"""The access that each route declares: its verb, and the bounds that it keeps."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute

from lamina.core.principals import BoundRule, KeyRole, Rules, ScopeField, Verb, lowest_role
from lamina.errors import Misconfigured
from lamina.stores.postgres.owners import OwnedKind

WORKSPACE, NAMESPACE, USER, AGENT = ScopeField
LIMITED, COMMON, REFUSED = BoundRule

# Memories of a place and a user; agents of the place have them in common.
MEMORIES: Rules = {WORKSPACE: LIMITED, NAMESPACE: LIMITED, USER: LIMITED, AGENT: COMMON}
# The same to be written: by the agent that writes.
OWN_MEMORIES: Rules = {**MEMORIES, AGENT: LIMITED}
# What all users and agents of a place have in common.
PLACE: Rules = {WORKSPACE: LIMITED, NAMESPACE: LIMITED, USER: COMMON, AGENT: COMMON}
# The same to be written: for all users of the place, and so by no key that is bound to some of them.
OWN_PLACE: Rules = {WORKSPACE: LIMITED, NAMESPACE: LIMITED, AGENT: LIMITED}
WHOLE_PLACE: Rules = {WORKSPACE: LIMITED, NAMESPACE: LIMITED}
ALL_USERS: Rules = {**WHOLE_PLACE, AGENT: COMMON}
ALL_AGENTS: Rules = {**WHOLE_PLACE, USER: LIMITED}
WHOLE_WORKSPACE: Rules = {WORKSPACE: LIMITED}
ALL_NAMESPACES: Rules = {WORKSPACE: LIMITED, USER: COMMON, AGENT: COMMON}
# An agent's own in a workspace: namespaces and users have it in common.
AGENT_OF_WORKSPACE: Rules = {WORKSPACE: LIMITED, NAMESPACE: COMMON, USER: COMMON, AGENT: LIMITED}
OWN_AGENT_OF_WORKSPACE: Rules = {WORKSPACE: LIMITED, AGENT: LIMITED}
WHOLE_USER: Rules = {USER: LIMITED}
WHOLE_TENANT: Rules = {}
EVERYWHERE: Rules = dict.fromkeys(ScopeField, COMMON)


@dataclass(frozen=True, slots=True)
class Access:
    """The verb of a route, and its rule for each bound of a key.

    Args:
        verb: What it does; ``None`` for one that needs no key.
        rules: How it obeys a key that is bound in a field; it refuses one that is bound in a field without a rule.
        of: Kind of the things that it names by id; a rule for a field that the request does not have looks at them.
        ids: The parameter or field of the body that holds their ids.
        items: The field of the body whose items each have the ids of a scope of their own.
        beside: Further fields that hold an id of a scope.
    """

    verb: Verb | None
    rules: Rules = field(default_factory=dict)
    of: OwnedKind | None = None
    ids: str = "id"
    items: str | None = None
    beside: Mapping[str, ScopeField] = field(default_factory=dict)

    @property
    def role(self) -> KeyRole | None:
        """The lowest role that may call it; ``None`` if no key is needed."""
        return None if self.verb is None else lowest_role(self.verb)


OPEN = Access(None)
_ATTRIBUTE = "lamina_access"


def declare(endpoint: Callable[..., Any], access: Access) -> None:
    """Write a route's access onto its function."""
    setattr(endpoint, _ATTRIBUTE, access)


def access_of(endpoint: Callable[..., Any]) -> Access:
    """Return the access that a route declares.

    Raises:
        Misconfigured: If it declares none.
    """
    found = getattr(endpoint, _ATTRIBUTE, None)
    if not isinstance(found, Access):
        raise Misconfigured(
            f"the route {endpoint.__module__}.{endpoint.__qualname__} declares no access", "put @allow(…) on it"
        )
    return found


def accesses(routers: Iterable[APIRouter]) -> dict[tuple[str, str], Access]:
    """Return the access of every route by its method and path.

    Raises:
        Misconfigured: If a route declares none.
    """
    routes = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
    return {
        (method, route.path): access_of(route.endpoint) for route in routes for method in sorted(route.methods or ())
    }
