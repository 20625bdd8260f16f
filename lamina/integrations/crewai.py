"""CrewAI: a storage of its unified memory."""

import asyncio
import base64
import json
import logging
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from math import sqrt
from typing import Any

from crewai.memory.types import MemoryRecord, ScopeInfo
from pydantic_core import to_jsonable_python

from lamina.errors import InvalidInput, NotFound
from lamina.integrations._clients import Clients, digest
from lamina.integrations._items import pack, unpack
from lamina.text.turn_parts import in_batches, is_blank, storable

Json = dict[str, Any]
PAGE = 100
# The model embeds as many in 50 s, and the client waits for 60.
MOST_TOKENS_AT_ONCE = 100_000
TAG_CHARS = 32
MOST_PLAIN_BYTES = 32_768
"""Of a record in the metadata, which hold 64 KiB, a vector among them."""
PACKED = "zlib"
logger = logging.getLogger(__name__)


class LaminaStorage:
    """Keep CrewAI's memory records as documents of a workspace, whose texts the searches of other doors find.

    CrewAI asks by vectors of its own model, of whatever dimension. They are kept beside each record and compared here,
    with those of every record of the asked scope, which are read for it: for some thousands of records at most. Records
    whose vectors have another dimension than the question's, from before a change of CrewAI's model, are left out, and
    a warning tells how many; save them again to find them. Scopes are paths, compared part by part.

    Args:
        scope: workspace, namespace, user and agent of everything that the storage holds.
        url: Where Lamina listens; ``LAMINA_URL``, then http://127.0.0.1:8000.
        key: API key; ``LAMINA_API_KEY``, or the file that ``LAMINA_API_KEY_FILE`` names.
    """

    def __init__(
        self, scope: Mapping[str, str] | None = None, *, url: str | None = None, key: str | None = None
    ) -> None:
        self._clients = Clients(url, key, scope)

    def close(self) -> None:
        """Close the connections."""
        self._clients.close()

    def save(self, records: list[MemoryRecord]) -> None:
        """Store records, each in place of the one of its id."""
        documents = (self._document(record) for record in records)
        for batch, _ in in_batches(documents, most_items=PAGE, most_tokens=MOST_TOKENS_AT_ONCE):
            answer = self._clients.plain.add_documents(batch)
            for document, result in zip(batch, answer["results"], strict=True):
                if result["status"] == "invalid":
                    raise InvalidInput(f"record {_record(document).id}", result["error"])

    def update(self, record: MemoryRecord) -> None:
        """Store a record in place of the one of its id."""
        self.save([record])

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: Json | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Return the records whose vectors are nearest, each with its cosine, 0 at least."""
        scored, others = [], 0
        for document in self._listed(scope_prefix):
            record = _record(document)
            if record.embedding is None or not _selects(record, categories, metadata_filter):
                continue
            if len(record.embedding) != len(query_embedding):
                others += 1
            elif (score := _cosine(query_embedding, record.embedding)) >= min_score:
                scored.append((record, score))
        if others:
            logger.warning("%d records have vectors of another dimension than %d", others, len(query_embedding))
        return sorted(scored, key=lambda pair: (-pair[1], pair[0].id))[:limit]

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: Json | None = None,
    ) -> int:
        """Delete the records that meet every condition; return how many."""
        deleted = 0
        for document in list(self._listed(scope_prefix)):
            record = _record(document)
            is_old = older_than is None or _utc(record.created_at) < _utc(older_than)
            is_named = record_ids is None or record.id in record_ids
            if is_old and is_named and _selects(record, categories, metadata_filter):
                with suppress(NotFound):
                    self._clients.plain.delete_document(document["id"])
                    deleted += 1
        return deleted

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """Return a record; ``None`` if there is none of its id."""
        found = self._clients.plain.documents(key=self._key(record_id))["documents"]
        return _record(found[0]) if found else None

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """Return the records of a scope, the newest first."""
        return self._records(scope_prefix)[offset : offset + limit]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Return the number of records, their categories and times, and the scopes below."""
        records = self._records(scope)
        return ScopeInfo(
            path=scope,
            record_count=len(records),
            categories=sorted({category for record in records for category in record.categories}),
            oldest_record=records[-1].created_at if records else None,
            newest_record=records[0].created_at if records else None,
            child_scopes=_children(scope, records),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """Return the scopes directly below one."""
        return _children(parent, self._records(parent))

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Return how many records of a scope each category has."""
        return dict(Counter(category for record in self._records(scope_prefix) for category in record.categories))

    def count(self, scope_prefix: str | None = None) -> int:
        """Return the number of records in a scope and those below."""
        return sum(1 for _ in self._listed(scope_prefix))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Delete the records of a scope and those below."""
        self.delete(scope_prefix)

    async def asave(self, records: list[MemoryRecord]) -> None:
        """Store records, each in place of the one of its id."""
        await asyncio.to_thread(self.save, records)

    async def asearch(
        self, query_embedding: list[float], *args: Any, **options: Any
    ) -> list[tuple[MemoryRecord, float]]:
        """Return the records whose vectors are nearest, each with its cosine."""
        return await asyncio.to_thread(self.search, query_embedding, *args, **options)

    async def adelete(self, *args: Any, **options: Any) -> int:
        """Delete the records that meet every condition; return how many."""
        return await asyncio.to_thread(self.delete, *args, **options)

    def _records(self, scope: str | None) -> list[MemoryRecord]:
        found = [_record(document) for document in self._listed(scope)]
        return sorted(found, key=lambda record: _utc(record.created_at), reverse=True)

    def _listed(self, scope: str | None) -> Iterator[Json]:
        cursor: Json | None = {}
        while cursor is not None:
            answer = self._clients.plain.documents(tag=[self._tag(_parts(scope or "/"))], limit=PAGE, **cursor)
            yield from answer["documents"]
            cursor = {"cursor": answer["next_cursor"]} if answer["next_cursor"] else None

    def _key(self, id_: str) -> str:
        # With the user, whose reads see shared documents as well, and without one those of everybody.
        return "crewai:" + digest(self._clients.scope.get("user"), id_)

    def _tag(self, parts: Sequence[str]) -> str:
        return "crewai:" + digest(self._clients.scope.get("user"), list(parts))[:TAG_CHARS]

    def _document(self, record: MemoryRecord) -> Json:
        parts = _parts(record.scope)
        vector = array("f", record.embedding or []).tobytes()
        content = storable(record.content)
        return {
            "content": "-" if is_blank(content) else content,
            "key": self._key(record.id),
            "tags": [self._tag(parts[:depth]) for depth in range(len(parts) + 1)],
            "occurred_at": _utc(record.created_at).isoformat(),
            "source": "crewai",
            "metadata": {"record": _kept(record), "vector": base64.b64encode(vector).decode()},
        }


def _parts(scope: str) -> list[str]:
    return [part for part in scope.split("/") if part]


def _kept(record: MemoryRecord) -> Json:
    """Return a record for the metadata, without its vector; packed if it is long or not valid as text."""
    whole = json.dumps(record.model_dump(), ensure_ascii=False, default=to_jsonable_python)
    is_plain = storable(whole) == whole and "\\u0000" not in whole and len(whole.encode()) <= MOST_PLAIN_BYTES
    found: Json = json.loads(whole) if is_plain else {PACKED: pack(json.dumps(json.loads(whole)))}
    return found


def _record(document: Json) -> MemoryRecord:
    vector = array("f", base64.b64decode(document["metadata"]["vector"]))
    kept = document["metadata"]["record"]
    fields = json.loads(unpack(kept[PACKED])) if PACKED in kept else kept
    return MemoryRecord(**fields, embedding=vector.tolist() or None)


def _selects(record: MemoryRecord, categories: Sequence[str] | None, metadata: Json | None) -> bool:
    has_category = not categories or bool(set(categories) & set(record.categories))
    return has_category and all(record.metadata.get(name) == value for name, value in (metadata or {}).items())


def _children(parent: str, records: Sequence[MemoryRecord]) -> list[str]:
    depth = len(_parts(parent)) + 1
    return sorted({"/" + "/".join(parts[:depth]) for record in records if len(parts := _parts(record.scope)) >= depth})


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    length = sqrt(sum(value * value for value in one) * sum(value * value for value in other))
    product = sum(left * right for left, right in zip(one, other, strict=True))
    return max(0.0, product / length) if length else 0.0


def _utc(moment: datetime) -> datetime:
    """Return a moment with its zone: CrewAI's own have none, and are UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
