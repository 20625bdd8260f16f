"""Read HTML as a person sees it: its text, block by block, and the places of its headings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import regex
from selectolax.lexbor import LexborHTMLParser

_DROPPED = frozenset(
    """head script style template noscript iframe object embed applet svg canvas audio video dialog""".split()  # noqa: SIM905
)
_BLOCKS = frozenset(
    """address article aside blockquote body caption center dd details dir div dl dt fieldset figcaption figure footer
    form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol optgroup option p pre section summary
    table tbody tfoot thead tr ul""".split()  # noqa: SIM905 - one tag a line would fill a page
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_CELLS = frozenset(("td", "th"))
_KEEPS_SPACE = frozenset(("pre", "textarea"))
_SPACE = re.compile(r"[ \t\n\f\r]+")
# Tags that nest; those that HTML closes by itself do not.
# Of regex, not of re: other threads run while it searches.
_NESTING = regex.compile(
    r"<(/?)(?!(?:p|li|dt|dd|tr|td|th|option|br|hr|img|input|meta|link|wbr|col|source)\b)[a-z]", regex.IGNORECASE
)
# Formatting that HTML opens again in each block after one in which it was left open.
_FORMATTING = "a|b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u"
_TAG = regex.compile(rf"<(?:(?P<end>/)?(?P<formatting>{_FORMATTING})(?![a-z0-9])|[a-z])", regex.IGNORECASE)
_FEW_OPEN = 8
_TEXT, _LINE, _CELL = "-text", "\n", " | "


@dataclass(frozen=True, slots=True)
class Page:
    """The visible content of a page.

    Args:
        title: Of its head.
        text: Blocks on lines of their own, headings and paragraphs after a blank line.
        headings: (start, end, level) of each heading in the text.
        tables: (start, end, start of its body) of each outermost table that has a head.
    """

    title: str | None
    text: str
    headings: tuple[tuple[int, int, int], ...]
    tables: tuple[tuple[int, int, int], ...] = ()


def read_html(source: str) -> Page:
    """Return the visible content of a page; scripts, styles, embedded objects and hidden elements are dropped."""
    tree = LexborHTMLParser(source)
    writer = _Writer()
    for node, is_entered in _walk(tree.root):
        writer.take(node, is_entered=is_entered)
    title = tree.css_first("head > title")
    return Page(title.text() if title else None, writer.text(), tuple(writer.headings), tuple(writer.tables))


def nesting(source: str) -> int:
    """Return how deep the tags of a page nest at most; the time to parse it grows with the square of that."""
    depth = deepest = 0
    for tag in _NESTING.finditer(source):
        depth = max(0, depth + (-1 if tag.group(1) else 1))
        deepest = max(deepest, depth)
    return deepest


def reopened(source: str) -> int:
    """Estimate the elements that a parser makes of formatting that is left open; never too low by much.

    Formatting that is open when a block ends is made anew in each block that follows: a thousand open tags in front
    of a hundred thousand blocks, half a megabyte, are a hundred million elements. Pages have few open.
    """
    opened = count = 0
    for tag in _TAG.finditer(source):
        if tag["formatting"] is None:
            count += opened if opened > _FEW_OPEN else 0
        else:
            opened = max(0, opened + (-1 if tag["end"] else 1))
    return count


def _walk(root: Any) -> Iterator[tuple[Any, bool]]:
    """Yield each node when it is entered and when it is left; without recursion, so that no depth overflows."""
    waiting: list[tuple[Any, bool]] = [(root, True)] if root is not None else []
    while waiting:
        node, is_entered = waiting.pop()
        yield node, is_entered
        is_dropped = node.tag in _DROPPED or node.tag == _TEXT or "hidden" in (node.attributes or {})
        if is_entered and not is_dropped:
            waiting.append((node, False))
            waiting += [(child, True) for child in reversed(list(_children(node)))]


def _children(node: Any) -> Iterator[Any]:
    child = node.child
    while child is not None:
        yield child
        child = child.next


def _is_head_row(row: Any) -> bool:
    """Report whether a row of a table stands in its head, or has headings of columns alone."""
    cells = [child.tag for child in _children(row) if child.tag in _CELLS]
    return row.parent.tag == "thead" or (len(cells) > 1 and set(cells) == {"th"})


@dataclass(slots=True)
class _Writer:
    """Collects the text of a page in order."""

    parts: list[str] = field(default_factory=list)
    headings: list[tuple[int, int, int]] = field(default_factory=list)
    length: int = 0
    tail: str = _LINE
    begun: int = 0
    preformatted: int = 0
    tables: list[tuple[int, int, int]] = field(default_factory=list)
    table_depth: int = 0
    table_start: int = 0
    table_body: int | None = None
    is_head: bool = True

    def take(self, node: Any, *, is_entered: bool) -> None:
        tag = node.tag
        if tag == _TEXT:
            self._write(node.text_content or "")
        elif tag == "br" and is_entered:
            self._break()
        elif tag == "img" and is_entered:
            self._write((node.attributes or {}).get("alt") or "")
        elif tag in _CELLS and is_entered:
            if not self.tail.endswith((_LINE, _CELL)):
                self._add(_CELL)
        elif tag in _BLOCKS:
            self._bound(tag, is_entered=is_entered)
            self._mark_table(node, is_entered=is_entered)

    def text(self) -> str:
        return "".join(self.parts).rstrip()

    def _bound(self, tag: str, *, is_entered: bool) -> None:
        self.preformatted += (1 if is_entered else -1) if tag in _KEEPS_SPACE else 0
        if tag in _HEADINGS and not is_entered and self.length > self.begun:
            self.headings.append((self.begun, self.length, _HEADINGS[tag]))
        self._break(blank=tag in _HEADINGS or tag == "p")
        if tag in _HEADINGS and is_entered:
            self.begun = self.length

    def _mark_table(self, node: Any, *, is_entered: bool) -> None:
        """Note where the outermost table begins, where its rows of headings end, and where it ends itself."""
        if node.tag == "table":
            self.table_depth += 1 if is_entered else -1
            if is_entered and self.table_depth == 1:
                self.table_start, self.table_body, self.is_head = self.length, None, True
            elif not is_entered and self.table_depth == 0 and self.table_body is not None:
                self.tables.append((self.table_start, self.length, self.table_body))
        elif node.tag == "tr" and self.table_depth == 1 and not is_entered and self.is_head:
            self.is_head = _is_head_row(node)
            if self.is_head:
                self.table_body = self.length

    def _write(self, text: str) -> None:
        shown = text if self.preformatted else _SPACE.sub(" ", text)
        if not self.preformatted and self.tail.endswith((" ", _LINE)):
            shown = shown.lstrip(" ")
        self._add(shown)

    def _break(self, *, blank: bool = False) -> None:
        if self.parts and not self.tail.endswith(_LINE):
            self._add(_LINE)
        if self.parts and blank and not self.tail.endswith("\n\n"):
            self._add(_LINE)

    def _add(self, text: str) -> None:
        if text:
            self.parts.append(text)
            self.length += len(text)
            self.tail = (self.tail + text[-len(_CELL) :])[-len(_CELL) :]
