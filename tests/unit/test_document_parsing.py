import itertools

import pytest

from lamina.core.documents import Parsed
from lamina.core.media_types import HTML, MARKDOWN, PDF, TEXT, is_known, media_type_of
from lamina.errors import InvalidInput
from lamina.ingest.parsing.parse import DocumentLimits, parse
from tests.support.pdf import encrypted, pdf

LIMITS = DocumentLimits(max_bytes=1_000_000, max_chars=100_000)


def read(content: str | bytes, media_type: str = TEXT, limits: DocumentLimits = LIMITS) -> Parsed:
    return parse(content, media_type, limits)


def stretches(parsed: Parsed) -> list[tuple[str, str | None]]:
    return [(parsed.text[section.start : section.end].strip(), section.heading) for section in parsed.sections]


def test_text_is_one_section_of_its_lines() -> None:
    parsed = read("\ufeffZoe\u0308\r\nsecond\rthird".encode())

    assert parsed.text == "Zoe\u0308\nsecond\nthird"
    assert stretches(parsed) == [("Zoe\u0308\nsecond\nthird", None)]


def test_markdown_is_parted_at_its_headings_each_with_those_above_it() -> None:
    parsed = read("before\n\n# Guide\nhello\n\n## Linux\nuse apt\n\nWindows\n-------\nwinget\n\n# End\nbye", MARKDOWN)

    assert stretches(parsed) == [
        ("before", None),
        ("# Guide\nhello", "Guide"),
        ("## Linux\nuse apt", "Guide > Linux"),
        ("Windows\n-------\nwinget", "Guide > Windows"),
        ("# End\nbye", "End"),
    ]
    assert parsed.title == "Guide"


def test_what_looks_like_a_heading_in_a_block_of_code_is_none() -> None:
    parsed = read("# Shell\n\n```\n# a comment\n```\n\n    # indented\n", MARKDOWN)

    assert [heading for _, heading in stretches(parsed)] == ["Shell"]


def test_a_heading_in_a_quotation_parts_nothing() -> None:
    assert stretches(read("# A\n\n> # quoted\n\nafter", MARKDOWN)) == [("# A\n\n> # quoted\n\nafter", "A")]


def test_html_becomes_what_a_reader_sees() -> None:
    page = """<html><head><title> The  page </title><style>p {color: red}</style></head><body>
    <h1>Tea <em>time</em></h1><p>Green &amp; black<br>or white.</p><script>steal()</script><noscript>no</noscript>
    <ul><li>one<li>two</ul><h2>Prices</h2><table><tr><th>kind<th>price</tr><tr><td>green<td>3</tr></table>
    <pre>  a
    b</pre><p hidden>secret</p><img alt="a cup"><!-- remark --></body></html>"""

    parsed = read(page, HTML)

    assert parsed.title == "The page"
    assert stretches(parsed) == [
        ("Tea time\n\nGreen & black\nor white.\n\none\ntwo", "Tea time"),
        ("Prices\n\nkind | price\ngreen | 3\n  a\n    b\n\na cup", "Tea time > Prices"),
    ]


def test_html_without_a_title_is_titled_by_its_first_heading() -> None:
    assert read("<p>x</p><h1>First</h1><h1>Second</h1>", HTML).title == "First"


def test_a_pdf_is_parted_at_its_pages() -> None:
    parsed = read(pdf(["Hello World", "second line"], ["Page two"], title="My title"), PDF)

    assert parsed.title == "My title"
    assert [(text, section.page) for (text, _), section in zip(stretches(parsed), parsed.sections, strict=True)] == [
        ("Hello World\nsecond line", 1),
        ("Page two", 2),
    ]


def test_a_page_without_text_is_counted_though_it_has_no_section() -> None:
    parsed = read(pdf(["one"], [], ["three"]), PDF)

    assert [section.page for section in parsed.sections] == [1, 3]


def test_a_pdf_that_only_restricts_its_use_is_read() -> None:
    assert read(encrypted(pdf(["Hello"]), user_password=""), PDF).text.strip() == "Hello"


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        ("# A\n\ntext\n\n## B\nmore\n\n\n", MARKDOWN),
        ("\n\n  text  \n", TEXT),
        ("<h1>A</h1>text<h2>B</h2><p>more</p>tail", HTML),
        (pdf(["one", "two"], ["three"]), PDF),
    ],
)
def test_the_sections_are_the_whole_text_without_gaps(content: str | bytes, media_type: str) -> None:
    parsed = read(content, media_type)

    bounds = [0, *(section.end for section in parsed.sections)]
    assert [(section.start, section.end) for section in parsed.sections] == list(itertools.pairwise(bounds))
    assert bounds[-1] == len(parsed.text)


