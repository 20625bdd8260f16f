"""Ids between Python and Postgres: a search reads and sends some hundred, which psycopg converts slowly."""

import struct
from collections.abc import Sequence
from typing import Any
from uuid import UUID, SafeUUID

import psycopg
from psycopg.abc import AdaptContext, Buffer, Dumper, DumperKey
from psycopg.adapt import AdaptersMap, Loader, PyFormat
from psycopg.adapt import Dumper as PlainDumper
from psycopg.pq import Format
from psycopg.types.array import ListDumper

_OIDS = psycopg.adapters.types["uuid"]
_HEAD = struct.Struct("!IIIII")
_ID_BYTES = (16).to_bytes(4, "big")


# The constructor checks its arguments for a microsecond, and every other way into an id is closed.
_set_int, _set_is_safe = UUID.__dict__["int"].__set__, UUID.__dict__["is_safe"].__set__
_UNKNOWN = SafeUUID.unknown


class _IdLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> UUID:
        id_ = object.__new__(UUID)
        _set_int(id_, int.from_bytes(data, "big"))
        _set_is_safe(id_, _UNKNOWN)
        return id_


class _IdsDumper(PlainDumper):
    format = Format.BINARY
    oid = _OIDS.array_oid

    def dump(self, obj: Sequence[UUID]) -> Buffer:
        """Return an array of one dimension, without nulls, counted from 1."""
        return _HEAD.pack(1, 0, _OIDS.oid, len(obj), 1) + b"".join([_ID_BYTES + id_.bytes for id_ in obj])


class _ListDumper(ListDumper):
    def get_key(self, obj: list[Any], format: PyFormat) -> DumperKey:  # noqa: A002 - psycopg's name
        # A key of its own: lists with nulls among the ids are not for the other dumper.
        return (list, UUID, UUID) if set(map(type, obj)) == {UUID} else super().get_key(obj, format)

    def upgrade(self, obj: list[Any], format: PyFormat) -> Dumper:  # type: ignore[override]  # noqa: A002 - psycopg's name
        return _IdsDumper(list, self._tx) if set(map(type, obj)) == {UUID} else super().upgrade(obj, format)


def adapters() -> AdaptContext:
    """Return psycopg's adapters with those of ids in place of its own."""
    own = AdaptersMap(psycopg.adapters)
    own.register_loader("uuid", _IdLoader)
    own.register_dumper(list, _ListDumper)
    return own
