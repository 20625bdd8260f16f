"""The principal of a request: the key that sends it, and how far that key reaches."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Self
from uuid import UUID

from lamina.core.memories import as_utc, new_id
from lamina.errors import InvalidInput, OutsideBounds
from lamina.text.hygiene import clean_id

MAX_BOUND_IDS = 100
MAX_TOLD_IDS = 5
"""An error names no more ids of a bound."""


class KeyRole(StrEnum):
    """Role of a key; each includes the ones before it."""

    READER = "reader"
    WRITER = "writer"
    ADMIN = "admin"

    def includes(self, needed: "KeyRole") -> bool:
        """Report whether this role grants the needed one."""
        order = list(KeyRole)
        return order.index(self) >= order.index(needed)


class Verb(StrEnum):
    """What a call does; the verbs of a key narrow its role."""

    READ = "read"
    WRITE = "write"
    DELETE = "delete"
    ERASE = "erase"
    SHARE = "share"
    MAINTAIN = "maintain"
    KEYS = "keys"


VERBS_OF: Mapping[KeyRole, frozenset[Verb]] = {
    KeyRole.READER: frozenset({Verb.READ}),
    KeyRole.WRITER: frozenset({Verb.READ, Verb.WRITE, Verb.DELETE}),
    KeyRole.ADMIN: frozenset(Verb),
}


def lowest_role(verb: Verb) -> KeyRole:
    """Return the lowest role that has a verb."""
    return next(role for role in KeyRole if verb in VERBS_OF[role])


class ScopeField(StrEnum):
    """An id of a request that a key can be bound to."""

    WORKSPACE = "workspace"
    NAMESPACE = "namespace"
    USER = "user"
    AGENT = "agent"


class BoundRule(StrEnum):
    """How a call obeys a key that is bound in one field.

    A call that is ``LIMITED`` by the field answers about the ids of the bound alone: the field must be named, or be
    filled by a bound of one id. For one that is ``COMMON``, what it answers belongs to no id of the field; an id that
    it names must still lie within the bound, and one that it does not name is filled likewise, if it has the field.
    One that is ``REFUSED`` reaches further than any id of the field.
    """

    LIMITED = "limited"
    COMMON = "common"
    REFUSED = "refused"


Rules = Mapping[ScopeField, BoundRule]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The ids that a key is bound to; none of a field means that it is not bound there."""

    workspaces: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()

    @classmethod
    def from_lists(cls, lists: Mapping[str, Sequence[str] | None]) -> Self:
        """Return the bounds of lists by their names, with clean ids.

        Raises:
            InvalidInput: For an unclean id, or a list that is too long.
        """
        return cls(**{field.name: _clean_ids(lists.get(field.name) or (), field.name) for field in fields(cls)})

    def of(self, field: ScopeField) -> frozenset[str]:
        """Return the ids of one field; none where the key is not bound."""
        ids: frozenset[str] = getattr(self, f"{field.value}s")
        return ids

    def bound_fields(self) -> tuple[ScopeField, ...]:
        """Return the fields in which the key is bound."""
        return tuple(field for field in ScopeField if self.of(field))

    def lists(self) -> dict[str, list[str]]:
        """Return the ids of each field in order, by the names of the lists."""
        return {field.name: sorted(getattr(self, field.name)) for field in fields(self)}

    def first_beyond(self, other: "Bounds") -> ScopeField | None:
        """Return a field in which these bounds reach further than others; ``None`` if they lie within them."""
        return next(
            (field for field in other.bound_fields() if not (self.of(field) and self.of(field) <= other.of(field))),
            None,
        )


def _clean_ids(ids: Sequence[str], name: str) -> frozenset[str]:
    if len(ids) > MAX_BOUND_IDS:
        raise InvalidInput(name, f"holds {len(ids)} ids; a key is bound to at most {MAX_BOUND_IDS} of a field")
    return frozenset(clean_id(id_, f"{name}.{place}") for place, id_ in enumerate(ids))


