import hashlib
import json
import os
import resource
import struct
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from stat import S_ISDIR
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import InvalidInput, Misconfigured, Unavailable
from lamina.stores.archive import (
    Archive,
    ArchivedChunk,
    ArchivedLink,
    ArchivedNote,
    ArchivedVersion,
    Fault,
    UnreadableArchive,
    scope_folder,
)
from lamina.stores.archive.notes import from_parquet, to_parquet

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
LATER = NOW + timedelta(days=7)
NAME = f"{'0a' * 16}/2026-03-01_ab12"

MOMENTS = st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.replace(fold=0))
JSON = st.dictionaries(
    st.text(),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=3,
)
IDS = st.text() | st.none()
TAGS = st.lists(st.text(), max_size=3).map(tuple)
FRACTIONS = st.floats(0, 1)
SMALL = st.integers(0, 2**31 - 1)
CHUNKS = st.builds(ArchivedChunk, SMALL, SMALL, SMALL, st.integers(0, 2**15 - 1), st.binary(max_size=32))
VERSIONS = st.builds(
    ArchivedVersion, SMALL, st.text(), st.just("note"), FRACTIONS, FRACTIONS, TAGS, JSON, written_at=MOMENTS
)
LINKS = st.builds(ArchivedLink, st.uuids(), st.text(), FRACTIONS, st.text(), MOMENTS)
NOTES = st.builds(
    ArchivedNote,
    id=st.uuids(),
    user=IDS,
    agent=IDS,
    session=IDS,
    swarm=IDS,
    content_hash=st.binary(max_size=32),
    importance=FRACTIONS,
    confidence=FRACTIONS,
    tags=TAGS,
    metadata=JSON,
    version=SMALL,
    hits=st.integers(0, 2**63 - 1),
    event_at=MOMENTS,
    last_hit_at=MOMENTS,
    created_at=MOMENTS,
    updated_at=MOMENTS,
    derived_from=st.lists(st.uuids(), max_size=2).map(tuple),
    chunks=st.lists(CHUNKS, max_size=3).map(tuple),
    versions=st.lists(VERSIONS, max_size=2).map(tuple),
    links=st.lists(LINKS, max_size=2).map(tuple),
    extra=JSON,
)


def note(number: int, **changes: Any) -> ArchivedNote:
    content = f"note {number} of the archive"
    vector = np.random.default_rng(number).standard_normal(384).astype(np.float32)
    made = ArchivedNote(
        id=uuid.UUID(int=number),
        tenant="acme",
        workspace="default",
        namespace="default",
        user="ada",
        agent=None,
        session="",
        swarm=None,
        category="note",
        content=content,
        content_hash=hashlib.sha256(content.encode()).digest(),
        importance=0.1 + 0.2,
        confidence=1.0,
        tags=("plans", "", "plans"),
        metadata={"b": [1, 1.0, None, {}], "a": "é"},
        source="api",
        version=3,
        hits=2**40 + number,
        event_at=NOW - timedelta(microseconds=number),
        last_hit_at=NOW,
        created_at=NOW,
        updated_at=NOW,
        derived_from=(uuid.UUID(int=2**100), uuid.UUID(int=7)),
        chunks=(ArchivedChunk(1, 5, 9, 2, vector.tobytes()), ArchivedChunk(0, 0, 5, 2, vector[:8].tobytes())),
        versions=(ArchivedVersion(1, "was", "outcome", 0.3, 0.7, ("t",), {"k": 1}, NOW - timedelta(days=9)),),
        links=(ArchivedLink(uuid.UUID(int=5), "about", 1 / 3, "rules", NOW),),
        extra={"tier": 4},
    )
    return replace(made, **changes)


# An empty bucket or a path in one, as in s3://bucket/path; the server and its keys by AWS_ENDPOINT_URL and the like.
S3_URL = os.environ.get("LAMINA_TEST_S3_URL")


