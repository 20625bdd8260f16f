"""Field cases 83 to 85: what is printed, tabulated, or written in another charset is found in documents."""

import base64
from typing import Any

import httpx
import pytest

from lamina.core.media_types import HTML, MARKDOWN, PDF
from tests.support.application import Application
from tests.support.pdf import pdf

JAPANESE = "吾輩は猫である。名前はまだ無い。"


async def test_a_word_that_a_pdf_breaks_at_the_end_of_a_line_is_found_whole(semantic: Application) -> None:
    client = semantic.client()
    lines = [
        "This was an extraordi-",
        "nary event for a well-",
        "known harbour in 2020-",
        "2021, post-",
        "war.",
    ]
    await store(client, pdf(lines), PDF)
    await store(client, pdf(["Nothing of the kind."]), PDF)
    await semantic.indexed()

    content = (await passages(client, "extraordinary"))[0]["content"]

    assert "an extraordinary" in content
    assert "well-known" in content
    assert "2020-\n2021" in content
    for query in ("extraordinary", "well-known", "post-war", "postwar"):
        assert "extraordinary" in (await passages(client, query))[0]["content"], query


@pytest.mark.parametrize(
    ("head", "title", "metadata"),
    [
        ("---\ntitle: Tea\ntags: [a, b]\nyear: 2024\nprice: 1.5\nis_draft: false\n---\n", "Tea",
         {"title": "Tea", "tags": ["a", "b"], "year": 2024, "price": 1.5, "is_draft": False}),
        ("---\r\ntitle: 'Tea: green'\r\ndate: 2024-05-01\r\nland: NO\r\nzip: 01234\r\nnil:\r\n---\r\n", "Tea: green",
         {"title": "Tea: green", "date": "2024-05-01", "land": "NO", "zip": "01234", "nil": None}),
        ("+++\ntitle = 'Tea'\nd = 2024-01-01T00:00:00Z\n[a]\nb = [1, 2]\n+++\n", "Tea",
         {"title": "Tea", "d": "2024-01-01T00:00:00+00:00", "a": {"b": [1, 2]}}),
        ("\ufeff---\nauthor: Ann\n...\n", "Heading", {"author": "Ann"}),
        ("---\ntitle: 2024\n---\n", "2024", {"title": 2024}),
    ],
)  # fmt: skip
async def test_front_matter_titles_a_document_and_is_its_metadata(
    application: Application, head: str, title: str, metadata: dict[str, Any]
) -> None:
    client = application.client()

    document = await store(client, f"{head}\n# Heading\n\nDrink it hot.\n", MARKDOWN)

    assert document["title"] == title
    assert document["metadata"] == metadata
    assert document["content"] == "# Heading\n\nDrink it hot.\n"


async def test_what_its_owner_says_of_a_document_goes_before_its_front_matter(application: Application) -> None:
    text = "---\ntitle: Tea\nauthor: Ann\nyear: 2024\n---\nHot."

    document = await store(application.client(), text, MARKDOWN, title="Mine", metadata={"author": "Bob"})

    assert (document["title"], document["metadata"]) == ("Mine", {"title": "Tea", "author": "Bob", "year": 2024})


@pytest.mark.parametrize(
    "head",
    [
        "---\na: &a [x]\nb: *a\n---\n",
        "---\na: &a {b: *a}\n---\n",
        "---\na: !!python/object/apply:os.system ['true']\n---\n",
        "---\na: !custom x\n---\n",
        "---\ntitle: A\ntitle: B\n---\n",
        "---\na: [1\n---\n",
        f"---\na: {'[' * 5_000}\n---\n",
        f"---\na: {'{b: ' * 50}1{'}' * 50}\n---\n",
        f"---\nlong: {'x' * 100_000}\n---\n",
        "---\nkey: 1\n? [a, b]\n: c\n---\n",
        "+++\na = 1\na = 2\n+++\n",
        f"+++\na = {'[' * 5_000}\n+++\n",
    ],
)
async def test_front_matter_that_is_no_plain_mapping_is_text_and_no_heading(
    application: Application, head: str
) -> None:
    client = application.client()

    document = await store(client, f"{head}# Heading\n\nDrink it hot.\n", MARKDOWN)

    listed = (await client.get(f"/v1/documents/{document['id']}/passages", params={"limit": 200})).json()["passages"]
    assert {passage["heading"] for passage in listed} == {None, "Heading"}
    assert document["title"] == "Heading"
    assert document["metadata"] == {}
    assert document["content"].startswith(head[:20])