@dataclass(frozen=True, slots=True)
class Principal:
    """The key of a request: its owner and its permissions.

    Args:
        key_id: Id of the key, not its secret; it stays when the key is rotated.
        tenant: The tenant that it opens, or a part of it.
        role: The most that it may do.
        verbs: What it may do of that; none means all.
        bounds: The ids that it is bound to.
        expires_at: When it ends, in UTC; ``None`` means never.
        issuer: Who issued its token; ``None`` for a key.
    """

    key_id: UUID
    tenant: str
    role: KeyRole
    verbs: frozenset[Verb] = frozenset()
    bounds: Bounds = Bounds()
    expires_at: datetime | None = None
    issuer: str | None = None

    def allowed_verbs(self) -> frozenset[Verb]:
        """Return all that the key may do."""
        return VERBS_OF[self.role] & (self.verbs or VERBS_OF[self.role])

    def speaks_for(self, field: ScopeField, id_: str | None) -> bool:
        """Report whether a write for a user or an agent is proven to be theirs: the key is bound to them.

        An admin's key speaks for all that it reaches.
        """
        return self.role is KeyRole.ADMIN or id_ in self.bounds.of(field)

    def reaches_whole(self, field: ScopeField) -> bool:
        """Report whether the key is bound in no other field: it reaches an id's memories of the whole tenant."""
        return set(self.bounds.bound_fields()) <= {field}

    def witness(self, agent: str | None = None) -> str:
        """Return the one who vouches for a write: the agent where the key is bound to it, else the key.

        Any other key may name any agent, so that a hundred names under it are one witness.

        Args:
            agent: The agent that the request names, if it can; a key that is bound to one is that one.
        """
        agents = self.bounds.agents
        speaker = next(iter(agents)) if agent is None and len(agents) == 1 else agent
        return f"agent:{speaker}" if speaker in agents else f"key:{self.key_id}"

    def has_expired(self, now: datetime) -> bool:
        """Report whether the key has ended."""
        return self.expires_at is not None and self.expires_at <= now

    @property
    def is_whole(self) -> bool:
        """Whether it is a key as before bounds were known: all of its role, in all of its tenant, for ever."""
        return not self.verbs and not self.bounds.bound_fields() and self.expires_at is None


class KeyState(StrEnum):
    """Whether a key opens anything."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A key as lists show it; the secret is not kept.

    Args:
        name: What the key is for.
        hint: How the secret begins.
        verbs: What it may do of its role; none means all.
        last_used_at: To the minute; ``None`` if it never was, as far as is known.
    """

    id: UUID
    tenant: str
    role: KeyRole
    name: str
    hint: str
    verbs: tuple[Verb, ...]
    bounds: Bounds
    created_at: datetime
    rotated_at: datetime | None
    last_used_at: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None

    def principal(self) -> Principal:
        """Return the principal of the key's requests."""
        return Principal(self.id, self.tenant, self.role, frozenset(self.verbs), self.bounds, self.expires_at)

    def state(self, now: datetime) -> KeyState:
        """Return whether the key opens anything at this moment."""
        if self.revoked_at is not None:
            return KeyState.REVOKED
        return KeyState.EXPIRED if self.principal().has_expired(now) else KeyState.ACTIVE


def new_principal(
    tenant: str,
    role: KeyRole,
    now: datetime,
    *,
    verbs: Iterable[Verb] = (),
    bounds: Bounds | None = None,
    expires_at: datetime | None = None,
) -> Principal:
    """Return the principal of a key to make.

    Raises:
        InvalidInput: For an unclean tenant, a verb that the role does not have, or an expiry that is past.
    """
    ends = None if expires_at is None else as_utc(expires_at, "expires_at")
    if ends is not None and ends <= now:
        raise InvalidInput("expires_at", f"is {ends.isoformat()}, which is past; name a later time or none")
    verbs_of_it = clean_verbs(role, tuple(verbs))
    return Principal(new_id(), clean_id(tenant, "tenant"), role, verbs_of_it, bounds or Bounds(), ends)


def clean_verbs(role: KeyRole, verbs: Iterable[Verb]) -> frozenset[Verb]:
    """Return the verbs of a key.

    Raises:
        InvalidInput: For a verb that the role does not have.
    """
    for place, verb in enumerate(verbs):
        if verb not in VERBS_OF[role]:
            raise InvalidInput(
                f"verbs.{place}",
                f"is {verb.value}, which a {role.value} may not; it takes the role {lowest_role(verb)}",
            )
    return frozenset(verbs)


def within_maker(wanted: Principal, maker: Principal) -> Principal:
    """Return a key to make with the narrowing of its maker where it names none of its own."""
    lists = {
        field.name: getattr(wanted.bounds, field.name) or getattr(maker.bounds, field.name) for field in fields(Bounds)
    }
    verbs = wanted.verbs or (VERBS_OF[wanted.role] & maker.verbs)
    return replace(wanted, verbs=verbs, bounds=Bounds(**lists), expires_at=wanted.expires_at or maker.expires_at)


