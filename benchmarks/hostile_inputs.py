"""Inputs that hold up a service that is not made for them: sizes, scripts, encodings, nesting, repetition."""

import base64
import gzip
import io
import json
import random
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any

MIB = 1024 * 1024
SENTENCE = "The ship leaves on Friday, because nobody found the barometer behind the door. "
_RANDOM = random.Random(76)  # noqa: S311 - the same inputs each time
_JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class HostileInput:
    """A request as it goes over the wire.

    Args:
        name: Of the input.
        path: Where it is sent.
        body: Its bytes.
        headers: Beside the key.
        method: Of the request.
    """

    name: str
    path: str
    body: bytes
    headers: dict[str, str]
    method: str = "POST"


def all_inputs() -> Iterator[HostileInput]:
    """Yield every input; each is made when it is due, for some are large."""
    for name, text in _texts():
        yield _message(f"message: {name}", text)
    for name, text in _notes():
        yield _sent(f"note: {name}", "/v1/notes", {"content": text})
    for name, text in _queries():
        yield _sent(f"query: {name}", "/v1/search", {"query": text})
        yield _sent(f"context: {name}", "/v1/context", {"query": text})
    yield from _documents()
    yield from _shapes()
    yield from _bodies()


def _message(name: str, text: str) -> HostileInput:
    return _sent(name, "/v1/turns", {"session": "hostile", "messages": [{"content": text}]})


def _sent(name: str, path: str, body: Any) -> HostileInput:
    return HostileInput(name, path, json.dumps(body).encode(), dict(_JSON))


def _texts() -> Iterator[tuple[str, str]]:
    bytes_ = _RANDOM.randbytes(150_000)
    yield "100 000 blanks and a sentence", "x" + " " * 100_000 + SENTENCE
    yield "999 000 blanks and a sentence", "x" + " " * 999_000 + SENTENCE
    yield "500 000 line ends", "x" + "\n" * 500_000 + SENTENCE
    yield "a data URL of 200 KB", f"Look: data:image/png;base64,{base64.b64encode(bytes_).decode()} and the barometer"
    yield "base 64 alone, in lines", base64.encodebytes(bytes_).decode()
    yield "a hexadecimal dump", "\n".join(bytes_[place : place + 16].hex(" ") for place in range(0, 90_000, 16))
    yield "minified code", "function o(e,t){return e.call(this,t,n)||r[e]}" * 10_000
    yield "one letter a million times", "x" * 1_000_000
    yield "a million dots", "." * 1_000_000
    yield "a million quotes", '"' * 1_000_000
    yield "a million open brackets", "[" * 1_000_000
    yield "10^5 distinct words", " ".join("".join(_RANDOM.choices(ascii_lowercase, k=6)) for _ in range(100_000))
    yield "30 000 names", " ".join(f"Ann{number} met Bob{number}." for number in range(15_000))
    yield "20 000 headers of a block", "[Memory: note | 2026-01-15]\n" * 20_000
    yield "20 000 objects of a block", '{"kind": "note", "source": "notes", "id": ' * 20_000
    yield "a million characters of English", _english(1_000_000)
    yield "100 000 characters of Thai", ("สวัสดีครับผมชอบกินข้าวมันไก่กับเพื่อน" * 3_000)[:100_000]
    yield (
        "50 000 characters of Chinese",
        "".join(_RANDOM.choices("我们决定在星期五发布新版本因为没有人找到气压计。", k=50_000)),
    )
    yield "300 000 characters of English", _english(300_000)
    yield "a lone ideograph", "猫"
    yield "10 000 emoji", "".join(chr(0x1F300 + number % 700) for number in range(10_000))
    yield "stacked combining marks", ("e" + "\u0301" * 500) * 500
    yield "right-to-left overrides", ("\u202eabc\u202c\u2066" + SENTENCE) * 500
    yield "invisible characters and one letter", "\u200b" * 300_000 + "x"
    yield "a byte-order mark in the middle", f"{SENTENCE}\ufeff{SENTENCE}"
    yield "private and unassigned characters", "\ue000\uffff\U0010ffff" * 1_000 + "x"
    yield "characters that grow when composed", "\ufb2c" * 100_000
    yield "what NFKC makes eighteen times as long", "\ufdfa" * 50_000


def _notes() -> Iterator[tuple[str, str]]:
    yield "100 000 characters of English", _english(100_000)
    yield "100 000 opening and closing tags", "<b>a</b>" * 12_500
    yield "50 000 quoted lines", "> quoted\n" * 50_000
    yield "50 000 links of markdown", "[a](http://b.c) " * 50_000


def _queries() -> Iterator[tuple[str, str]]:
    yield "100 000 characters of English", _english(100_000)
    yield "99 990 blanks and a word", " " * 99_990 + "barometer"
    yield "50 000 ideographs", "猫" * 50_000
    yield "50 000 quotes and brackets", '"(' * 25_000 + "x"
    yield "20 000 names", " ".join(f"Ann{number}" for number in range(12_000))
    yield "base 64", base64.b64encode(_RANDOM.randbytes(70_000)).decode()


