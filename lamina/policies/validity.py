"""When a stated relation holds: one that can be true once only ends where the next statement about it begins.

One decision for the edges that rules draw, for those of a language model, and for those that callers state.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

STATES: Mapping[str, str] = {
    "lives_in": "lives_in",
    "moved_to": "lives_in",
    "works_at": "works_at",
    "joined": "works_at",
    "works_as": "works_as",
    "married_to": "married_to",
    "reports_to": "reports_to",
    "is_named": "is_named",
    "located_in": "located_in",
    "has_status": "has_status",
    "has_version": "has_version",
    "has_date": "has_date",
    "due_on": "due_on",
    "has_price": "has_price",
    "owned_by": "owned_by",
    "assigned_to": "assigned_to",
    "led_by": "led_by",
    "has_ceo": "has_ceo",
    "has_boss": "has_boss",
    "has_manager": "has_manager",
    "has_wife": "married_to",
    "has_husband": "married_to",
    "has_spouse": "married_to",
    "uses": "uses",
    "prefers": "prefers",
    "drives": "drives",
    "studies": "studies",
    "supports": "supports",
    "has_age": "has_age",
    "has_weight": "has_weight",
    "follows_diet": "follows_diet",
}
"""The state that a relation states; one that is not here ends by retraction alone."""
OWN_VALUE = "_is"
"""Ends a relation to what is the subject's own and one alone: ``editor_is``, ``favourite_colour_is``."""
MANY_VALUED = frozenset({"uses", "prefers"})
"""States that may hold with several values at a time."""
ENDS: Mapping[str, str] = {
    "left": "works_at",
    "moved_away_from": "lives_in",
    "divorced": "married_to",
    "separated_from": "married_to",
    "stopped_using": "uses",
    "prefers_no_longer": "prefers",
}
"""The state that a relation ends."""


def tells_of_state(relation: str) -> bool:
    """Report whether a relation states or ends something that another statement can end."""
    return relation in STATES or relation in ENDS or relation.endswith(OWN_VALUE)


def exclude_each_other(relation: str, other: str) -> bool:
    """Report whether two relations of a subject state the same, which can hold only once."""
    state = STATES.get(relation, relation)
    return state == STATES.get(other, other) and _holds_once(state)


@dataclass(frozen=True, slots=True)
class Claim:
    """A piece of evidence for an edge of one subject.

    Args:
        edge: The edge.
        relation: Its type.
        value: The entity at its other end.
        stated_at: When it was said to hold, in UTC.
        confidence: 0..1; a person's own word is surer than another's.
        owner: Whose private evidence it is; ``None`` for shared one.
        replaced_by: Set if a caller stated that the edge ends here, and by which other edge.
    """

    edge: UUID
    relation: str
    value: UUID
    stated_at: datetime
    confidence: float
    owner: str | None = None
    replaced_by: UUID | None = None

    @property
    def state(self) -> str:
        """Return the state that it states or ends."""
        return STATES.get(self.relation) or ENDS.get(self.relation) or self.relation

    @property
    def is_end(self) -> bool:
        """Report whether it ends a state rather than stating one."""
        return self.relation in ENDS


@dataclass(frozen=True, slots=True)
class Validity:
    """The interval in which an edge holds, its end excluded.

    Args:
        valid_from: Its beginning.
        valid_to: Its end; ``None`` while it holds.
        replaced_by: The edge that ended it, if another took its place.
        before: The intervals in which it held before, if it began again.
    """

    valid_from: datetime
    valid_to: datetime | None = None
    replaced_by: UUID | None = None
    before: tuple[tuple[datetime, datetime], ...] = ()


@dataclass(frozen=True, slots=True)
class _Holding:
    """An edge with its surest claim, the owners of all claims since it holds, and its interval."""

    claim: Claim
    owners: frozenset[str | None]
    validity: Validity


def decide_validities(claims: Iterable[Claim]) -> dict[UUID, Validity]:
    """Return when each edge of one subject holds, or held last.

    The order of the statements counts, not that of their arrival: what is told late about an earlier time ends where
    the next statement began. A less sure statement ends no surer one, so that the word of others overwrites nothing
    that a person says of themselves; and private evidence ends nothing that others may see.
    """
    edges: dict[UUID, _Holding] = {}
    # Of one moment, what ends something comes first: "I left Initech and joined Hooli". A replacement comes after what
    # it replaces.
    told = list(claims)
    ordered = sorted(told, key=lambda one: (one.stated_at, not one.is_end, one.edge, one.replaced_by is not None))
    # What was replaced from its beginning on never held, and ends nothing.
    corrected = {(claim.edge, claim.stated_at) for claim in told if claim.replaced_by is not None}
    begun = {(claim.state, claim.stated_at, claim.owner): claim.edge for claim in ordered if not claim.is_end}
    for claim in ordered:
        held = edges.get(claim.edge)
        if claim.replaced_by is not None:
            if held is not None and held.validity.valid_to is None:
                edges[claim.edge] = _ended(held, claim.stated_at, claim.replaced_by)
            continue
        others = [] if (claim.edge, claim.stated_at) in corrected else list(edges.items())
        for id_, other in others:
            if id_ != claim.edge and _ends(claim, other):
                successor = begun.get((claim.state, claim.stated_at, claim.owner)) if claim.is_end else claim.edge
                edges[id_] = _ended(other, claim.stated_at, None if successor == id_ else successor)
        if held is None or held.validity.valid_to is not None:
            validity = Validity(claim.stated_at, before=_intervals(held))
            edges[claim.edge] = _Holding(claim, frozenset({claim.owner}), validity)
        else:
            surer = max(held.claim, claim, key=lambda item: item.confidence)
            edges[claim.edge] = replace(held, claim=surer, owners=held.owners | {claim.owner})
    return {id_: item.validity for id_, item in edges.items()}


def _ends(claim: Claim, other: _Holding) -> bool:
    """Report whether a later claim ends what another states."""
    earlier = other.claim
    if claim.state != earlier.state or earlier.is_end or other.validity.valid_to is not None:
        return False
    if claim.confidence < earlier.confidence or (claim.owner is not None and other.owners != {claim.owner}):
        return False
    if claim.is_end:
        return claim.value == earlier.value
    return _holds_once(claim.state) and claim.value != earlier.value


def _holds_once(state: str) -> bool:
    return state.endswith(OWN_VALUE) or (state in STATES.values() and state not in MANY_VALUED)


def _intervals(held: _Holding | None) -> tuple[tuple[datetime, datetime], ...]:
    """Return all intervals of an edge that has ended."""
    if held is None or held.validity.valid_to is None:
        return ()
    return (*held.validity.before, (held.validity.valid_from, held.validity.valid_to))


def _ended(held: _Holding, at: datetime, by: UUID | None) -> _Holding:
    return replace(held, validity=replace(held.validity, valid_to=at, replaced_by=by))
