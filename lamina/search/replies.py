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


def bounded(outcomes: Mapping[Source, Ranking | Failure]) -> dict[Source, Ranking | Failure]:
    """Return the rankings without large metadata, which are read when the answer is made, and at most 3 MiB of hits.

    Memories beyond that are the last ones of each source; a memory in several rankings counts once.
    """
    rankings = {
        source: tuple(map(_lighten, outcome))
        for source, outcome in outcomes.items()
        if not isinstance(outcome, Failure)
    }
    ranks = _ranks_that_fit(rankings)
    return {**outcomes, **{source: ranking[:ranks] for source, ranking in rankings.items()}}


def _lighten(hit: Hit) -> Hit:
    metadata = hit.memory.metadata
    if not metadata or json_bytes(metadata) <= SMALL_METADATA_BYTES:
        return hit
    return replace(hit, memory=replace(hit.memory, metadata=None))


def _ranks_that_fit(rankings: Mapping[Source, Ranking]) -> int:
    size_bytes, ranks = 0, 0
    seen: set[UUID] = set()
    for hits in zip_longest(*rankings.values()):
        new = {hit.memory.id: hit.memory for hit in hits if hit is not None and hit.memory.id not in seen}
        size_bytes += sum(map(_size_bytes, new.values()))
        if size_bytes > MAX_REPLY_BYTES:
            return max(ranks, 1)
        seen.update(new)
        ranks += 1
    return ranks


def _size_bytes(memory: Memory) -> int:
    texts = (memory.content, memory.name, memory.ref, memory.source, memory.title, memory.kind, *memory.tags)
    metadata_bytes = SMALL_METADATA_BYTES if memory.metadata else 0
    return _HIT_BYTES + metadata_bytes + sum(len(text.encode("utf-8", "replace")) for text in texts if text)