@pytest.fixture(params=["path", "file", "memory", *(["s3"] if S3_URL else [])])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return {
        "path": f"{tmp_path}/ar[ch]ive *",
        "file": f"file://{tmp_path}/archive",
        "memory": f"memory://{uuid.uuid4().hex}/archive",
        "s3": f"{S3_URL}/{uuid.uuid4().hex}",
    }[request.param]


@pytest.fixture
def archive(url: str) -> Archive:
    return Archive(url)


@pytest.fixture
def memory() -> Archive:
    return Archive(f"memory://{uuid.uuid4().hex}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def files(archive: Archive) -> list[str]:
    return sorted(path.removeprefix(f"{archive._root}/") for path in archive._store.find(archive._root))


def put(archive: Archive, file: str, data: bytes) -> None:
    archive._store.pipe_file(f"{archive._root}/{file}", data)


def got(archive: Archive, file: str) -> bytes:
    data: bytes = archive._store.cat_file(f"{archive._root}/{file}")
    return data


class Crash(Exception):
    """The process ends here."""


class Crashing:
    """A store that ends the process at its nth change."""

    def __init__(self, store: Any, at: int) -> None:
        self._store, self._left = store, at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def pipe_file(self, path: str, data: bytes) -> None:
        self._count()
        self._store.pipe_file(path, data)

    def rm_file(self, path: str) -> None:
        self._count()
        self._store.rm_file(path)

    def _count(self) -> None:
        if self._left == 0:
            raise Crash
        self._left -= 1


class Moving:
    """A store whose puts can be seen half done."""

    protocol = ("sftp", "ssh")

    def __init__(self, store: Any) -> None:
        self._store, self.put = store, list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def pipe_file(self, path: str, data: bytes) -> None:
        self.put.append(path)
        self._store.pipe_file(path, data)


@contextmanager
def crash_at(archive: Archive, change: int) -> Iterator[None]:
    whole = archive._store
    archive._store = Crashing(whole, change)
    try:
        with pytest.raises(Crash):
            yield
    finally:
        archive._store = whole


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_notes_come_back_as_they_were_in_the_order_of_their_ids(archive: Archive) -> None:
    notes = [note(3), note(1), note(2)]

    archive.write(NAME, notes, now=NOW)

    assert archive.read(NAME) == [note(1), note(2), note(3)]


@given(st.lists(NOTES, min_size=1, max_size=4, unique_by=lambda each: each.id))
def test_any_notes_come_back_exactly(notes: list[ArchivedNote]) -> None:
    back = from_parquet(to_parquet(notes), "file")

    assert list(map(repr, back)) == [repr(each) for each in sorted(notes, key=lambda each: each.id)]


@pytest.mark.parametrize(
    "changes",
    [
        {"content": "", "tags": (), "chunks": (), "versions": (), "links": (), "derived_from": (), "metadata": {}},
        {"user": None, "agent": "", "session": None, "swarm": ""},
        {"content": "👩‍👩‍👧‍👦 e\u0301 \u202e \x00 \r\n 漢字"},
        {"content": "𝄞" * 100_000},
        {"metadata": {"👍": {"deep": [[[]]], "": ""}, "big": 2**70, "small": 5e-324, "minus": -0.0}},
        {"importance": 5e-324, "confidence": 0.1 + 0.7},
        {"event_at": datetime.min.replace(tzinfo=UTC), "updated_at": datetime.max.replace(tzinfo=UTC)},
        {"chunks": (ArchivedChunk(0, 0, 1, 1, struct.pack("<4I", 0x7FC00001, 0x80000000, 1, 0xFF800000)),)},
        {"chunks": (ArchivedChunk(0, 0, 1, 1, b""),)},
        {"tenant": "../..", "workspace": "a/b", "namespace": "👾 \\ :"},
    ],
    ids=["empty", "null", "text", "long", "json", "floats", "times", "bits of floats", "no vector", "scope"],
)
def test_the_ends_of_every_range_come_back_exactly(memory: Archive, changes: dict[str, Any]) -> None:
    original = note(1, **changes)

    memory.write(NAME, [original], now=NOW)
    (back,) = memory.read(NAME)

    assert back == original
    assert repr(back) == repr(original)  # The order of keys, too.


def test_a_time_of_another_zone_comes_back_as_the_same_moment_in_utc(memory: Archive) -> None:
    there = NOW.astimezone(timezone(timedelta(hours=5, minutes=45)))

    memory.write(NAME, [note(1, event_at=there)], now=NOW)
    (back,) = memory.read(NAME)

    assert back.event_at == NOW
    assert back.event_at.tzinfo is UTC


def test_only_the_wanted_notes_are_returned(archive: Archive) -> None:
    archive.write(NAME, [note(number) for number in range(1, 30)], now=NOW)

    some = archive.read(NAME, {uuid.UUID(int=20), uuid.UUID(int=4), uuid.UUID(int=999)})

    assert some == [note(4), note(20)]
    assert archive.read(NAME, ()) == []


def test_the_same_notes_make_the_same_bytes_whatever_their_order(archive: Archive) -> None:
    # given
    notes = [note(number) for number in range(1, 20)]
    archive.write(NAME, notes, now=NOW)
    before = got(archive, f"{NAME}.parquet")

    # when
    archive.write(NAME, notes[::-1], now=LATER)

    # then
    assert got(archive, f"{NAME}.parquet") == before


def test_writing_a_name_again_replaces_what_it_holds(archive: Archive) -> None:
    archive.write(NAME, [note(1), note(2)], now=NOW)

    archive.write(NAME, [note(3)], now=LATER)

    assert archive.read(NAME) == [note(3)]
    assert files(archive) == [f"{NAME}.manifest.json", f"{NAME}.parquet"]


def test_the_manifest_says_what_the_file_is(archive: Archive) -> None:
    # when
    written = archive.write(NAME, [note(9), note(2), note(4)], now=NOW)

    # then
    data = got(archive, f"{NAME}.parquet")
    assert json.loads(got(archive, f"{NAME}.manifest.json")) == {
        "format": 1,
        "file": f"{NAME}.parquet",
        "sha256": hashlib.sha256(data).hexdigest(),
        "size_bytes": len(data),
        "rows": 3,
        "ids": 3,
        "tenant": "acme",
        "workspace": "default",
        "namespace": "default",
        "least_id": str(uuid.UUID(int=2)),
        "greatest_id": str(uuid.UUID(int=9)),
        "written_at": "2026-03-01T12:00:00.123456+00:00",
    }
    assert (written.name, written.rows, written.size_bytes) == (NAME, 3, len(data))
    assert written.sha256 == hashlib.sha256(data).hexdigest()


def test_another_program_can_read_the_file(folder: Path) -> None:
    Archive(str(folder)).write(NAME, [note(1)], now=NOW)

    file = pq.ParquetFile(folder / f"{NAME}.parquet")

    assert file.metadata.metadata[b"lamina.archive.format"] == b"1"
    assert {file.metadata.row_group(0).column(number).compression for number in range(file.metadata.num_columns)} == {
        "ZSTD"
    }
    assert file.read(["content"]).to_pylist() == [{"content": "note 1 of the archive"}]


def test_manifests_are_listed_by_prefix_in_the_order_of_names(archive: Archive) -> None:
    for name in ("ab/2", "ab/1", "abc/1", "b/1"):
        archive.write(name, [note(1)], now=NOW)

    names = [[each.name for each in archive.manifests(prefix)] for prefix in ("", "ab/", "ab", "b/1", "none/")]

    assert names == [["ab/1", "ab/2", "abc/1", "b/1"], ["ab/1", "ab/2"], ["ab/1", "ab/2", "abc/1"], ["b/1"], []]


def test_every_name_of_which_there_is_any_file_is_listed(archive: Archive) -> None:
    archive.write("ab/whole", [note(1)], now=NOW)
    for file in ("ab/data.parquet", "ab/aside.manifest.next.json", "ab/half.parquet.0a.part", "ab/readme.txt"):
        put(archive, file, b"x")
    archive.write("abc/other", [note(1)], now=NOW)
    archive.mark("ab")

    assert archive.names("ab/") == ["ab/aside", "ab/data", "ab/half", "ab/whole"]
    assert archive.names("none/") == []


def test_what_has_more_than_it_should_is_told(archive: Archive) -> None:
    # given
    for name in ("s/exact", "s/fewer", "s/more", "s/unlisted", "s/unfinished", "s/aside", "s/unread", "s/bare"):
        archive.write(name, [note(1), note(2)], now=NOW)
    put(archive, "s/unfinished.parquet.0a.part", b"half")
    put(archive, "s/aside.manifest.next.json", b"{}")
    put(archive, "s/unread.manifest.json", b"{}")
    put(archive, "s/stray.manifest.json", b"{}")
    archive._store.rm_file(f"{archive._root}/s/bare.manifest.json")
    put(archive, "s/exact.parquet", b"damaged")
    listed = ("exact", "unfinished", "aside", "unread", "bare")

    # when
    names, unreadable = archive.excess("s/", {f"s/{name}": 2 for name in listed} | {"s/fewer": 3, "s/more": 1})

    # then
    assert names == ["s/aside", "s/more", "s/stray", "s/unfinished", "s/unlisted"]
    assert [error.file for error in unreadable] == ["s/bare.manifest.json", "s/unread.manifest.json"]


def test_a_folder_is_there_once_it_is_marked(archive: Archive) -> None:
    with pytest.raises(Unavailable, match=r"ab/cd/folder\.mark is missing; mount its volume or name the right"):
        archive.require("ab/cd")

    archive.mark("ab/cd")
    archive.mark("ab/cd")

    archive.require("ab/cd")
    assert (archive.names(), archive.verify()) == ([], [])


def test_the_root_of_a_store_can_be_the_archive() -> None:
    archive = Archive("memory://")
    name = uuid.uuid4().hex

    archive.write(name, [note(1)], now=NOW)

    assert [each.name for each in archive.manifests(name)] == [name]
    archive.remove(name)
    assert list(archive.manifests(name)) == []


def test_an_empty_archive_has_nothing_wrong(archive: Archive) -> None:
    assert archive.verify() == []
    assert list(archive.manifests()) == []


@pytest.mark.parametrize(
    "name",
    ["", "/a", "a/", "a//b", "..", "a/../b", "a.b", "A", "a b", "é", "a\\b", "a\n", "a\x00", "memory://a", "*"],
)
def test_a_name_that_could_lead_elsewhere_is_refused(archive: Archive, name: str) -> None:
    calls = [
        lambda: archive.write(name, [note(1)], now=NOW),
        lambda: archive.read(name),
        lambda: archive.remove(name),
        lambda: archive.rewrite_without(name, (), now=NOW),
    ]

    for call in calls:
        with pytest.raises(InvalidInput, match="name: is"):
            call()


def test_a_prefix_that_could_lead_elsewhere_is_refused(archive: Archive) -> None:
    for prefix in ("../", "/", "a//", "a.b", "*"):
        with pytest.raises(InvalidInput, match="prefix: is"):
            archive.verify(prefix)
        with pytest.raises(InvalidInput, match="prefix: is"):
            list(archive.manifests(prefix))


@pytest.mark.parametrize(
    ("notes", "reason"),
    [
        ([], "is empty"),
        ([note(1), note(1, content="another")], "a note twice"),
        ([note(1), note(2, tenant="other")], "more than one scope"),
        ([note(1), note(2, workspace="other")], "more than one scope"),
        ([note(1), note(2, namespace="other")], "more than one scope"),
        ([note(1, metadata={"x": float("nan")})], "not JSON"),
        ([note(1, metadata={"x": "\ud800"})], "do not fit"),
        ([note(1, content="\ud800")], "do not fit"),
        ([note(1, hits=2**63)], "do not fit"),
        ([note(1, content=None)], "do not fit"),
        ([note(1, tags=(None,))], "do not fit"),
    ],
    ids=[
        "none",
        "twice",
        "tenants",
        "workspaces",
        "namespaces",
        "nan",
        "json",
        "text",
        "number",
        "null",
        "null in a list",
    ],
)
def test_notes_that_a_file_cannot_hold_are_refused_and_nothing_is_written(
    archive: Archive, notes: list[ArchivedNote], reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason):
        archive.write(NAME, notes, now=NOW)

    assert files(archive) == []


def test_a_changed_byte_is_found_before_anything_is_read(archive: Archive) -> None:
    # given
    written = archive.write(NAME, [note(1)], now=NOW)
    data = bytearray(got(archive, f"{NAME}.parquet"))
    data[len(data) // 2] ^= 1
    put(archive, f"{NAME}.parquet", bytes(data))

    # when
    with pytest.raises(UnreadableArchive) as caught:
        archive.read(NAME)

    # then
    assert caught.value.file == f"{NAME}.parquet"
    assert caught.value.expected == f"SHA-256 {written.sha256}"
    assert caught.value.found == f"SHA-256 {hashlib.sha256(data).hexdigest()}"


def test_a_cut_file_is_found_by_its_size(archive: Archive) -> None:
    written = archive.write(NAME, [note(1)], now=NOW)
    put(archive, f"{NAME}.parquet", got(archive, f"{NAME}.parquet")[:-10])

    with pytest.raises(
        UnreadableArchive, match=rf"expected {written.size_bytes} bytes, found {written.size_bytes - 10}"
    ):
        archive.read(NAME, [uuid.UUID(int=1)])


@pytest.mark.parametrize("suffix", [".parquet", ".manifest.json"])
def test_a_missing_file_is_told(archive: Archive, suffix: str) -> None:
    archive.write(NAME, [note(1)], now=NOW)
    archive._store.rm_file(f"{archive._root}/{NAME}{suffix}")

    with pytest.raises(UnreadableArchive, match=f"{NAME}{suffix}: expected .*, found no such file"):
        archive.read(NAME)


@pytest.mark.parametrize("text", [b"", b"[]", b"null", b"{}", b'{"format": 1}', b"\xff", b'{"format": 1, "x": 2}'])
def test_a_damaged_manifest_is_told(archive: Archive, text: bytes) -> None:
    archive.write(NAME, [note(1)], now=NOW)
    put(archive, f"{NAME}.manifest.json", text)

    with pytest.raises(UnreadableArchive, match=f"{NAME}.manifest.json: expected a manifest"):
        archive.read(NAME)
    with pytest.raises(UnreadableArchive):
        list(archive.manifests())


@pytest.mark.parametrize(
    ("version", "found"), [(2, "found format 2; read it with a newer"), (0, "format 0"), ("1", "format '1'")]
)
def test_a_format_that_is_not_known_is_refused(archive: Archive, version: Any, found: str) -> None:
    archive.write(NAME, [note(1)], now=NOW)
    manifest = json.loads(got(archive, f"{NAME}.manifest.json"))
    put(archive, f"{NAME}.manifest.json", json.dumps(manifest | {"format": version}).encode())

    with pytest.raises(UnreadableArchive, match=found):
        archive.read(NAME)


@pytest.mark.parametrize(("metadata", "found"), [({b"lamina.archive.format": b"2"}, "format 2"), ({}, "format ''")])
def test_a_format_that_only_the_file_tells_is_refused_too(metadata: dict[bytes, bytes], found: str) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [1]}).replace_schema_metadata(metadata), sink)

    with pytest.raises(UnreadableArchive, match=found):
        from_parquet(sink.getvalue().to_pybytes(), "a.parquet")