async def test_front_matter_with_a_nul_is_refused_by_name(application: Application) -> None:
    answer = await application.client().post(
        "/v1/documents", json={"content": '---\na: "\\0"\n---\nx', "media_type": MARKDOWN}
    )

    assert answer.status_code == 422
    assert "NUL" in answer.text


@pytest.mark.parametrize("text", ["---\n\nHello there\n\n---\n\nmore", "---\nHello\n\n---\nmore", "---\n"])
async def test_a_rule_at_the_beginning_is_no_front_matter(application: Application, text: str) -> None:
    document = await store(application.client(), f"{text}\nend", MARKDOWN)

    assert document["content"] == f"{text}\nend"
    assert document["metadata"] == {}


def markdown_table(rows: int) -> str:
    body = "".join(f"| SK-{row:04} | Widget {row % 17} | {row * 7 % 991}.50 EUR |\n" for row in range(rows))
    return f"# Price list\n\nAs of May.\n\n| Article | Name | Price |\n|---|---|---|\n{body}\nThe end.\n"


def html_table(rows: int) -> str:
    body = "".join(f"<tr><td>SK-{row:04}<td>Widget {row % 17}<td>{row * 7 % 991}.50 EUR</tr>" for row in range(rows))
    head = "<thead><tr><th>Article<th>Name<th>Price</tr></thead>"
    return f"<h1>Price list</h1><p>As of May.</p><table>{head}<tbody>{body}</tbody></table><p>The end.</p>"


@pytest.mark.parametrize(("make", "media_type"), [(markdown_table, MARKDOWN), (html_table, HTML)])
async def test_every_passage_of_a_long_table_has_its_head_and_a_row_is_found_first(
    semantic: Application, make: Any, media_type: str
) -> None:
    client = semantic.client()
    document = await store(client, make(600), media_type)
    await semantic.indexed()

    listed = (await client.get(f"/v1/documents/{document['id']}/passages", params={"limit": 200})).json()["passages"]
    first = (await passages(client, "What is the price of SK-0377?"))[0]["content"]

    of_table = [passage["content"] for passage in listed if "SK-" in passage["content"]]
    assert len(of_table) > 20
    assert all("Article" in content and "Price" in content for content in of_table)
    assert all(len(content) <= 810 for content in of_table)
    assert "SK-0377" in first
    assert "Price" in first
    assert f"{377 * 7 % 991}.50 EUR" in first


async def test_a_head_that_is_too_long_is_cut(application: Application) -> None:
    client = application.client()
    head = " | ".join(f"column {number} of very many" for number in range(100))
    rows = "".join(f"| {' | '.join(f'r{row}c{number}' for number in range(100))} |\n" for row in range(40))
    document = await store(client, f"| {head} |\n|{'---|' * 100}\n{rows}", MARKDOWN)

    listed = (await client.get(f"/v1/documents/{document['id']}/passages", params={"limit": 200})).json()["passages"]

    assert all(len(passage["content"]) <= 810 for passage in listed)
    assert all("column 0" in passage["content"] for passage in listed)
    assert all(f"r{row}c50" in document["content"] for row in range(40))


PAGE = "<!DOCTYPE html><html><head>{meta}<title>Cat</title></head><body><p>{text}</p></body></html>"
DECLARED = '<meta charset="{}">'
PRAGMA = '<meta http-equiv="Content-Type" content="text/html; charset={}">'
CHARSETS = [
    ("iso-2022-jp", "iso2022_jp", JAPANESE),
    ("Shift_JIS", "cp932", f"{JAPANESE}①"),
    ("euc-jp", "euc_jp", JAPANESE),
    ("EUC-KR", "cp949", "나는 고양이로소이다. 똠방각하"),
    ("gb2312", "gbk", "我是一只猫，名字还没有。镕"),
    ("gb18030", "gb18030", "我是一只猫"),
    ("big5", "big5", "我是一隻貓"),
    ("windows-1251", "cp1251", "Я — кот"),
    ("koi8-r", "koi8_r", "Я кот"),
    ("windows-1252", "cp1252", "Ich bin ein Kater – „Müller“ €"),
    ("iso-8859-1", "cp1252", "Ich bin ein Kater – „Müller“ €"),
    ("iso-8859-2", "iso8859_2", "Żółty kot"),
    ("windows-1256", "cp1256", "أنا قط"),
    ("windows-1254", "cp1254", "Ben bir kediyim, ığş"),
    ("utf-8", "utf-8", "猫 кот Kater"),
    ("utf-16", "utf-8", "猫 кот Kater"),
]


