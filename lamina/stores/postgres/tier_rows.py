"""The record of a tier's rows in Postgres: how they are projected, embedded again, linked, erased and counted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.rows import DictRow

from lamina.core.queries import Candidate
from lamina.core.tiers import ProjectionName
from lamina.stores.postgres.filters import Columns


@dataclass(frozen=True, slots=True)
class ProjectionStatements:
    """Rows that a projection takes over.

    Args:
        records: Reads memories by their ids.
        ids: Reads the ids of a tenant's memories, a page at a time.
        enqueue_all: Marks all of them as changed.
        record: Makes the record of the projection from a row of ``records``.
    """

    records: bytes
    ids: bytes
    enqueue_all: bytes
    record: Callable[[DictRow], Any]


@dataclass(frozen=True, slots=True)
class VectorTable:
    """A table of vectors.

    Args:
        name: Its name.
        key: Its column with the id of the row that was embedded.
    """

    name: str
    key: str


@dataclass(frozen=True, slots=True)
class EmbeddingStatements:
    """Rows that have vectors of each generation.

    Args:
        table: Their table.
        vectors: The tables of their vectors.
        unembedded: Reads a page of rows that lack vectors: the columns of their text, and ``guard``, its hash.
        embed: Writes the vectors of rows whose text still has that hash.
        count: Counts the rows of everybody that lack vectors.
        text: Makes the text that is embedded from a row of ``unembedded``.
        is_live: Condition of the rows, named ``r``, that are not deleted.
        is_cut: Whether a long text has several vectors; else they are averaged.
    """

    table: str
    vectors: tuple[VectorTable, ...]
    unembedded: bytes
    embed: bytes
    count: bytes
    text: Callable[[DictRow], str]
    is_live: str = "true"
    is_cut: bool = True


@dataclass(frozen=True, slots=True)
class LinkStatements:
    """Rows that the graph leads to.

    Args:
        memories: Reads memories by their ids, at the chunk nearest to a query: as candidates, and the cosine.
        columns: Expressions of the fields of filters in it.
        link_similar: Links new rows to their nearest neighbours, if they are linked at all.
    """

    memories: bytes
    columns: Columns
    link_similar: bytes | None = None


class FoundRow(NamedTuple):
    """A hit's row, of any tier."""

    tier: int
    id: UUID
    kind: str
    content: str
    occurred_at: datetime
    confidence: float
    importance: float
    user: str | None
    agent: str | None
    session: str | None
    name: str | None
    ref: str | None
    tags: list[str]
    metadata: dict[str, Any]
    source: str | None
    last_hit_at: datetime | None
    temperature: str
    title: str | None
    document: UUID | None
    position: int | None
    expires_at: datetime | None
    heading: str | None
    page: int | None
    trigger: str | None
    speakers: list[str] | None


@dataclass(frozen=True, slots=True)
class FoundStatement:
    """The rows of hits.

    Args:
        rows: Reads them by their ids, as far as a query may see them, with the columns of :class:`FoundRow`.
        columns: Expressions of the fields of filters in it.
        content: Cuts the stretch that was found out of a row's text.
    """

    rows: bytes
    columns: Columns
    content: Callable[[FoundRow, Candidate], str]


@dataclass(frozen=True, slots=True)
class ErasureStatements:
    """Rows that go with their user.

    Args:
        delete: Deletes a page of them; returns ``id``, ``workspace`` and ``namespace`` of each.
        projection: Has them, and the graph their links, if they are memories.
    """

    delete: bytes
    projection: ProjectionName | None = None


@dataclass(frozen=True, slots=True)
class TierRows:
    """The rows of one tier.

    Args:
        present: Reads the ids, of some, of those rows of a tenant that can be read.
        projected: By projection.
        embedded: By kind, as reports and the cursors of runs name it.
        linked: If the graph leads to them.
        erased: By kind, as receipts name it, in the order of the erasure; without kinds that need more than that.
        found: If searches find them.
        count_user: Counts the rows of a user that are left, each kind in a column of its own.
    """

    present: bytes
    projected: Mapping[ProjectionName, ProjectionStatements] = field(default_factory=dict)
    embedded: Mapping[str, EmbeddingStatements] = field(default_factory=dict)
    linked: LinkStatements | None = None
    erased: Mapping[str, ErasureStatements] = field(default_factory=dict)
    found: FoundStatement | None = None
    count_user: bytes | None = None