def test_what_is_no_parquet_file_is_told() -> None:
    with pytest.raises(UnreadableArchive, match="expected a Parquet file, found 7 bytes of something else"):
        from_parquet(b"nothing", "a.parquet")


def test_the_files_of_another_name_do_not_pass_for_this_one(archive: Archive) -> None:
    archive.write("a", [note(1)], now=NOW)
    archive.write("b", [note(2)], now=NOW)
    for suffix in (".parquet", ".manifest.json"):
        put(archive, f"a{suffix}", got(archive, f"b{suffix}"))

    with pytest.raises(UnreadableArchive, match=r"expected the manifest of a\.parquet, found that of b\.parquet"):
        archive.read("a")


def test_verify_tells_every_file_that_does_not_hold_and_no_other(archive: Archive) -> None:
    # given
    for name in ("s/good", "s/changed", "s/gone", "s/bare", "s/unread", "t/changed"):
        archive.write(name, [note(1)], now=NOW)
    for name in ("s/changed", "t/changed"):
        put(archive, f"{name}.parquet", b"x" * len(got(archive, f"{name}.parquet")))
    archive._store.rm_file(f"{archive._root}/s/gone.parquet")
    archive._store.rm_file(f"{archive._root}/s/bare.manifest.json")
    put(archive, "s/unread.manifest.json", b"{}")
    put(archive, "s/good.parquet.ab.part", b"half")
    put(archive, "s/readme.txt", b"not ours")

    # when
    faults = archive.verify("s/")

    # then
    assert [fault.file for fault in faults] == [
        "s/bare.manifest.json",
        "s/changed.parquet",
        "s/gone.parquet",
        "s/good.parquet.ab.part",
        "s/unread.manifest.json",
    ]
    assert faults[3] == Fault("s/good.parquet.ab.part", "was left by an unfinished write; remove it")
    assert "expected SHA-256" in faults[1].reason