def _documents() -> Iterator[HostileInput]:
    for name, media_type, text in (
        ("10 000 levels of HTML", "text/html", "<div>" * 10_000 + SENTENCE),
        ("100 000 attributes of HTML", "text/html", "<p " + "a='b' " * 100_000 + f">{SENTENCE}</p>"),
        ("a million open angles", "text/html", "<" * 1_000_000 + SENTENCE),
        ("100 000 entities of HTML", "text/html", "&amp;" * 100_000 + SENTENCE),
        ("20 000 levels of Markdown", "text/markdown", "> " * 20_000 + SENTENCE),
        ("5 000 headings of Markdown", "text/markdown", "# a\n" * 5_000 + SENTENCE),
        ("20 000 rows of a table", "text/markdown", "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 20_000),
        ("100 000 open brackets of Markdown", "text/markdown", "[" * 100_000 + SENTENCE),
        (
            "a line of 200 KB base 64",
            "text/plain",
            base64.b64encode(_RANDOM.randbytes(150_000)).decode() + f"\n{SENTENCE}",
        ),
        ("a million blanks", "text/plain", " " * 1_000_000 + SENTENCE),
    ):
        body = {"key": name, "content": text, "media_type": media_type}
        yield _sent(f"document: {name}", "/v1/documents", body)
    for name, media_type, content in (
        ("ISO-2022-JP without its name", "text/html", f"<p>今日は{SENTENCE}</p>".encode("iso2022_jp")),
        ("UTF-16 with its mark", "text/plain", SENTENCE.encode("utf-16")),
        ("overlong UTF-8", "text/plain", b"\xc0\xaf\xe0\x80\xaf" * 1_000),
        ("a bomb in a ZIP", "application/pdf", _zip_bomb()),
        ("a PDF that ends at once", "application/pdf", b"%PDF-1.7\n1 0 obj\n<<" + b"/A " * 100_000),
        ("10 MB of text", "text/plain", _english(10 * MIB).encode()),
    ):
        encoded = base64.b64encode(content).decode()
        body = {"key": name, "content": encoded, "media_type": media_type, "encoding": "base64"}
        yield _sent(f"document: {name}", "/v1/documents", body)


def _shapes() -> Iterator[HostileInput]:
    deep: Any = "x"
    for _ in range(200):
        deep = {"a": [deep]}
    note = {"content": SENTENCE}
    yield _sent("metadata: 400 levels", "/v1/notes", {**note, "metadata": deep})
    yield _sent("metadata: 10^5 keys", "/v1/notes", {**note, "metadata": {f"k{n}": n for n in range(100_000)}})
    yield _sent("metadata: a number of 10^5 digits", "/v1/notes", {**note, "metadata": {"n": 10**4_000}})
    yield _sent("tags: 10^5", "/v1/notes", {**note, "tags": [f"t{n}" for n in range(100_000)]})
    yield _sent("batch: 1 000 notes", "/v1/notes/batch", {"notes": [f"The box {n} is blue." for n in range(1_000)]})
    yield _sent("batch: 10^5 notes", "/v1/notes/batch", {"notes": ["x"] * 100_000})
    yield _sent("turn: 10^5 messages", "/v1/turns", {"session": "s", "messages": [{"content": "x"}] * 100_000})
    long = [{"content": f"{number}: {SENTENCE * 12}"} for number in range(256)]
    yield _sent("turn: 256 long messages", "/v1/turns", {"session": "s", "messages": long})
    filters: Any = {"category": {"in": ["note"]}}
    for _ in range(200):
        filters = {"not": filters}
    yield _sent("filters: 200 levels", "/v1/search", {"query": "x", "filters": filters})
    yield _sent(
        "filters: 10^5 conditions", "/v1/search", {"query": "x", "filters": {"or": [{"tags": {"in": ["a"]}}] * 100_000}}
    )
    yield _sent(
        "profile: 10^5 keys",
        "/v1/turns",
        {"user": "u", "session": "s", "messages": [{"content": "I prefer tea. " * 20_000}]},
    )


def _bodies() -> Iterator[HostileInput]:
    path = "/v1/notes"
    yield HostileInput("body: 10^5 open brackets", path, b"[" * 100_000, dict(_JSON))
    yield HostileInput("body: 10^6 levels", path, b'{"a":' * 1_000_000, dict(_JSON))
    yield HostileInput("body: lone surrogate", path, rb'{"content": "a\ud800b"}', dict(_JSON))
    yield HostileInput("body: NUL", path, rb'{"content": "a\u0000b"}', dict(_JSON))
    yield HostileInput("body: overlong UTF-8", path, b'{"content": "a\xc0\xafb"}', dict(_JSON))
    yield HostileInput("body: byte-order mark", path, b'\xef\xbb\xbf{"content": "with a mark"}', dict(_JSON))
    yield HostileInput("body: UTF-16", path, '{"content": "wide"}'.encode("utf-16"), dict(_JSON))
    yield HostileInput("body: 10 MB of blanks", path, b" " * 10 * MIB, dict(_JSON))
    yield HostileInput("body: 10 MB in one string", path, json.dumps({"content": "x " * 5 * MIB}).encode(), dict(_JSON))
    yield HostileInput("body: 33 MiB", path, json.dumps({"content": "x" * 33 * MIB}).encode(), dict(_JSON))
    yield HostileInput("body: a number of 10^6 digits", path, b'{"content": ' + b"9" * 1_000_000 + b"}", dict(_JSON))
    yield HostileInput(
        "body: a million equal keys", path, b"{" + b'"content": "x", ' * 300_000 + b'"a": 1}', dict(_JSON)
    )
    bomb = gzip.compress(b" " * 100 * MIB)
    yield HostileInput("body: 100 MB packed by gzip", path, bomb, {**_JSON, "Content-Encoding": "gzip"})
    packed = gzip.compress(json.dumps({"content": f"packed {SENTENCE}"}).encode())
    yield HostileInput("body: a note packed by gzip", path, packed, {**_JSON, "Content-Encoding": "gzip"})


def _english(chars: int) -> str:
    """Return sentences none of which is said twice: equal chunks would be embedded once."""
    count = chars // len(SENTENCE) + 1
    return " ".join(f"{SENTENCE}This was number {number}." for number in range(count))[:chars]


def _zip_bomb() -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", b" " * 50 * MIB)
    return held.getvalue()
