"""Replies of searchers: small enough for the way between processes, whatever their tenants stored.

Ray's transport refuses a reply of more than 4 MiB: a whole tier would be missing, or a batch of several tenants'
queries would have to be asked again one by one.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import zip_longest
from uuid import UUID

from lamina.core.queries import Failure, Hit, Memory, Ranking
from lamina.core.tiers import Source
from lamina.text.hygiene import json_bytes

SMALL_METADATA_BYTES = 1024
MAX_REPLY_BYTES = 3 * 1024 * 1024
# Ids, times, and the figures of three sources.
_HIT_BYTES = 600


def bounded(
    outcomes: Mapping[Source, Ranking | Failure], *, late_metadata: bool = True
) -> dict[Source, Ranking | Failure]:
    """Return the rankings without large metadata, which are read when the answer is made, and at most 3 MiB of hits.

    Memories beyond that are the last ones of each source; a memory in several rankings counts once.

    Args:
        outcomes: Of each source.
        late_metadata: Whether the asking router reads large metadata itself. One of an earlier release, beside which
            this process works during an upgrade, takes them whole or not at all.
    """
    rankings = {
        source: tuple(_lighten(hit) if late_metadata else hit for hit in outcome)
        for source, outcome in outcomes.items()
        if not isinstance(outcome, Failure)
    }
    ranks = _ranks_that_fit(rankings, SMALL_METADATA_BYTES if late_metadata else None)
    return {**outcomes, **{source: ranking[:ranks] for source, ranking in rankings.items()}}


def _lighten(hit: Hit) -> Hit:
    metadata = hit.memory.metadata
    if not metadata or json_bytes(metadata) <= SMALL_METADATA_BYTES:
        return hit
    return replace(hit, memory=replace(hit.memory, metadata=None))


def _ranks_that_fit(rankings: Mapping[Source, Ranking], metadata_bytes: int | None) -> int:
    size_bytes, ranks = 0, 0
    seen: set[UUID] = set()
    for hits in zip_longest(*rankings.values()):
        new = {hit.memory.id: hit.memory for hit in hits if hit is not None and hit.memory.id not in seen}
        size_bytes += sum(_size_bytes(memory, metadata_bytes) for memory in new.values())
        if size_bytes > MAX_REPLY_BYTES:
            return max(ranks, 1)
        seen.update(new)
        ranks += 1
    return ranks


def _size_bytes(memory: Memory, metadata_bytes: int | None) -> int:
    """Return about how large a memory is, its metadata being so large at most, or as large as they are."""
    texts = (memory.content, memory.name, memory.ref, memory.source, memory.title, memory.kind, *memory.tags)
    of_metadata = (metadata_bytes or json_bytes(memory.metadata)) if memory.metadata else 0
    return _HIT_BYTES + of_metadata + sum(len(text.encode("utf-8", "replace")) for text in texts if text)