def test_erased_notes_are_in_no_byte_of_the_archive_afterwards(archive: Archive) -> None:
    # given
    archive.write(NAME, [note(1), note(2), note(3)], now=NOW)
    put(archive, f"{NAME}.parquet.0.part", b"half of it")

    # when
    left = archive.rewrite_without(NAME, [uuid.UUID(int=2), uuid.UUID(int=99)], now=LATER)

    # then
    assert left is not None
    assert left.rows == 2
    assert archive.read(NAME) == [note(1), note(3)]
    assert files(archive) == [f"{NAME}.manifest.json", f"{NAME}.parquet"]
    assert [(each.rows, each.written_at) for each in archive.manifests()] == [(2, LATER)]


def test_a_file_without_notes_is_removed_with_its_manifest(archive: Archive) -> None:
    archive.write(NAME, [note(1), note(2)], now=NOW)
    archive.write(f"{NAME}0", [note(1)], now=NOW)

    left = archive.rewrite_without(NAME, {uuid.UUID(int=1), uuid.UUID(int=2)}, now=LATER)

    assert left is None
    assert files(archive) == [f"{NAME}0.manifest.json", f"{NAME}0.parquet"]
    assert archive.rewrite_without(NAME, {uuid.UUID(int=1)}, now=LATER) is None


