"""Collections of a Qdrant server: each behind an alias, so that a build takes its predecessor's place at once.

The alias ``lamina_notes`` names the collection ``lamina_notes.0`` at first, and ``lamina_notes.3`` after build 3.
"""

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]  # they have none
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

from lamina.aio.deadline import deadline
from lamina.errors import Misconfigured, Unavailable
from lamina.settings.stores import IN_MEMORY, QdrantServerSettings
from lamina.stores.index.points import DENSE, WORDS
from lamina.stores.index.ports import KEYWORD_FIELDS, NUMBER_FIELDS, TIME_FIELD

PART = "index"
OLDEST_SERVER = (1, 19)
FIRST = 0
_REFUSED = {
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.PERMISSION_DENIED,
}
_WRONG = {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY, grpc.StatusCode.INVALID_ARGUMENT}
MOST_ERROR_CHARS = 200
_MISSING = {HTTPStatus.NOT_FOUND, grpc.StatusCode.NOT_FOUND}
_THERE_ALREADY = {HTTPStatus.CONFLICT, grpc.StatusCode.ALREADY_EXISTS}


_SPARSE = {WORDS: models.SparseVectorParams(modifier=models.Modifier.IDF)}
_FIELDS: Mapping[str, Any] = {
    **{name: models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD) for name in KEYWORD_FIELDS},
    "tenant": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    **dict.fromkeys(NUMBER_FIELDS, models.PayloadSchemaType.FLOAT),
    TIME_FIELD: models.PayloadSchemaType.DATETIME,
}


class CollectionMissing(Unavailable):
    """A collection that should be on the server is not there."""


def connect(settings: QdrantServerSettings, name: str) -> AsyncQdrantClient:
    """Return a client, which connects at need; used in one event loop.

    Args:
        settings: The server.
        name: Name of the index; in a folder each index has its own folder, which one client has open.
    """
    if settings.url == IN_MEMORY:
        return AsyncQdrantClient(IN_MEMORY)
    if settings.is_local:
        return AsyncQdrantClient(path=str(Path(settings.url) / name))
    key = settings.api_key.get_secret_value() if settings.api_key else None
    return AsyncQdrantClient(
        url=settings.url,
        api_key=key,
        prefer_grpc=settings.grpc_port is not None,
        grpc_port=settings.grpc_port or 6334,
        timeout=math.ceil(settings.write_timeout_s),
        check_compatibility=False,  # It asks the server while it is made.
    )


@asynccontextmanager
async def library_errors(deadline_s: float) -> AsyncIterator[None]:
    """Turn the errors of the client into the library's own.

    Raises:
        Unavailable: If the server does not answer in time, or lacks the collection.
        Misconfigured: If it refuses the key.
    """
    try:
        async with deadline(PART, deadline_s):
            yield
    except (ApiException, QdrantException, grpc.RpcError, OSError, ValueError) as error:
        raise _library_error(error) from error


def _library_error(error: Exception) -> Exception:
    status = _status(error)
    if status in _REFUSED:
        return Misconfigured("qdrant refuses the API key", "set api_key of hybrid and vectors to one that may write")
    if status in _MISSING:
        return CollectionMissing(
            PART, "a collection is missing on the server; run `lamina reindex`, or start the service again"
        )
    if status in _WRONG:
        return Misconfigured(
            f"qdrant refuses a call: {_describe(error)}", "compare its version and its collections with ours"
        )
    return Unavailable(PART, _describe(error))


def _describe(error: Exception) -> str:
    """Return the error in one line."""
    match error:
        case grpc.aio.AioRpcError():
            text = f"{error.code().name.lower()}: {error.details()}"
        case UnexpectedResponse(content=bytes(content), status_code=status):
            text = f"{status}: {content[:MOST_ERROR_CHARS].decode(errors='replace')}"
        case _:
            text = str(error)
    return f"{type(error).__name__}: {' '.join(text.split())[:MOST_ERROR_CHARS] or 'no answer'}"


def _status(error: Exception) -> int | grpc.StatusCode | None:
    match error:
        case UnexpectedResponse(status_code=int(number)):
            return number
        case grpc.aio.AioRpcError():
            return error.code()
        case ValueError() if "not found" in str(error):  # Of the local one.
            return HTTPStatus.NOT_FOUND
        case _:
            return None