@pytest.mark.parametrize(("label", "codec", "text"), CHARSETS)
@pytest.mark.parametrize("meta", [DECLARED, PRAGMA])
async def test_a_page_is_read_in_the_charset_that_it_declares(
    application: Application, label: str, codec: str, text: str, meta: str
) -> None:
    page = PAGE.format(meta=meta.format(label), text=text).encode(codec)

    document = await store(application.client(), page, HTML)

    assert document["content"] == text


@pytest.mark.parametrize(("label", "codec", "text"), CHARSETS[:-1])
async def test_a_page_is_read_in_the_charset_that_was_sent_with_it(
    application: Application, label: str, codec: str, text: str
) -> None:
    page = PAGE.format(meta=DECLARED.format("koi8-u"), text=text).encode(codec)

    document = await store(application.client(), page, f"{HTML}; charset={label}")

    assert document["content"] == text


@pytest.mark.parametrize(
    "page",
    [
        PAGE.format(meta="", text=JAPANESE).encode("iso2022_jp"),
        PAGE.format(meta="", text=JAPANESE).encode("utf-16-le"),
        PAGE.format(meta="", text=JAPANESE).encode("utf-16-be"),
        PAGE.format(meta=DECLARED.format("koi8-r"), text=JAPANESE).encode("utf-16"),
        PAGE.format(meta=DECLARED.format("koi8-r"), text=JAPANESE).encode("utf-8-sig"),
        PAGE.format(meta="", text=JAPANESE).encode("utf-32"),
        f'<?xml version="1.0" encoding="Shift_JIS"?>{PAGE.format(meta="", text=JAPANESE)}'.encode("cp932"),
        f"<!-- {DECLARED.format('koi8-r')} -->{PAGE.format(meta='', text=JAPANESE)}".encode(),
    ],
)
async def test_a_page_that_does_not_declare_its_charset_is_read_by_its_bytes(
    application: Application, page: bytes
) -> None:
    assert (await store(application.client(), page, HTML))["content"] == JAPANESE


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (PAGE.format(meta=DECLARED.format("utf-7"), text="&#65;").encode() + b"+ADw-script+AD4-", "utf-7"),
        (PAGE.format(meta=DECLARED.format("utf-8"), text=JAPANESE).encode("cp932"), "utf-8"),
        (PAGE.format(meta=DECLARED.format("euc-kr"), text=JAPANESE).encode("utf-8") + b"\xff", "cp949"),
        (PAGE.format(meta="", text="שלום לכולם, מה שלומכם היום?").encode("cp1255"), "names no charset"),
        (
            PAGE.format(meta="", text="Zażółć gęślą jaźń. Wczoraj do Łodzi.").encode("iso8859_2"),
            "names no charset",
        ),
        (PAGE.format(meta="", text="Zoë").encode("latin-1"), "names no charset"),
    ],
)
async def test_a_page_in_no_charset_that_can_be_told_is_refused_by_name(
    application: Application, page: bytes, reason: str
) -> None:
    body = {"content_base64": base64.b64encode(page).decode(), "media_type": HTML}

    answer = await application.client().post("/v1/documents", json=body)

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "content_base64"
    assert reason in answer.text


@pytest.mark.parametrize("charset", ["utf-7", "unicode_escape", "punycode", "idna", "hz", "bogus", "base64"])
async def test_a_charset_that_is_none_is_refused_by_name(application: Application, charset: str) -> None:
    body = {"content_base64": base64.b64encode(b"hello there").decode(), "media_type": f"text/plain; charset={charset}"}

    answer = await application.client().post("/v1/documents", json=body)

    assert answer.status_code == 422
    assert charset in answer.json()["detail"]


async def store(client: httpx.AsyncClient, content: str | bytes, media_type: str, **fields: Any) -> dict[str, Any]:
    """Store a document, and return it with its content."""
    body = {"content": content} if isinstance(content, str) else {"content_base64": base64.b64encode(content).decode()}
    answer = await client.post("/v1/documents", json={**body, "media_type": media_type, **fields})
    assert answer.is_success, answer.text
    return dict((await client.get(f"/v1/documents/{answer.json()['id']}")).json())


async def passages(client: httpx.AsyncClient, query: str) -> list[dict[str, Any]]:
    answer = await client.post("/v1/search", json={"query": query, "tiers": ["documents"]})
    assert answer.status_code == 200, answer.text
    return list(answer.json()["results"])