def test_erasing_from_a_damaged_file_changes_nothing(archive: Archive) -> None:
    archive.write(NAME, [note(1), note(2)], now=NOW)
    put(archive, f"{NAME}.parquet", b"damaged")

    with pytest.raises(UnreadableArchive):
        archive.rewrite_without(NAME, {uuid.UUID(int=1), uuid.UUID(int=2)}, now=LATER)

    assert got(archive, f"{NAME}.parquet") == b"damaged"


@pytest.mark.parametrize("ids", [{1}, {1, 3}, {1, 2, 9}, {2, 3, 9}], ids=["first", "ends", "not last", "not first"])
def test_erasing_from_a_lost_file_does_not_hide_the_loss(archive: Archive, ids: set[int]) -> None:
    archive.write(NAME, [note(1), note(2), note(3)], now=NOW)
    archive._store.rm_file(f"{archive._root}/{NAME}.parquet")

    with pytest.raises(UnreadableArchive, match="no such file"):
        archive.rewrite_without(NAME, {uuid.UUID(int=number) for number in ids}, now=LATER)

    assert [fault.file for fault in archive.verify()] == [f"{NAME}.parquet"]


def test_removing_takes_the_file_and_everything_beside_it(archive: Archive) -> None:
    archive.write(NAME, [note(1)], now=NOW)
    archive.write(f"{NAME}/below", [note(1)], now=NOW)
    put(archive, f"{NAME}.parquet.0.part", b"half")
    put(archive, f"{NAME}.manifest.next.json", b"{}")

    archive.remove(NAME)
    archive.remove(NAME)

    assert files(archive) == [f"{NAME}/below.manifest.json", f"{NAME}/below.parquet"]


