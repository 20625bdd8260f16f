"""Archived notes, and their conversion to and from Parquet files."""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lamina.errors import InvalidInput, LaminaError

FORMAT = 1
FORMAT_KEY = b"lamina.archive.format"
# Levels from 1 to 15 differ by 1 %: nine tenths of a file are embeddings, of which none saves more than 7 %.
ZSTD_LEVEL = 3

Json = dict[str, Any]

_ID = pa.binary(16)
_MOMENT = pa.timestamp("us", tz="UTC")


class UnreadableArchive(LaminaError):
    """A file of the archive is missing or damaged, or has an unknown format; none of its notes were read.

    Args:
        file: Its path from the archive's root.
        expected: The expected content.
        found: The content that was found.
        remedy: Advice to the operator.
    """

    wording = "archive file {file}: expected {expected}, found {found}; {remedy}"

    def __init__(self, file: str, expected: str, found: str, remedy: str = "restore it from a backup") -> None:
        super().__init__(file, expected, found, remedy)
        self.file = file
        self.expected = expected
        self.found = found
        self.remedy = remedy


class ArchivedChunk(NamedTuple):
    """A searchable stretch of a note.

    Args:
        chunk: Its place, from 0.
        start: First character in the content, from 0.
        end: One past the last character.
        generation: Of the embedding model.
        embedding: Float32 bytes, of any dimension.
    """

    chunk: int
    start: int
    end: int
    generation: int
    embedding: bytes


class ArchivedVersion(NamedTuple):
    """An earlier version of a note."""

    version: int
    content: str
    category: str
    importance: float
    confidence: float
    tags: tuple[str, ...]
    metadata: Json
    written_at: datetime


class ArchivedLink(NamedTuple):
    """A link from a note to another memory."""

    to_id: UUID
    kind: str
    strength: float
    source: str
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class ArchivedNote:
    """A note with everything that goes with it, as it was when it was archived.

    Args:
        content_hash: Hash of the content, which is unique in the scope.
        version: Of the present state; ``versions`` has the earlier ones.
        derived_from: Notes that it was made from.
        extra: JSON whose members may become fields in later formats.
    """

    id: UUID
    tenant: str
    workspace: str
    namespace: str
    user: str | None
    agent: str | None
    session: str | None
    swarm: str | None
    category: str
    content: str
    content_hash: bytes
    importance: float
    confidence: float
    tags: tuple[str, ...]
    metadata: Json
    source: str
    version: int
    hits: int
    event_at: datetime
    last_hit_at: datetime
    created_at: datetime
    updated_at: datetime
    derived_from: tuple[UUID, ...] = ()
    chunks: tuple[ArchivedChunk, ...] = ()
    versions: tuple[ArchivedVersion, ...] = ()
    links: tuple[ArchivedLink, ...] = ()
    extra: Json = field(default_factory=dict)


def _required(name: str, kind: Any) -> Any:
    return pa.field(name, kind, nullable=False)


def _structs(**members: Any) -> Any:
    return pa.list_(_required("element", pa.struct([_required(name, kind) for name, kind in members.items()])))


def _list(kind: Any) -> Any:
    return pa.list_(_required("element", kind))


# The content of 10 000 notes can pass 2 GiB, where the offsets of a plain string column end.
_SCHEMA = pa.schema(
    [
        _required("id", _ID),
        _required("tenant", pa.string()),
        _required("workspace", pa.string()),
        _required("namespace", pa.string()),
        pa.field("user", pa.string()),
        pa.field("agent", pa.string()),
        pa.field("session", pa.string()),
        pa.field("swarm", pa.string()),
        _required("category", pa.string()),
        _required("content", pa.large_string()),
        _required("content_hash", pa.binary()),
        _required("importance", pa.float64()),
        _required("confidence", pa.float64()),
        _required("tags", _list(pa.string())),
        _required("metadata", pa.large_string()),
        _required("source", pa.string()),
        _required("version", pa.int32()),
        _required("hits", pa.int64()),
        _required("event_at", _MOMENT),
        _required("last_hit_at", _MOMENT),
        _required("created_at", _MOMENT),
        _required("updated_at", _MOMENT),
        _required("derived_from", _list(_ID)),
        _required(
            "chunks",
            _structs(chunk=pa.int32(), start=pa.int32(), end=pa.int32(), generation=pa.int32(), embedding=pa.binary()),
        ),
        _required(
            "versions",
            _structs(
                version=pa.int32(),
                content=pa.large_string(),
                category=pa.string(),
                importance=pa.float64(),
                confidence=pa.float64(),
                tags=_list(pa.string()),
                metadata=pa.large_string(),
                written_at=_MOMENT,
            ),
        ),
        _required(
            "links",
            _structs(to_id=_ID, kind=pa.string(), strength=pa.float64(), source=pa.string(), seen_at=_MOMENT),
        ),
        _required("extra", pa.large_string()),
    ],
    metadata={FORMAT_KEY: str(FORMAT).encode()},
)

