"""LangGraph: a store of long-term memory, which deepagents mounts as well."""

import inspect
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Self, TypeVar, cast

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    get_text_at_path,
)

from lamina.client import AsyncClient, Client
from lamina.errors import InvalidInput, NotFound, PreconditionFailed
from lamina.integrations._clients import Clients, digest
from lamina.text.turn_parts import fitting_question, in_batches, is_blank, storable

Json = dict[str, Any]
Namespace = tuple[str, ...]
Done = TypeVar("Done")
PAGE = 100
MOST_HITS = 1000
# The model embeds as many tokens in 50 s, and the client waits for 60.
DOCUMENTS_AT_ONCE, MOST_TOKENS_AT_ONCE = 100, 100_000
TAG_CHARS = 32
# Of the 64 tags that a document may have, one stands for the whole store.
MOST_LEVELS = 60
# Above it a value is the text of its document: metadata hold 64 KiB.
MOST_METADATA_BYTES = 48_000
MOST_METADATA_VALUES = 4_000
# A read moves the expiry of an item once this part of its time is over, so that not every read is a write.
REFRESHED_AFTER = 0.01
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": lambda value, other: value > other,
    "$gte": lambda value, other: value >= other,
    "$lt": lambda value, other: value < other,
    "$lte": lambda value, other: value <= other,
}


class LaminaStore(BaseStore):
    """Keep LangGraph's items as documents of a workspace: one an item, found by its words and by its meaning.

    Of a batch the reads see the state before it, as in LangGraph's own stores; of several writes of an item the last
    counts. The writes of a batch take place together, up to 100 with 100 000 tokens, and a batch that is cancelled ends
    no other. Expired items are never read; `sweep_ttl` deletes them. Without a query, the item that was put last comes
    first.

    Args:
        url: Where Lamina listens; ``LAMINA_URL``, then http://127.0.0.1:8000.
        key: API key; ``LAMINA_API_KEY``, or the file that ``LAMINA_API_KEY_FILE`` names.
        scope: workspace, namespace, user and agent of everything that the store holds.
        index: Of LangGraph's options ``fields`` alone counts: Lamina embeds by its own model.
        ttl: LangGraph's options; times are in minutes.
        now: The time of day.
    """

    supports_ttl = True

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        scope: Mapping[str, str] | None = None,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._clients = Clients(url, key, scope)
        self._fields = list((index or {}).get("fields") or ["$"])
        self.ttl_config = ttl
        self._now = now

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
        await self.aclose()

    def close(self) -> None:
        """Close the connections of the synchronous methods."""
        self._clients.close()

    async def aclose(self) -> None:
        """Close the connections of the asynchronous methods, of this event loop."""
        await self._clients.aclose()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: first what reads, then what writes."""
        return _run(self._over(self._clients.plain).run(list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: first what reads, then what writes."""
        return await self._over(self._clients.of_loop()).run(list(ops))

    def sweep_ttl(self) -> int:
        """Delete the items that have expired; return how many."""
        return _run(self._over(self._clients.plain).sweep())

    async def asweep_ttl(self) -> int:
        """Delete the items that have expired; return how many."""
        return await self._over(self._clients.of_loop()).sweep()

    def _over(self, client: Client | AsyncClient) -> "_Operations":
        return _Operations(client, self._clients.scope, self._fields, self._now)