@pytest.mark.parametrize("change", range(4))
def test_a_crash_while_replacing_leaves_the_old_notes_or_the_new_ones(memory: Archive, change: int) -> None:
    # given
    memory.write(NAME, [note(1), note(2)], now=NOW)

    # when
    with crash_at(memory, change):
        memory.write(NAME, [note(3)], now=LATER)

    # then
    assert memory.read(NAME) == ([note(1), note(2)] if change < 2 else [note(3)])
    assert memory.verify() == []


@pytest.mark.parametrize("change", range(4))
def test_an_erasure_that_crashed_can_be_called_again(memory: Archive, change: int) -> None:
    # given
    memory.write(NAME, [note(1), note(2)], now=NOW)
    with crash_at(memory, change):
        memory.rewrite_without(NAME, {uuid.UUID(int=1)}, now=NOW)

    # when
    left = memory.rewrite_without(NAME, {uuid.UUID(int=1)}, now=LATER)

    # then
    assert left is not None
    assert memory.read(NAME) == [note(2)]
    assert files(memory) == [f"{NAME}.manifest.json", f"{NAME}.parquet"]
    assert [each.rows for each in memory.manifests()] == [1]


@pytest.mark.parametrize("change", range(2))
def test_an_erasure_of_all_notes_that_crashed_can_be_called_again(memory: Archive, change: int) -> None:
    memory.write(NAME, [note(1), note(2)], now=NOW)
    everything = {uuid.UUID(int=1), uuid.UUID(int=2)}
    with crash_at(memory, change):
        memory.rewrite_without(NAME, everything, now=NOW)

    left = memory.rewrite_without(NAME, everything, now=LATER)

    assert left is None
    assert files(memory) == []


