"""Fingerprints: when two states of a memory are equal in a projection."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from uuid import UUID

from lamina.core.links import Link, Node
from lamina.core.ports import PlacedRecord, Record

State = Record | PlacedRecord | Node | None
_DIGITS = 9


def fingerprint(state: State) -> str | None:
    """Return the number of chunks and a checksum, equal for equal states; ``None`` where nothing should be."""
    match state:
        case None:
            return None
        case PlacedRecord(record=record):
            return fingerprint(record)
        case Record(texts=texts):
            return f"{len(texts)}:{_digest(_record_parts(state), state.texts, state.embeddings)}"
        case Node():
            return _digest(*_node_parts(state))


def chunk_fingerprints(chunks: Iterable[tuple[UUID, str]]) -> Mapping[UUID, str]:
    """Return the fingerprint of every memory, given those that its chunks carry.

    A memory that lacks a chunk, has one too many or has them of different states gets another fingerprint than it
    should have.
    """
    carried: dict[UUID, list[str]] = defaultdict(list)
    for id_, state in chunks:
        carried[id_].append(state)
    return {id_: _common_state(states) for id_, states in carried.items()}


def _common_state(states: list[str]) -> str:
    first, *_ = distinct = sorted(set(states))
    is_whole = len(distinct) == 1 and first.partition(":")[0] == str(len(states))
    return first if is_whole else f"{len(states)} chunks of {', '.join(distinct)}"


def _digest(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def _record_parts(record: Record) -> tuple[object, ...]:
    place = record.tenant, record.workspace, record.namespace, record.user, record.session, record.agent
    traits = record.tags, record.occurred_at.timestamp(), record.confidence, record.category, record.source
    return (*place, *traits, record.importance)


def _node_parts(node: Node) -> tuple[object, object]:
    fields = (
        node.label,
        node.tenant,
        node.workspace,
        node.namespace,
        node.tier,
        node.user,
        node.name,
        node.seen_at.timestamp(),
    )
    return fields, sorted(_link_parts(link) for link in node.links)


def _link_parts(link: Link) -> tuple[str, ...]:
    users = None if link.users is None else sorted(link.users)
    held = [(begin.timestamp(), None if end is None else end.timestamp()) for begin, end in link.held]
    parts = str(link.target), link.kind, f"{link.strength:.{_DIGITS}f}", repr(users), repr(link.seen_at.timestamp())
    return (*parts, repr(held)) if held else parts