class Collections:
    """The collections of one projection, each behind an alias.

    Args:
        settings: The server, and the options of new collections.
        client: Asks it.
        dimension: Length of the dense vectors; ``None`` for words alone.
    """

    def __init__(self, settings: QdrantServerSettings, client: AsyncQdrantClient, *, dimension: int | None) -> None:
        self._settings = settings
        self._client = client
        self._dimension = dimension
        self._is_local = settings.is_local
        self._ready: set[str] = set()

    async def refuse_old_server(self) -> None:
        """Refuse a server that cannot count words within a scope.

        Raises:
            Misconfigured: If it is older than 1.19.
        """
        if self._is_local:
            return
        async with library_errors(self._settings.write_timeout_s):
            version = (await self._client.info()).version
        if tuple(int(part) for part in version.split(".")[:2] if part.isdecimal()) < OLDEST_SERVER:
            raise Misconfigured(f"the qdrant server is {version}", "run 1.19 or later")

    def forget(self, alias: str) -> None:
        """Ask the server again, at the next change, whether there is this collection."""
        self._ready = {name for name in self._ready if name != alias and build_of(name, alias) is None}

    async def aliases(self, prefix: str) -> Mapping[str, str]:
        """Return the collection behind each alias that begins like this."""
        async with library_errors(self._settings.write_timeout_s):
            found = (await self._client.get_aliases()).aliases
        return {item.alias_name: item.collection_name for item in found if item.alias_name.startswith(prefix)}

    async def ensure(self, alias: str) -> None:
        """Make the collection behind an alias, if there is none; asked of the server once.

        Raises:
            Misconfigured: If there is one for other vectors.
        """
        if alias in self._ready:
            return
        name = (await self.aliases(alias)).get(alias)
        if name is None:
            await self.make(name := collection_of_build(alias, FIRST))
            await self._change_aliases([_point(alias, name)])
        await self._refuse_other(name)
        self._ready.add(alias)

    async def make(self, name: str) -> None:
        """Make a collection with the indexes of its fields; fine if there is one already."""
        if name in self._ready:
            return
        async with library_errors(self._settings.write_timeout_s):
            await self._create(name)
            for field, schema in _FIELDS.items() if not self._is_local else ():  # The local one has no indexes.
                await self._client.create_payload_index(name, field, field_schema=schema, wait=True)
        self._ready.add(name)

    async def built(self, prefix: str, build: int) -> frozenset[str]:
        """Return the aliases with this prefix that have a collection of the build."""
        async with library_errors(self._settings.write_timeout_s):
            found = (await self._client.get_collections()).collections
        names = (item.name.rpartition(".") for item in found)
        return frozenset(alias for alias, _, number in names if alias.startswith(prefix) and number == str(build))

    async def switch(self, aliases: Sequence[str], build: int, *, freed: Sequence[str] = ()) -> None:
        """Put a build's collections behind these aliases, and nothing behind others, in one step; idempotent.

        The collections of the builds before are removed.
        """
        for alias in aliases:
            await self.make(collection_of_build(alias, build))
        # An alias that is there already is moved by making it again, in one step.
        moved = [_point(alias, collection_of_build(alias, build)) for alias in aliases]
        deleted = (models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias)) for alias in freed)
        await self._change_aliases([*moved, *deleted])
        for alias in (*aliases, *freed):
            await self._remove_outdated(alias, build)

    async def _create(self, name: str) -> None:
        settings = self._settings
        try:
            await self._client.create_collection(
                name,
                vectors_config=_dense(settings, self._dimension),
                sparse_vectors_config=_SPARSE,
                shard_number=settings.shards,
                replication_factor=settings.replicas,
                write_consistency_factor=max(1, settings.replicas - 1),
            )
        except (ApiException, grpc.RpcError) as error:
            if _status(error) not in _THERE_ALREADY and not await self._client.collection_exists(name):
                raise
        except ValueError:  # The local one says so.
            if not await self._client.collection_exists(name):
                raise

    async def _change_aliases(self, changes: Sequence[models.AliasOperations]) -> None:
        async with library_errors(self._settings.write_timeout_s):
            if changes:
                await self._client.update_collection_aliases(list(changes))

    async def _remove_outdated(self, alias: str, current: int) -> None:
        async with library_errors(self._settings.write_timeout_s):
            known = [item.name for item in (await self._client.get_collections()).collections]
            for name in known:
                if (build := build_of(name, alias)) is not None and build < current:
                    await self._client.delete_collection(name)
                    self.forget(alias)

    async def _refuse_other(self, name: str) -> None:
        async with library_errors(self._settings.write_timeout_s):
            params = (await self._client.get_collection(name)).config.params
        vectors = params.vectors if isinstance(params.vectors, dict) else {}
        stored = vectors[DENSE].size if DENSE in vectors else None
        if stored != self._dimension:
            raise Misconfigured(
                f"the collection {name} is for vectors of {stored} dimensions, expected {self._dimension}",
                "choose another prefix, or remove the collection",
            )


def _dense(settings: QdrantServerSettings, dimension: int | None) -> dict[str, models.VectorParams]:
    if dimension is None:
        return {}
    hnsw = models.HnswConfigDiff(m=settings.m, ef_construct=settings.ef_construction)
    return {
        DENSE: models.VectorParams(
            size=dimension,
            distance=models.Distance.COSINE,
            hnsw_config=hnsw,
            quantization_config=_quantisation(settings),
            on_disk=settings.on_disk,
        )
    }


def _quantisation(settings: QdrantServerSettings) -> Any:
    match settings.quantisation:
        case "none":
            return None
        case "scalar":
            kept = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
            return models.ScalarQuantization(scalar=kept)
        case "binary":
            return models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True))


def build_of(name: str, alias: str) -> int | None:
    """Return which build of an alias a collection is; ``None`` if it is another one's."""
    own, _, number = name.rpartition(".")
    return int(number) if own == alias and number.isdecimal() else None


def collection_of_build(alias: str, build: int) -> str:
    """Return the name of the collection that is a build of an alias."""
    return f"{alias}.{build}"


def _point(alias: str, name: str) -> models.CreateAliasOperation:
    return models.CreateAliasOperation(create_alias=models.CreateAlias(collection_name=name, alias_name=alias))