@pytest.mark.parametrize("change", range(3))
def test_a_first_write_that_crashed_is_no_file_until_it_is_written_again(memory: Archive, change: int) -> None:
    with crash_at(memory, change):
        memory.write(NAME, [note(1)], now=NOW)

    with pytest.raises(UnreadableArchive, match="a manifest, found no such file"):
        memory.read(NAME)
    assert [fault.file for fault in memory.verify()] == ([] if change == 0 else [f"{NAME}.manifest.json"])

    memory.write(NAME, [note(1)], now=LATER)
    assert memory.read(NAME) == [note(1)]


class Overtaken:
    """A store where a whole write happens just before a file is read."""

    def __init__(self, store: Any, suffix: str, write: Any) -> None:
        self._store, self._suffix, self._write = store, suffix, write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def cat_file(self, path: str) -> bytes:
        if path.endswith(self._suffix) and self._write:
            write, self._write = self._write, None
            write()
        data: bytes = self._store.cat_file(path)
        return data


@pytest.mark.parametrize("suffix", [".manifest.json", ".parquet"])
def test_a_reader_that_a_write_overtakes_reads_the_new_notes(url: str, suffix: str) -> None:
    reader, writer = Archive(url), Archive(url)
    writer.write(NAME, [note(1)], now=NOW)
    reader._store = Overtaken(reader._store, suffix, lambda: writer.write(NAME, [note(2)], now=LATER))

    assert reader.read(NAME) == [note(2)]


def test_a_full_disk_leaves_what_was_there(folder: Path) -> None:
    # given
    archive = Archive(str(folder))
    archive.write(NAME, [note(1)], now=NOW)

    # when
    with files_of_at_most(2048), pytest.raises(Unavailable, match=f"archive is not available: {NAME}.parquet"):
        archive.write(NAME, [note(2), note(3)], now=LATER)

    # then
    assert archive.read(NAME) == [note(1)]
    assert archive.verify() == []
    assert not list(folder.rglob("*.part"))