def refuse_wider(wanted: Principal, maker: Principal) -> None:
    """Refuse a key that would reach further than the one that makes it.

    Raises:
        OutsideBounds: Naming what reaches further.
    """
    if not maker.role.includes(wanted.role):
        raise OutsideBounds("role", f"is {wanted.role.value}; a key of the role {maker.role.value} makes no higher one")
    if further := sorted(wanted.allowed_verbs() - maker.allowed_verbs()):
        raise OutsideBounds(
            "verbs",
            f"would hold {', '.join(further)}; name verbs of the key that makes it: {_join(maker.allowed_verbs())}",
        )
    if (field := wanted.bounds.first_beyond(maker.bounds)) is not None:
        raise OutsideBounds(
            f"{field.value}s",
            f"reaches further than the key that makes it; name some of {_join(maker.bounds.of(field))}",
        )
    if maker.expires_at is not None and (wanted.expires_at is None or wanted.expires_at > maker.expires_at):
        raise OutsideBounds(
            "expires_at", f"is later than that of the key that makes it; name at most {maker.expires_at.isoformat()}"
        )


def bound_ids(bounds: Bounds, rules: Rules, named: Mapping[ScopeField, str | None]) -> dict[ScopeField, str]:
    """Return the ids that the bounds fill in.

    Args:
        bounds: Those of the key.
        rules: How the call obeys bounds; a field without a rule is refused.
        named: The fields that the request has, with ``None`` for one that it leaves out.

    Raises:
        InvalidInput: For an unclean id.
        OutsideBounds: For an id outside of the bounds, one that must be named, or a call that reaches further.
    """
    filled: dict[ScopeField, str] = {}
    for field in bounds.bound_fields():
        rule = rules.get(field, BoundRule.REFUSED)
        value, within = named.get(field), bounds.of(field)
        if rule is BoundRule.REFUSED:
            raise OutsideBounds(
                field.value,
                f"cannot limit this call, and this key is bound to {_join(within)}; use a key without {field.value}s",
            )
        if value is not None:
            refuse_outside(field, clean_id(value, field.value), within)
        elif field in named and len(within) == 1:
            filled[field] = next(iter(within))
        elif rule is BoundRule.LIMITED:
            raise OutsideBounds(field.value, f"is missing; this key is bound to several, name one of {_join(within)}")
    return filled


def refuse_outside(field: ScopeField, value: str, within: frozenset[str], path: str | None = None) -> None:
    """Refuse an id that lies outside of a bound.

    Raises:
        OutsideBounds: Naming the field, or its path in the request, and the ids of the bound.
    """
    if within and value not in within:
        raise OutsideBounds(path or field.value, f"is {value}; this key is bound to {_join(within)}, name one of these")


def _join(values: Iterable[str]) -> str:
    """List values; of many, the first few."""
    ordered = sorted(values)
    more = len(ordered) - MAX_TOLD_IDS
    return ", ".join(ordered[:MAX_TOLD_IDS]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True, slots=True)
class Owner:
    """The ids that a stored thing belongs to; ``None`` where it belongs to none of them."""

    id: UUID
    workspace: str | None
    namespace: str | None
    user: str | None
    agent: str | None


class Reach(StrEnum):
    """How a bounded key reaches a stored thing."""

    FULL = "full"
    HIDDEN = "hidden"
    COMMON = "common"


def reach_of(owner: Owner, bounds: Bounds, rules: Rules) -> tuple[Reach, ScopeField | None]:
    """Return whether a key reaches a stored thing, and else the field that stands between them.

    What belongs to another workspace, namespace or user is hidden. What belongs to no user, or to another agent of
    the same place, is common: to be read, and not to be changed.
    """
    limited = [field for field in bounds.bound_fields() if rules.get(field) is BoundRule.LIMITED]
    hiding = (ScopeField.WORKSPACE, ScopeField.NAMESPACE, ScopeField.USER)
    for field in bounds.bound_fields():
        value = getattr(owner, field.value)
        if (
            field in hiding
            and field in rules
            and value not in bounds.of(field)
            and not (field is ScopeField.USER and value is None)
        ):
            return Reach.HIDDEN, field
    for field in limited:
        if getattr(owner, field.value) not in bounds.of(field):
            return Reach.COMMON, field
    return Reach.FULL, None
