"""Field case 88: HEAD as GET, and bodies of unknown length or packed ones within the same limit."""

import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable

import pytest

from deployments.front_door import MAX_DRAINED_BYTES
from tests.support.application import Application

NOTE = json.dumps({"content": "a packed note"}).encode()
MEBIBYTE = 1024 * 1024
NOTE_BYTES = 16 * MEBIBYTE


def raw(data: bytes) -> bytes:
    """Return deflated data without zlib's header, as some clients send them."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


async def test_head_is_answered_as_get_without_the_body(application: Application) -> None:
    client = application.client()
    note = (await client.post("/v1/notes", json={"content": "one"})).json()["id"]
    await client.post("/v1/turns", json={"session": "a/b", "messages": [{"content": "hello"}]})
    paths = [path for path, calls in application.api.openapi()["paths"].items() if "get" in calls]
    given = {"session": "a%2Fb", "id": note, "workspace": "default", "path": "a.md"}

    for path in [*(path.format(**given) for path in paths), "/docs", "/openapi.json", "/v1/nothing", "/v1/search"]:
        got, head = await client.get(path), await client.head(path)

        assert (head.status_code, head.content) == (got.status_code, b""), path
        assert head.headers["Content-Type"] == got.headers["Content-Type"]
        if path not in {"/metrics", "/readyz", "/cache/stats", "/cache/health"}:  # Their figures move on.
            assert head.headers["Content-Length"] == got.headers["Content-Length"] == str(len(got.content))


async def test_head_of_what_needs_a_key_needs_it_too(application: Application) -> None:
    assert (await application.client("wrong").head("/v1/notes")).status_code == 401


async def test_a_body_in_chunks_is_stored(application: Application) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for place in range(0, len(NOTE), 5):
            yield NOTE[place : place + 5]

    stored = await application.client().post(
        "/v1/notes", content=chunks(), headers={"Content-Type": "application/json"}
    )

    assert stored.status_code == 201


@pytest.mark.parametrize("path", ["/v1/notes", "/v1/documents/upload", "/livez", "/v1/nothing"])
async def test_a_body_in_chunks_beyond_the_limit_is_refused_before_it_is_read_whole(
    application: Application, path: str
) -> None:
    sent = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 8 * NOTE_BYTES:
            sent += MEBIBYTE
            yield b" " * MEBIBYTE

    refused = await application.client().post(path, content=chunks(), headers={"Content-Type": "application/json"})

    assert (refused.status_code, refused.headers["Content-Type"]) == (413, "application/problem+json")
    limit = (32 if path.startswith("/v1/documents") else 16) * MEBIBYTE
    assert sent <= limit + MAX_DRAINED_BYTES + 2 * MEBIBYTE


async def test_a_declared_length_beyond_the_limit_is_refused_unread(application: Application) -> None:
    headers = {"Content-Type": "application/json", "Content-Length": str(NOTE_BYTES + 1)}

    assert (await application.client().post("/v1/notes", content=NOTE, headers=headers)).status_code == 413


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(NOTE, mtime=0)),
        ("x-gzip", gzip.compress(NOTE, mtime=0)),
        ("GZIP", gzip.compress(NOTE, 1, mtime=0)),
        ("deflate", zlib.compress(NOTE)),
        ("deflate", raw(NOTE)),
        ("identity", NOTE),
        ("", NOTE),
    ],
)
@pytest.mark.parametrize("is_chunked", [False, True])
async def test_a_packed_body_is_stored(application: Application, coding: str, body: bytes, is_chunked: bool) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield body[:7]
        yield body[7:]

    headers = {"Content-Type": "application/json", "Content-Encoding": coding}
    client = application.client()

    stored = await client.post("/v1/notes", content=chunks() if is_chunked else body, headers=headers)

    assert stored.status_code == 201
    assert [note["content"] for note in (await client.get("/v1/notes")).json()["notes"]] == ["a packed note"]


async def test_a_packed_form_is_stored(application: Application) -> None:
    boundary = "x7"
    part = 'Content-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhello'
    form = f"--{boundary}\r\n{part}\r\n--{boundary}--\r\n"
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary}", "Content-Encoding": "gzip"}

    stored = await application.client().post(
        "/v1/documents/upload", content=gzip.compress(form.encode()), headers=headers
    )

    assert stored.status_code == 201


@pytest.mark.parametrize(("coding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", raw)])
async def test_a_body_that_unpacks_beyond_the_limit_is_refused(
    application: Application, coding: str, pack: Callable[[bytes], bytes]
) -> None:
    body = pack(b" " * (NOTE_BYTES + 1))
    assert len(body) < MEBIBYTE
    headers = {"Content-Type": "application/json", "Content-Encoding": coding}

    assert (await application.client().post("/v1/notes", content=body, headers=headers)).status_code == 413


async def test_a_body_that_unpacks_to_the_limit_is_read(application: Application) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    body = NOTE + b" " * (NOTE_BYTES - len(NOTE))

    assert (
        await application.client().post("/v1/notes", content=gzip.compress(body, mtime=0), headers=headers)
    ).is_success


@pytest.mark.parametrize("coding", ["br", "zstd", "compress", "gzip, gzip", "gzip, deflate", "identity, gzip", "*"])
async def test_another_coding_is_refused_with_those_that_are_accepted(application: Application, coding: str) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": coding}

    refused = await application.client().post("/v1/notes", content=gzip.compress(NOTE, mtime=0), headers=headers)

    assert (refused.status_code, refused.headers["Accept-Encoding"]) == (415, "gzip, deflate")
    assert "gzip or deflate" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", NOTE),
        ("gzip", zlib.compress(NOTE)),
        ("deflate", gzip.compress(NOTE, mtime=0)),
        ("gzip", gzip.compress(NOTE, mtime=0)[:-9]),
        ("gzip", gzip.compress(NOTE, mtime=0)[:-8] + b"\0" * 8),
        ("gzip", gzip.compress(NOTE, mtime=0) + b"more"),
        ("gzip", gzip.compress(b"", mtime=0) * 1000),
        ("deflate", b"\x78"),
    ],
)
async def test_a_body_that_is_not_packed_as_it_says_is_refused(
    application: Application, coding: str, body: bytes
) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": coding}

    refused = await application.client().post("/v1/notes", content=body, headers=headers)

    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "body")