def test_a_local_file_is_never_opened_for_writing_in_its_place(folder: Path) -> None:
    archive = Archive(str(folder))
    archive.write(NAME, [note(1)], now=NOW)

    with (folder / f"{NAME}.parquet").open("rb") as opened:
        archive.write(NAME, [note(2)], now=LATER)
        before = opened.read()

    assert from_parquet(before, "before") == [note(1)]


def test_a_local_file_is_on_the_disk_before_it_has_its_name_and_its_name_before_the_next_step(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given
    synced: list[str] = []
    fsync, replace_file = os.fsync, Path.replace
    monkeypatch.setattr(
        os, "fsync", lambda fd: (synced.append("folder" if S_ISDIR(os.fstat(fd).st_mode) else "file"), fsync(fd))
    )
    monkeypatch.setattr(Path, "replace", lambda path, target: (synced.append("named"), replace_file(path, target)))

    # when
    Archive(str(folder)).write(NAME, [note(1)], now=NOW)

    # then
    assert synced == ["file", "named", "folder"] * 3


class Listing:
    """A store that remembers what it listed, as those of object stores do."""

    def __init__(self, store: Any) -> None:
        self._store, self._listed = store, dict[str, list[str]]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def invalidate_cache(self) -> None:
        self._listed.clear()

    def find(self, path: str) -> list[str]:
        if path not in self._listed:
            self._listed[path] = list(self._store.find(path))
        return self._listed[path]


def test_a_file_of_another_process_is_listed_at_once(url: str) -> None:
    reader, writer = Archive(url), Archive(url)
    reader._store = Listing(reader._store)
    assert list(reader.manifests()) == []

    writer.write(NAME, [note(1)], now=NOW)

    assert [each.name for each in reader.manifests()] == [NAME]


def test_a_store_whose_puts_are_not_atomic_gets_files_by_moving(memory: Archive) -> None:
    store = Moving(memory._store)
    memory._store = store

    memory.write(NAME, [note(1)], now=NOW)
    memory.write(NAME, [note(2)], now=LATER)

    assert memory.read(NAME) == [note(2)]
    assert all(path.endswith(".part") for path in store.put)
    assert files(memory) == [f"{NAME}.manifest.json", f"{NAME}.parquet"]


def test_an_unknown_protocol_is_told_without_the_password_of_its_url() -> None:
    with pytest.raises(Misconfigured, match=r"protocol nowhere:// is unknown .*; use a path") as caught:
        Archive("nowhere://ada:secret@host/archive")

    assert "secret" not in str(caught.value)


def test_a_missing_driver_is_told_with_the_package_that_has_it() -> None:
    protocol = f"absent{uuid.uuid4().hex}"
    fsspec.register_implementation(protocol, "absent_driver.Store", errtxt="Install absent-driver to access it")

    with pytest.raises(Misconfigured, match=rf"driver for {protocol}:// is not installed; .*Install absent-driver"):
        Archive(f"{protocol}://bucket/archive")


def test_options_reach_the_driver() -> None:
    archive = Archive("memory://options", options={"use_listings_cache": False, "mark": 7})

    assert archive._store.storage_options["mark"] == 7


def test_a_store_that_does_not_answer_is_unavailable(folder: Path) -> None:
    folder.write_text("a file where the folder should be")

    with pytest.raises(Unavailable, match="archive is not available"):
        Archive(str(folder)).write(NAME, [note(1)], now=NOW)


def test_a_scope_has_a_folder_of_its_own_that_shows_none_of_its_ids() -> None:
    scopes = [
        ("a", "bc", "d"),
        ("ab", "c", "d"),
        ("a", "b", "cd"),
        ("abc", "", "d"),
        ("../x", "/", "👾"),
        ("d", "bc", "a"),
    ]

    folders = [scope_folder(*scope) for scope in scopes]

    assert len(set(folders)) == len(scopes)
    assert all(len(each) == 32 and set(each) <= set("0123456789abcdef") for each in folders)
    framed = b"".join(bytes([0] * 7 + [len(part)]) + part for part in (b"a", b"bc", b"d"))
    assert folders[0] == hashlib.sha256(framed).hexdigest()[:32]
