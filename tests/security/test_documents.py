"""Files that are made to stop their reader: each costs itself alone, in bounded time and memory."""

import asyncio
import base64
import io
import time
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from lamina.errors import InvalidInput
from lamina.ingest.parsing.parse import DocumentLimits
from lamina.ingest.parsing.processes import ReadDocument, ReaderProcess, ReadingLimits, ReadingOrder
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


# Made by the test that wants them: all of them take four seconds, which each worker would spend on collecting.
BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "forms within forms": (lambda: nested_forms(9), "application/pdf"),
    "a page that unpacks to 200 MB": (lambda: packed_page(200_000_000), "application/pdf"),
    "formatting within formatting": (lambda: b"<b><i><u><s>" * 990 + b"x", "text/html"),
    "quotes within quotes": (lambda: b"> " * 500_000 + b"x", "text/markdown"),
    "lists within lists": (lambda: b"- " * 500_000 + b"x", "text/markdown"),
    "open brackets": (lambda: b"[" * 1_000_000, "text/markdown"),
    "open tags": (lambda: b"<" * 1_000_000, "text/html"),
    "comments": (lambda: b"<!--" * 250_000, "text/html"),
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
    make, media_type = BOMBS[name]
    content = make()
    body = {"content_base64": base64.b64encode(content).decode(), "media_type": media_type}
    client = app.client()

    uploads = [asyncio.create_task(client.post("/v1/documents", json=body, timeout=60)) for _ in range(2)]
    note = await client.post("/v1/notes", json={"content": "written meanwhile"}, timeout=DEADLINE_S)
    answers = await asyncio.gather(*uploads)
    small = {"content": "# Tea\n\nGreen.", "media_type": "text/markdown"}
    for _ in range(5):  # On a busy machine a new reader may take longer to start than a file may take.
        after = await client.post("/v1/documents", json=small)
        if after.status_code == 201:
            break

    assert note.status_code == 201, note.text
    assert {answer.status_code for answer in answers} <= {201, 200, 422}, [answer.text[:300] for answer in answers]
    assert after.status_code == 201, after.text


def open_before(blocks: int, opened: int) -> bytes:
    """HTML whose first paragraph leaves formatting open, which each further one opens again."""
    tags = "".join(f"<b class={number}>" for number in range(opened))
    return f"<p>{tags}</p>{'<p>x</p>' * blocks}".encode()


def pages_within_pages(depth: int) -> bytes:
    """A PDF whose tree of pages is a branch of this length."""
    inner = [b"<</Type/Pages/Kids[%d 0 R]/Count 1>>" % (number + 1) for number in range(2, 2 + depth)]
    last = b"<</Type/Page/MediaBox[0 0 9 9]/Contents %d 0 R>>" % (depth + 3)
    return pdf_of(b"<</Type/Catalog/Pages 2 0 R>>", *inner, last, stream(b"BT (x) Tj ET"))


def packed_file(size_bytes: int) -> bytes:
    """An office document that unpacks to this size."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b" " * size_bytes)
    return packed.getvalue()


ENTITIES = (
    '<?xml version="1.0"?><!DOCTYPE html ['
    '<!ENTITY e0 "ha">'
    + "".join(f'<!ENTITY e{number} "{f"&e{number - 1};" * 10}">' for number in range(1, 12))
    + "]><html><body><p>&e11;</p></body></html>"
)
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
FURTHER_BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "a thousand open before blocks": (lambda: open_before(100_000, 1_000), "text/html"),
    "sixty open before blocks": (lambda: open_before(200_000, 60), "text/html"),
    "links open before blocks": (lambda: b"<a href=1>" * 3_000 + b"<p>x" * 50_000, "text/html"),
    "formatting in tables": (lambda: b"<table><b><i>" * 1_300, "text/html"),
    "a hundred thousand attributes": (
        lambda: b"<p " + b"".join(b" a%d=1" % n for n in range(100_000)) + b">x",
        "text/html",
    ),
    "entities of entities": (ENTITIES.encode, "application/xhtml+xml"),
    "pages within pages": (lambda: pages_within_pages(5_000), "application/pdf"),
    "a page within itself": (
        lambda: pdf_of(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R]/Count 1>>"),
        "application/pdf",
    ),
    "a huge image": (
        lambda: pdf_of(
            *page_of(stream(b"/I Do"), b"/XObject<</I 5 0 R>>"),
            stream(
                b"", b"/Type/XObject/Subtype/Image/Width 100000/Height 100000/BitsPerComponent 8/ColorSpace/DeviceRGB"
            ),
        ),
        "application/pdf",
    ),
    "a table of many columns": (lambda: b"|a" * 200_000 + b"\n" + b"|-" * 200_000 + b"\n", "text/markdown"),
    "a table of many rows and columns": (
        lambda: (b"|" * 1_000 + b"\n") + (b"|-" * 1_000 + b"\n") + b"|\n" * 300_000,
        "text/markdown",
    ),
    "quotes and lists": (lambda: b"> - " * 250_000 + b"x", "text/markdown"),
    "front matter of lists": (lambda: b"---\na: " + b"[" * 60_000 + b"\n---\nx", "text/markdown"),
    "front matter of aliases": (lambda: b"---\na: &a [x]\nb: [*a,*a]\n---\nx", "text/markdown"),
    "commas": (lambda: b"a," * 500_000, "text/plain"),
    "an office document that unpacks to 200 MB": (lambda: packed_file(200_000_000), WORD),
    "the same as text": (lambda: packed_file(200_000_000), "text/plain"),
}


@pytest.mark.parametrize("name", FURTHER_BOMBS)
def test_a_file_is_read_or_refused_within_the_limits_of_its_process(name: str) -> None:
    make, media_type = FURTHER_BOMBS[name]
    content = make()
    limits = ReadingLimits(DocumentLimits(20_000_000, 2_000_000), cpu_s=DEADLINE_S / 4, memory_bytes=512 * 1024**2)
    process = ReaderProcess(limits)
    begin = time.monotonic()

    outcome = outcome_of(process, ReadingOrder(content, media_type, "", 800))
    process.kill()

    assert time.monotonic() - begin < 4 * DEADLINE_S
    if isinstance(outcome, InvalidInput):
        assert outcome.field in {"content_base64", "media_type"}
        assert len(str(outcome)) < 500
    else:
        assert len(outcome.parsed.text) <= 2_000_000


def outcome_of(process: ReaderProcess, order: ReadingOrder) -> ReadDocument | InvalidInput:
    try:
        return process.read(order)
    except InvalidInput as error:
        return error