# Columns of few different values; for the others a dictionary is work in vain.
_REPEATING = [
    *("tenant", "workspace", "namespace", "user", "agent", "session", "swarm", "category", "metadata", "source"),
    *("tags.list.element", "versions.list.element.category", "versions.list.element.tags.list.element"),
    *("links.list.element.kind", "links.list.element.source", "chunks.list.element.generation", "extra"),
]


def to_parquet(notes: Iterable[ArchivedNote]) -> bytes:
    """Convert notes to a Parquet file, by id: the same notes give the same bytes, in any order.

    The bytes depend on the version of the library.

    Raises:
        InvalidInput: For JSON, text or a time that a file cannot hold as it is.
    """
    rows = [_row(note) for note in sorted(notes, key=lambda note: note.id)]
    try:
        return _write_table(rows)
    except (pa.ArrowException, ValueError, OverflowError, TypeError) as error:
        raise InvalidInput("notes", f"do not fit the archive's columns: {error}") from error


def from_parquet(data: bytes, file: str, ids: Collection[UUID] | None = None) -> list[ArchivedNote]:
    """Convert a Parquet file to its notes, by id; with ids, only to those of them that it has.

    Args:
        data: The file's bytes.
        file: Its name, for errors.
        ids: Notes to return; no objects are made of the others.

    Raises:
        UnreadableArchive: If the data is not a Parquet file of this format or an earlier one.
    """
    table = _read_table(data, file)
    if ids is not None:
        wanted = pa.array([each.bytes for each in ids], _ID)
        table = table.filter(pc.is_in(table["id"], value_set=wanted))
    return [_note(row) for row in table.to_pylist()]


def check_format(found: Any, file: str) -> None:
    """Refuse a format that this version cannot read.

    Raises:
        UnreadableArchive: Naming both.
    """
    if type(found) is not int or found < 1:
        raise UnreadableArchive(file, f"format {FORMAT}", f"format {found!r}")
    if found > FORMAT:
        raise UnreadableArchive(file, f"format {FORMAT} or lower", f"format {found}", "read it with a newer lamina")


def _read_table(data: bytes, file: str) -> Any:
    try:
        parquet = pq.ParquetFile(pa.BufferReader(data))
    except pa.ArrowException as error:
        raise UnreadableArchive(file, "a Parquet file", f"{len(data)} bytes of something else") from error
    found = (parquet.schema_arrow.metadata or {}).get(FORMAT_KEY, b"")
    check_format(int(found) if found.isdigit() else found.decode(errors="replace"), file)
    return parquet.read()


def _write_table(rows: Sequence[Json]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.Table.from_pylist(rows, schema=_SCHEMA),
        sink,
        compression="zstd",
        compression_level=ZSTD_LEVEL,
        use_dictionary=_REPEATING,
        version="2.6",
        data_page_version="1.0",
    )
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _row(note: ArchivedNote) -> Json:
    row = {name: getattr(note, name) for name in _SCHEMA.names}
    return row | {
        "id": note.id.bytes,
        "metadata": _json(note.metadata, note),
        "extra": _json(note.extra, note),
        "derived_from": [source.bytes for source in note.derived_from],
        "chunks": [chunk._asdict() for chunk in note.chunks],
        "versions": [each._asdict() | {"metadata": _json(each.metadata, note)} for each in note.versions],
        "links": [link._asdict() | {"to_id": link.to_id.bytes} for link in note.links],
    }


def _note(row: Json) -> ArchivedNote:
    changed: Json = {
        "id": UUID(bytes=row["id"]),
        "tags": tuple(row["tags"]),
        "metadata": json.loads(row["metadata"]),
        "extra": json.loads(row["extra"]),
        "derived_from": tuple(UUID(bytes=source) for source in row["derived_from"]),
        "chunks": tuple(ArchivedChunk(**chunk) for chunk in row["chunks"]),
        "versions": tuple(map(_version, row["versions"])),
        "links": tuple(map(_link, row["links"])),
    }
    moments = {name: _utc(row[name]) for name in ("event_at", "last_hit_at", "created_at", "updated_at")}
    return ArchivedNote(**(row | changed | moments))


def _version(row: Json) -> ArchivedVersion:
    metadata = json.loads(row["metadata"])
    moment = _utc(row["written_at"])
    return ArchivedVersion(**(row | {"tags": tuple(row["tags"]), "metadata": metadata, "written_at": moment}))


def _link(row: Json) -> ArchivedLink:
    return ArchivedLink(**(row | {"to_id": UUID(bytes=row["to_id"]), "seen_at": _utc(row["seen_at"])}))


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC)


def _json(value: Json, note: ArchivedNote) -> str:
    try:
        return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidInput("notes", f"note {note.id} has a value that is not JSON: {error}") from error
