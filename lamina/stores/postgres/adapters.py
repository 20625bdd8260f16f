"""Ids between Python and Postgres: a search reads and sends some hundred, which psycopg converts slowly."""

import struct
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import psycopg
from psycopg.abc import AdaptContext, Buffer, Dumper, DumperKey
from psycopg.adapt import AdaptersMap, Loader, PyFormat
from psycopg.adapt import Dumper as PlainDumper
from psycopg.pq import Format
from psycopg.types.array import ListDumper

from lamina.core.ids import id_of_number

_OIDS = psycopg.adapters.types["uuid"]
_HEAD = struct.Struct("!IIIII")
_ID_BYTES = (16).to_bytes(4, "big")


class _IdLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> UUID:
        return id_of_number(int.from_bytes(data, "big"))


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