class _Operations:
    """The operations over either client: of the synchronous one each call is done when it returns."""

    def __init__(
        self, client: Client | AsyncClient, scope: Json, fields: Sequence[str], now: Callable[[], datetime]
    ) -> None:
        self._client = client
        self._user = scope.get("user")
        self._fields = fields
        self._now = now

    async def run(self, ops: Sequence[Op]) -> list[Result]:
        """Return the result of each operation, in their order."""
        unknown = next((op for op in ops if not isinstance(op, GetOp | SearchOp | ListNamespacesOp | PutOp)), None)
        if unknown is not None:
            raise ValueError(f"{type(unknown).__name__} is no operation of a store")
        writes = {self._key(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        puts = [self._document(op) for op in writes.values() if op.value is not None]
        results = [None if isinstance(op, PutOp) else await self._read(op) for op in ops]
        for op in [op for op in writes.values() if op.value is not None]:
            await self._end_expired(op)
        for batch, _ in in_batches(puts, most_items=DOCUMENTS_AT_ONCE, most_tokens=MOST_TOKENS_AT_ONCE):
            answer = await _answer(self._client.add_documents(batch))
            for put, result in zip(batch, answer["results"], strict=True):
                if result["status"] == "invalid":
                    raise InvalidInput(f"value of {put['metadata']['key']!r}", result["error"])
        for op in [op for op in writes.values() if op.value is None]:
            for document in await self._keyed(op.namespace, op.key):
                await self._delete(document["id"])
        return results

    async def sweep(self) -> int:
        """Delete the items that have expired, unless somebody writes or reads them at this moment."""
        now = self._now()
        expired = [document async for document in self._listed(()) if _has_expired(document["metadata"], now)]
        return sum([await self._delete(document["id"], document["version"]) for document in expired])

    async def _end_expired(self, op: PutOp) -> None:
        """Delete the expired item in whose place one is put, so that the new one has a beginning of its own."""
        for document in await self._keyed(op.namespace, op.key):
            if _has_expired(document["metadata"], self._now()):
                await self._delete(document["id"], document["version"])

    async def _read(self, op: GetOp | SearchOp | ListNamespacesOp) -> Result:
        match op:
            case GetOp():
                return await self._get(op)
            case SearchOp():
                return await self._search(op)
            case ListNamespacesOp():
                return await self._namespaces(op)

    async def _get(self, op: GetOp) -> Item | None:
        for document in await self._keyed(op.namespace, op.key):
            if not _has_expired(document["metadata"], self._now()):
                if op.refresh_ttl:
                    await self._refresh(document)
                return Item(**await self._fields_of(document))
        return None

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        question = fitting_question(op.query or "")
        found = self._found(op, question) if question else self._unranked(op)
        items: list[SearchItem] = []
        passed = 0
        async for document, score in found:
            if len(items) >= op.limit:
                break
            fields = await self._fields_of(document)
            if not _matches(fields["value"], op.filter or {}):
                continue
            passed += 1
            if passed > op.offset:
                if op.refresh_ttl:
                    await self._refresh(document)
                items.append(SearchItem(**fields, score=score))
        return items

    async def _unranked(self, op: SearchOp) -> AsyncIterator[tuple[Json, None]]:
        now = self._now()
        # The whole list before the first is refreshed: a page must not move under its reader.
        for document in [document async for document in self._listed(op.namespace_prefix)]:
            if not _has_expired(document["metadata"], now):
                yield document, None

    async def _found(self, op: SearchOp, question: str) -> AsyncIterator[tuple[Json, float]]:
        """Read what a search finds; the state that Postgres has now counts, not the one that is indexed."""
        # Several passages may be of one item, and a filter leaves out others.
        limit = MOST_HITS if op.filter else min(MOST_HITS, 4 * (op.limit + op.offset) + 20)
        tags = [self._tag(op.namespace_prefix)]
        answer = await _answer(self._client.search(question, tiers=["documents"], tags=tags, limit=limit))
        seen = set()
        for hit in answer["results"]:
            if hit["document"] in seen or hit["workspace"] is not None:
                continue
            seen.add(hit["document"])
            with suppress(NotFound):
                document = await _answer(self._client.document(hit["document"], content=False))
                if document["metadata"]["indexed"] and not _has_expired(document["metadata"], self._now()):
                    yield document, hit["score"]

    async def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        conditions = op.match_conditions or ()
        now = self._now()
        found = set()
        async for document in self._listed(_literal_prefix(conditions)):
            namespace = tuple(document["metadata"]["namespace"])
            if not _has_expired(document["metadata"], now) and all(_selects(one, namespace) for one in conditions):
                found.add(namespace[: op.max_depth])
        return sorted(found)[op.offset : op.offset + op.limit]

    async def _listed(self, prefix: Namespace) -> AsyncIterator[Json]:
        seen = set()
        cursor: Json = {}
        while True:
            answer = await _answer(self._client.documents(tag=[self._tag(prefix)], limit=PAGE, **cursor))
            new = [document for document in answer["documents"] if document["id"] not in seen]
            seen |= {document["id"] for document in new}
            for document in new:
                yield document
            following = answer["next_cursor"]
            if not new or (following is None and not cursor):
                return
            # After the last of several pages the first once more: what was written meanwhile has moved there.
            cursor = {} if following is None else {"cursor": following}

    async def _keyed(self, namespace: Namespace, key: str) -> list[Json]:
        return await self._documents(key=self._key(namespace, key))

    async def _documents(self, **fields: Any) -> list[Json]:
        found: list[Json] = (await _answer(self._client.documents(**fields)))["documents"]
        return found

    async def _fields_of(self, document: Json) -> Json:
        metadata = document["metadata"]
        if "value" in metadata:
            value = metadata["value"]
        else:
            value = json.loads((await _answer(self._client.document(document["id"])))["content"])
        return {
            "value": value,
            "key": metadata["key"],
            "namespace": tuple(metadata["namespace"]),
            "created_at": datetime.fromisoformat(document["created_at"]),
            "updated_at": datetime.fromisoformat(document["occurred_at"]),
        }

    async def _refresh(self, document: Json) -> None:
        """Move the expiry of an item, unless somebody writes it at this moment."""
        metadata, now = document["metadata"], self._now()
        if metadata.get("ttl") is None:
            return
        ttl = timedelta(minutes=metadata["ttl"])
        if datetime.fromisoformat(metadata["expires_at"]) - now > ttl * (1 - REFRESHED_AFTER):
            return
        with suppress(PreconditionFailed, NotFound):
            whole = await _answer(self._client.document(document["id"]))
            await _answer(
                self._client.add_document(
                    whole["content"],
                    if_version=document["version"],
                    key=document["key"],
                    title=document["title"],
                    tags=document["tags"],
                    occurred_at=document["occurred_at"],
                    source=document["source"],
                    metadata={**metadata, "expires_at": (now + ttl).isoformat()},
                )
            )

    async def _delete(self, id_: str, version: int | None = None) -> bool:
        with suppress(NotFound, PreconditionFailed):
            await _answer(self._client.delete_document(id_, if_version=version))
            return True
        return False

    def _key(self, namespace: Namespace, key: str) -> str:
        # With the user, whose reads see shared documents as well, and without one those of everybody.
        return "langgraph:" + digest(self._user, *namespace, key)

    def _tag(self, prefix: Namespace) -> str:
        """Return the tag of everything below a namespace; no sibling has it, however its name begins."""
        return "langgraph:" + digest(self._user, prefix)[:TAG_CHARS]

    def _document(self, op: PutOp) -> Json:
        """Return the document that an item becomes.

        Raises:
            InvalidInput: If its namespace is too deep, or its value is no JSON.
        """
        value = dict(op.value or {})
        if len(op.namespace) > MOST_LEVELS:
            raise InvalidInput("namespace", f"has {len(op.namespace)} levels; at most {MOST_LEVELS} are accepted")
        try:
            text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"value of {op.key!r}", f"is no JSON: {error}") from error
        now = self._now()
        is_plain = storable(text) == text and "\\u0000" not in text
        words = "" if op.index is False else storable("\n".join(_texts(value, op.index or self._fields)))
        metadata: Json = {"namespace": list(op.namespace), "key": op.key, "indexed": not is_blank(words)}
        if op.ttl is not None:
            metadata |= {"ttl": op.ttl, "expires_at": (now + timedelta(minutes=op.ttl)).isoformat()}
        has_few = text.count(",") + text.count(":") < MOST_METADATA_VALUES
        if is_plain and has_few and len(text.encode()) <= MOST_METADATA_BYTES:
            metadata["value"] = value
            content = words if metadata["indexed"] else "-" if is_blank(op.key) else op.key
        else:  # As ASCII, JSON holds what no text may: NUL, and halves of characters.
            content = text if is_plain else json.dumps(value)
        return {
            "content": content,
            "key": self._key(op.namespace, op.key),
            "tags": [self._tag(op.namespace[:depth]) for depth in range(len(op.namespace) + 1)],
            "occurred_at": now.isoformat(),
            "source": "langgraph",
            "metadata": metadata,
        }


def _run(operation: Coroutine[Any, Any, Done]) -> Done:
    """Run an operation over the synchronous client, which never waits for a loop."""
    try:
        operation.send(None)
    except StopIteration as done:
        return cast("Done", done.value)
    raise RuntimeError("an operation over the synchronous client waited for an event loop")


async def _answer(call: Any) -> Any:
    return await call if inspect.isawaitable(call) else call


def _has_expired(metadata: Json, now: datetime) -> bool:
    return "expires_at" in metadata and datetime.fromisoformat(metadata["expires_at"]) <= now


def _texts(value: Json, fields: Sequence[str]) -> Iterator[str]:
    for field in fields:
        if field == "$":
            yield from _leaves(value)
        else:
            yield from get_text_at_path(value, field)


def _leaves(value: Any, name: str = "") -> Iterator[str]:
    """Name and text of each leaf: a value as a whole is found by its words, not by its punctuation."""
    match value:
        case dict():
            for part, inner in value.items():
                yield from _leaves(inner, f"{name} {part}".strip())
        case list() | tuple():
            for inner in value:
                yield from _leaves(inner, name)
        case None:
            return
        case _:
            yield f"{name}: {value}"


def _literal_prefix(conditions: Sequence[MatchCondition]) -> Namespace:
    """Return the longest beginning that all namespaces have which the conditions select."""
    beginnings = []
    for condition in conditions:
        if condition.match_type == "prefix":
            path = tuple(condition.path)
            beginnings.append(path[: path.index("*")] if "*" in path else path)
    return max(beginnings, key=len, default=())


def _selects(condition: MatchCondition, namespace: Namespace) -> bool:
    path = tuple(condition.path)
    if condition.match_type not in {"prefix", "suffix"}:
        raise ValueError(f"{condition.match_type!r} is no way to match a namespace; prefix and suffix are")
    if len(path) > len(namespace):
        return False
    compared = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in {"*", name} for wanted, name in zip(path, compared, strict=True))


def _matches(value: Any, wanted: Any) -> bool:
    """Report whether a value is what a filter wants: each field of it, compared whole or by operators."""
    if not isinstance(wanted, Mapping):
        return bool(value == wanted)
    if any(str(name).startswith("$") for name in wanted):
        return all(_compares(operator, value, other) for operator, other in wanted.items())
    return isinstance(value, Mapping) and all(_matches(value.get(name), inner) for name, inner in wanted.items())


def _compares(operator: str, value: Any, other: Any) -> bool:
    """Compare by one operator; a value of another kind is neither more nor less.

    Raises:
        ValueError: For an operator that there is not.
    """
    match operator:
        case "$eq":
            return bool(value == other)
        case "$ne":
            return bool(value != other)
    if operator not in _COMPARISONS:
        raise ValueError(f"{operator!r} is no operator of a filter; $eq, $ne, $gt, $gte, $lt and $lte are")
    are_numbers = all(isinstance(one, int | float) for one in (value, other))
    are_texts = all(isinstance(one, str) for one in (value, other))
    return (are_numbers or are_texts) and _COMPARISONS[operator](value, other)
