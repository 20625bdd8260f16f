"""Between the graph's values and those of the engines: texts, whole numbers, fractions and lists of them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from lamina.core.links import FollowedLink, Frontier, Link, Node, NodeLabel
from lamina.core.ports import Change

Parameters = Mapping[str, Any]
Row = Sequence[Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
OPEN = 2**60
"""The end of an interval that has none, in microseconds; FalkorDB knows no null in a list of numbers."""


def frontier_parameters(frontier: Frontier) -> Parameters:
    """Return the parameters of ``expand``.

    Without a user in the scope everything of the namespace is seen; ``shared_only`` then sees as a
    user does whom nobody knows.
    """
    scope = frontier.scope
    return {
        "ids": [str(id_) for id_ in dict.fromkeys(frontier.ids)],
        "tenant": scope.tenant,
        "workspace": scope.workspace,
        "namespace": scope.namespace,
        "everyone": scope.user is None and not frontier.shared_only,
        "user": None if frontier.shared_only else scope.user,
        "every_kind": not frontier.kinds,
        "kinds": list(frontier.kinds),
        "always": frontier.as_of is None,
        "until": 0 if frontier.as_of is None else _microseconds(frontier.as_of),
        "fan_out": frontier.fan_out,
    }


def followed_links(frontier: Frontier, rows: Iterable[Row]) -> list[FollowedLink]:
    """Return the links that ``expand`` found: in the order of the frontier, of each node the strongest first."""
    place = {id_: number for number, id_ in reversed(list(enumerate(frontier.ids)))}
    links = [_followed(row, frontier.as_of) for row in rows]
    return sorted(links, key=lambda link: (place[link.start], -link.strength, link.end, link.kind, link.is_forward))


def node_parameters(changes: Sequence[Change[Node]]) -> list[Parameters]:
    """Return the properties of the changed nodes."""
    return [
        {
            "id": str(change.id),
            "label": change.record.label.value,
            "tenant": change.record.tenant,
            "workspace": change.record.workspace,
            "namespace": change.record.namespace,
            "tier": change.record.tier,
            "user": change.record.user,
            "name": change.record.name,
            "seen_at": _microseconds(change.record.seen_at),
        }
        for change in changes
        if change.record
    ]


def link_parameters(changes: Sequence[Change[Node]]) -> list[Parameters]:
    """Return the properties of every link that starts from the changed nodes."""
    return [
        {
            "source": str(change.id),
            "target": str(link.target),
            "kind": link.kind,
            "strength": link.strength,
            "users": list(link.users or ()),
            "shared": link.users is None,
            "seen_at": _microseconds(link.seen_at),
            # Beginnings and ends in turn.
            "held": [OPEN if moment is None else _microseconds(moment) for span in link.held for moment in span]
            or None,
        }
        for change in changes
        if change.record
        for link in change.record.links
    ]


def read_nodes(nodes: Iterable[Row], links: Iterable[Row]) -> list[tuple[UUID, Node]]:
    """Return the nodes of ``list_nodes`` with their links of ``list_links``, in the same order."""
    links_of: dict[str, list[Link]] = defaultdict(list)
    for row in links:
        links_of[row[0]].append(_link(row))
    return [(UUID(row[0]), _node(row, links_of[row[0]])) for row in nodes]


def _followed(row: Row, as_of: datetime | None) -> FollowedLink:
    start, end, label, tier, kind, strength, is_forward, held = row
    ended = _is_ended(held or (), as_of)
    return FollowedLink(UUID(start), UUID(end), NodeLabel(label), tier, kind, float(strength), is_forward, ended)


def _is_ended(held: Sequence[int], as_of: datetime | None) -> bool:
    """Report whether none of the intervals holds a moment; now, if none is given, when the last of them counts."""
    if not held or as_of is None:
        return bool(held) and held[-1] != OPEN
    at = _microseconds(as_of)
    return not any(begin <= at < end for begin, end in _spans(held))


def _spans(held: Sequence[int]) -> Iterable[tuple[int, int]]:
    return zip(held[::2], held[1::2], strict=True)


def _link(row: Row) -> Link:
    source, target, kind, strength, users, shared, seen_at, held = row
    found = None if shared else tuple(users)
    spans = tuple((_moment(begin), None if end == OPEN else _moment(end)) for begin, end in _spans(held or ()))
    return Link(UUID(source), UUID(target), kind, float(strength), found, _moment(seen_at), spans)


def _node(row: Row, links: Sequence[Link]) -> Node:
    _, label, tenant, workspace, namespace, tier, user, name, seen_at = row
    return Node(NodeLabel(label), tenant, workspace, namespace, tier, user, name, _moment(seen_at), tuple(links))


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def _moment(microseconds: int) -> datetime:
    return _EPOCH + microseconds * _MICROSECOND
