from hypothesis import given
from hypothesis import strategies as st

from lamina.core.documents import Document, Span, Upload, document_of, opening, passage_text
from lamina.core.media_types import HTML, MARKDOWN, TEXT
from lamina.ingest.parsing.parse import DocumentLimits, parse
from lamina.ingest.parsing.passages import split

LIMITS = DocumentLimits(max_bytes=10_000_000, max_chars=5_000_000)


def passages(content: str, media_type: str = TEXT, *, chars: int = 200) -> list[str]:
    parsed = parse(content, media_type, LIMITS)
    return [parsed.text[span.start : span.end] for span in split(parsed, media_type, passage_chars=chars)]


def document(content: str, title: str | None = None, **fields: object) -> Document:
    parsed = parse(content, TEXT, LIMITS)
    upload = Upload(content, title=title, **fields)  # type: ignore[arg-type]
    return document_of(upload, parsed, split(parsed, TEXT, passage_chars=200), TEXT)


def test_a_short_document_is_one_passage() -> None:
    assert passages("One sentence.\nAnother one.") == ["One sentence.\nAnother one."]


@given(st.text(min_size=1, max_size=2_000), st.sampled_from((TEXT, MARKDOWN)), st.integers(50, 400))
def test_passages_are_in_order_and_together_the_whole_text(text: str, media_type: str, chars: int) -> None:
    content = "word " + text.replace("\x00", "")
    parsed = parse(content, media_type, LIMITS)

    spans = split(parsed, media_type, passage_chars=chars)

    assert "".join(parsed.text[span.start : span.end] for span in spans).split() == parsed.text.split()
    assert all(span.start < span.end for span in spans)
    assert all(len(parsed.text[span.start : span.end].strip()) <= chars for span in spans)


def test_every_marker_of_a_long_document_is_in_a_passage() -> None:
    markers = [f"marker{number}" for number in range(100)]
    found = passages(" ".join(f"{marker} {'filler ' * 140}." for marker in markers))

    assert all(any(marker in passage.split() for passage in found) for marker in markers)
    assert max(map(len, found)) <= 210


def test_a_long_text_without_a_gap_is_cut_all_the_same() -> None:
    text = "我们决定在星期五发布新版本因为没有人找到气压计" * 2_000

    found = passages(text)

    assert "".join(found) == text
    assert max(map(len, found)) == 200


def test_what_is_no_language_is_one_passage() -> None:
    text = f"One sentence.\n\n{'iVBORw0KGgo' * 5_000}\n\nAnother sentence."

    found = passages(text)

    assert "".join(found) == text
    assert len(found) == 3


def test_blanks_before_between_and_behind_belong_to_passages_too() -> None:
    text = "\n" * 500 + "one" + "\n" * 500 + "two" + " " * 500

    assert "".join(passages(text)) == text


def test_a_passage_never_mixes_what_stands_under_two_headings() -> None:
    assert passages("# A\none\n# B\ntwo", MARKDOWN) == ["# A\none\n", "# B\ntwo"]
    assert passages("<h1>A</h1>one<h1>B</h1>two", HTML) == ["A\n\none\n\n", "B\n\ntwo"]


def test_paragraphs_and_sentences_stay_whole_where_they_fit() -> None:
    first, second = "First paragraph. " * 8, "Second paragraph. " * 8

    assert [passage.strip() for passage in passages(f"{first}\n\n{second}")] == [first.strip(), second.strip()]


def test_what_is_embedded_begins_with_the_title_and_the_heading() -> None:
    assert passage_text("Guide", None, "use apt") == "Guide\nuse apt"
    assert passage_text("Guide", "Install > Linux", "use apt") == "Guide\nInstall > Linux\nuse apt"


def test_what_a_passage_begins_with_is_not_told_twice() -> None:
    assert passage_text("Guide", "Guide", "# Guide\nhello") == "# Guide\nhello"
    assert passage_text("Guide", "Guide > Linux", "## Linux\nuse apt") == "Guide\n## Linux\nuse apt"
    assert passage_text("A", None, "Another thing") == "A\nAnother thing"


def test_a_document_is_titled_by_its_owner_or_itself_or_its_first_line() -> None:
    assert document("\n  First   line  \nsecond", "Mine").title == "Mine"
    assert document("\n  First   line  \nsecond").title == "First line"
    assert document("# x\n\u200b", None).title == "# x"
    assert opening("word " * 100) == ("word " * 24).strip()
    assert len(opening("x" * 500)) == 120


def test_without_a_key_the_same_text_is_the_same_document() -> None:
    assert document("same  text\n", "one").key == document("same text", "two").key != document("other text").key
    assert document("same text", key="mine").key == "mine"


def test_anything_that_changes_makes_it_another_version() -> None:
    first = document("text", "title")
    others = (
        document("text.", "title"),
        document("text", "Title"),
        document("text", "title", tags=("a",)),
        document("text", "title", metadata={"a": 1}),
        document("text", "title", source="elsewhere"),
    )

    assert document("text", "title").content_hash() == first.content_hash()
    assert first.content_hash() not in {other.content_hash() for other in others}


def test_the_passages_know_their_place_in_the_text() -> None:
    parsed = parse("# A\none\n\n## B\ntwo", MARKDOWN, LIMITS)

    assert split(parsed, MARKDOWN, passage_chars=200) == (Span(0, 9, "A"), Span(9, 17, "A > B"))
