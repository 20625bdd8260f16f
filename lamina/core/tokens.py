"""Tokens of an issuer: which principal their claims stand for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from lamina.core.principals import VERBS_OF, Bounds, KeyRole, Principal, Verb
from lamina.errors import InvalidInput, InvalidToken
from lamina.text.hygiene import clean_id

SCOPE_PREFIX = "lamina:"


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """How claims become a principal.

    Args:
        tenant_claim: Claim with the tenant.
        workspace_claim: Claim with the workspaces that the token is bound to; ``None`` binds it to none.
        user_claim: Claim with the user that the token is bound to; ``None`` binds it to none.
        agent_claim: The same of the agent.
        role_claim: Claim with the role.
        tenant: The tenant of every token, in place of a claim.
        role: The role of a token that has none.
    """

    tenant_claim: str
    workspace_claim: str | None
    user_claim: str | None
    agent_claim: str | None
    role_claim: str
    tenant: str | None
    role: KeyRole


def scope_of(verb: Verb) -> str:
    """Return the OAuth scope that allows a verb."""
    return f"{SCOPE_PREFIX}{verb.value}"


def principal_of_claims(claims: Mapping[str, Any], rules: ClaimRules) -> Principal:
    """Return the principal of checked claims.

    A token is never wider than its claims: without a tenant it is none; where a user is to be named, it is bound to
    that one; scopes narrow its role.

    Raises:
        InvalidToken: If a claim is missing or is none.
    """
    try:
        tenant = clean_id(rules.tenant or _one(claims, rules.tenant_claim), "tenant")
        users = [] if rules.user_claim is None else [_one(claims, rules.user_claim)]
        agents = [] if rules.agent_claim is None else _many(claims, rules.agent_claim)
        workspaces = [] if rules.workspace_claim is None else _many(claims, rules.workspace_claim)
        bounds = Bounds.from_lists({"workspaces": workspaces, "users": users, "agents": agents})
    except InvalidInput as error:
        raise InvalidToken(str(error)) from error
    role = _role(_many(claims, rules.role_claim), rules.role)
    key_id = uuid5(NAMESPACE_URL, "\0".join((str(claims["iss"]), str(claims["sub"]), tenant)))
    expires_at = datetime.fromtimestamp(claims["exp"], UTC)
    return Principal(key_id, tenant, role, _verbs(claims, role), bounds, expires_at, issuer=str(claims["iss"]))


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """Return a claim by its name, or by a path with dots into objects."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _one(claims: Mapping[str, Any], name: str) -> str:
    value = _claim(claims, name)
    if not isinstance(value, str) or not value:
        raise InvalidToken(f"its claim {name} is missing or no text")
    return value


def _many(claims: Mapping[str, Any], name: str) -> list[str]:
    value = _claim(claims, name)
    if value is None:
        return []
    values = [value] if isinstance(value, str) else value
    # An empty list would bind it to nothing, which is to be bound to everything.
    if not isinstance(values, Sequence) or not values or not all(isinstance(one, str) and one for one in values):
        raise InvalidToken(f"its claim {name} is neither a text nor a list of texts")
    return list(values)


def _role(names: Sequence[str], default: KeyRole) -> KeyRole:
    """Return the highest role among the names; a token with names of which none is a role gets the lowest."""
    held = [role for role in KeyRole if role.value in names]
    if held:
        return held[-1]
    return KeyRole.READER if names else default


def _verbs(claims: Mapping[str, Any], role: KeyRole) -> frozenset[Verb]:
    """Return the verbs that the scopes leave of a role; none means all, of a token without scopes.

    Raises:
        InvalidToken: If its scopes leave none.
    """
    sent = claims.get("scope", claims.get("scp"))
    if sent is None:
        return frozenset()
    scopes = sent.split() if isinstance(sent, str) else sent
    verbs = frozenset(verb for verb in VERBS_OF[role] if isinstance(scopes, Sequence) and scope_of(verb) in scopes)
    if not verbs:
        wanted = " ".join(scope_of(verb) for verb in Verb if verb in VERBS_OF[role])
        raise InvalidToken(f"it has none of the scopes {wanted}")
    return verbs
