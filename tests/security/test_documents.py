"""Files that are made to stop their reader: each costs itself alone, in bounded time and memory."""

import asyncio
import base64
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamina.models.hashing import HashingModel
from tests.support.application import Application, running, settings_for

DEADLINE_S = 4.0


def pdf_of(*objects: bytes) -> bytes:
    """A PDF of these numbered objects, the first of which is its catalogue; readers rebuild the missing table."""
    numbered = (b"%d 0 obj\n%s\nendobj\n" % (number, body) for number, body in enumerate(objects, start=1))
    return b"%PDF-1.4\n" + b"".join(numbered) + b"trailer\n<</Root 1 0 R>>\n%%EOF\n"


def stream(data: bytes, entries: bytes = b"") -> bytes:
    return b"<<%s /Length %d>>\nstream\n%s\nendstream" % (entries, len(data), data)


def page_of(content: bytes, resources: bytes = b"") -> list[bytes]:
    return [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Resources<<%s>>/Contents 4 0 R>>" % resources,
        content,
    ]


def nested_forms(depth: int) -> bytes:
    """A PDF of one page whose form shows another ten times, and so on: a kilobyte, and 10 ** depth forms."""
    form = b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]"
    forms = [
        stream(b"/F Do " * 10, form + b"/Resources<</XObject<</F %d 0 R>>>>" % (number + 1))
        for number in range(5, 5 + depth)
    ]
    last = stream(b"BT (x) Tj ET", form)
    return pdf_of(*page_of(stream(b"/F Do"), b"/XObject<</F 5 0 R>>"), *forms, last)


def packed_page(size_bytes: int) -> bytes:
    """A PDF whose page unpacks to blanks of this size."""
    packed = zlib.compress(zlib.compress(b" " * size_bytes, 9), 9)
    return pdf_of(*page_of(stream(packed, b"/Filter[/FlateDecode/FlateDecode]")))


BOMBS = {
    "forms within forms": (nested_forms(9), "application/pdf"),
    "a page that unpacks to 200 MB": (packed_page(200_000_000), "application/pdf"),
    "formatting within formatting": (b"<b><i><u><s>" * 990 + b"x", "text/html"),
    "quotes within quotes": (b"> " * 500_000 + b"x", "text/markdown"),
    "lists within lists": (b"- " * 500_000 + b"x", "text/markdown"),
    "open brackets": (b"[" * 1_000_000, "text/markdown"),
    "open tags": (b"<" * 1_000_000, "text/html"),
    "comments": (b"<!--" * 250_000, "text/html"),
}


@pytest.fixture
async def app(database: str, tmp_path: Path) -> AsyncIterator[Application]:
    settings = settings_for(database, tmp_path)
    documents = settings.documents.model_copy(update={"parse_deadline_s": DEADLINE_S})
    settings = settings.model_copy(update={"documents": documents})
    async with running(settings, database, HashingModel(), follow=False) as found:
        yield found


@pytest.mark.parametrize("name", BOMBS)
async def test_a_file_that_stops_its_reader_is_refused_and_others_write_meanwhile(app: Application, name: str) -> None:
    content, media_type = BOMBS[name]
    body = {"content_base64": base64.b64encode(content).decode(), "media_type": media_type}
    client = app.client()

    uploads = [asyncio.create_task(client.post("/v1/documents", json=body, timeout=60)) for _ in range(3)]
    note = await client.post("/v1/notes", json={"content": "written meanwhile"}, timeout=DEADLINE_S)
    answers = await asyncio.gather(*uploads)
    after = await client.post("/v1/documents", json={"content": "# Tea\n\nGreen.", "media_type": "text/markdown"})

    assert note.status_code == 201, note.text
    assert {answer.status_code for answer in answers} <= {201, 200, 422}, [answer.text[:300] for answer in answers]
    assert after.status_code == 201, after.text