@pytest.mark.parametrize(
    ("content", "media_type", "said"),
    [
        pytest.param(b"%PDF-1.4 broken", PDF, r"content_base64: is no readable PDF .*repair it", id="broken pdf"),
        pytest.param(b"", PDF, "content_base64: is no readable PDF", id="empty pdf"),
        pytest.param(b"hello", PDF, "content_base64: is no readable PDF", id="no pdf"),
        pytest.param(pdf(["Hello"])[:300], PDF, "content_base64: (is no readable PDF|has no text)", id="cut pdf"),
        pytest.param(
            encrypted(pdf(["Hello"]), user_password="x"), PDF, "encrypted PDF; remove its password", id="encrypted pdf"
        ),
        pytest.param(pdf([]), PDF, "has no text in it; pages that are only pictures", id="pdf of pictures"),
        pytest.param("text", PDF, "content: is text, .*send it as content_base64", id="text as pdf"),
        pytest.param(b"caf\xe9", TEXT, "is not utf-8: .*convert it to UTF-8, or name its charset", id="latin bytes"),
        pytest.param(b"x", "text/plain; charset=klingon", "unknown charset 'klingon'", id="unknown charset"),
        pytest.param(b"x", "text/plain; charset=zip", "unknown charset 'zip'", id="a codec that is no charset"),
        pytest.param("x", "application/zip", "media_type: is 'application/zip'; expected one of text/plain", id="zip"),
        pytest.param("x", "", "media_type: is ''; expected one of", id="no media type"),
        pytest.param("a\x00b", TEXT, "content: contains a NUL character", id="NUL"),
        pytest.param("a\x00b", HTML, "content: contains a NUL character", id="NUL in html"),
        pytest.param("a\ud800", MARKDOWN, "content: contains a lone surrogate", id="surrogate"),
        pytest.param("", TEXT, "content: has no text in it", id="empty"),
        pytest.param(" \u200b\n", MARKDOWN, "content: has no text in it", id="blank"),
        pytest.param("<script>x</script>", HTML, "content: has no text in it", id="html without text"),
        pytest.param("<div>" * 5_000 + "x", HTML, "nests 5000 tags; at most 4000", id="html that nests without end"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_field_and_the_remedy(
    content: str | bytes, media_type: str, said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        read(content, media_type)


def test_bytes_in_a_named_charset_are_read() -> None:
    assert read("café".encode("latin-1"), "text/plain; charset=ISO-8859-1").text == "café"


def test_a_file_or_a_text_that_is_too_large_is_refused() -> None:
    small = DocumentLimits(max_bytes=100, max_chars=20)

    for content, media_type in (("é" * 60, TEXT), ("x" * 30, TEXT), ("<p>" + "x" * 30, HTML)):
        with pytest.raises(InvalidInput, match=r"at most (100|20) are accepted"):
            read(content, media_type, small)
    with pytest.raises(InvalidInput, match="more than 20 characters"):
        read(pdf(["x" * 30]), PDF, DocumentLimits(max_bytes=10_000, max_chars=20))


def test_a_field_is_named_by_its_path() -> None:
    with pytest.raises(InvalidInput) as refused:
        parse("", TEXT, LIMITS, field_path="documents.3")

    assert refused.value.field == "documents.3.content"


@pytest.mark.parametrize(
    ("name", "declared", "expected"),
    [
        ("a.MD", None, MARKDOWN),
        ("a.htm", "application/octet-stream", HTML),
        ("a.pdf", "", PDF),
        ("a.pdf", "text/html; charset=utf-8", "text/html; charset=utf-8"),
        ("README", None, TEXT),
    ],
)
def test_a_files_media_type_is_the_declared_one_or_its_names(name: str, declared: str | None, expected: str) -> None:
    assert media_type_of(name, declared) == expected


def test_files_of_other_kinds_are_not_known() -> None:
    assert [name for name in ("a.md", "a.pdf", "a.exe", "a") if is_known(name)] == ["a.md", "a.pdf"]
