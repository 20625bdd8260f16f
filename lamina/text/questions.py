"""Find the question in a long message that is mostly pasted: a log, a trace, code, data."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lamina.text.english import FUNCTION_WORDS
from lamina.text.patterns import regex
from lamina.text.words import name_words

SHORT_CHARS = 1_000  # As much as an embedding model reads at once: shorter messages are asked as they are.
MAX_QUESTION_CHARS = 1_500
_LEAST_WORDS = 4
_LEAST_CHARS = 8
_LEAST_CONTENT = 2
_LONG_LINE = 300
_MOST_PROSE = 0.6
_LEAST_WORDLIKE = 0.8
_LEAST_FUNCTION = 0.15
_CHARS_OF_A_WORD = 2  # In a script without spaces.
_ASKS = regex.compile(r"""[?\uff1f\u061f\u037e\u055e\u1367][\p{Pe}\p{Pf}"'*_]*$""")
_ENDS = ".!?\u061f\u3002\uff01\uff1f"
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Line_Break=Complex_Context}"
_UNSPACED_LETTER = regex.compile(rf"[{_UNSPACED}]")
# A word as people write it in a sentence, with the marks around it; neither camelCase nor snake_case nor a path.
_WORDLIKE = regex.compile(
    rf"""(?<!\S)[(\p{{Pi}}"'*]*+(?:[{_UNSPACED}][{_UNSPACED}\p{{N}}\u3000-\u303f\u30fb\uff00-\uff0f\uff1a-\uff20]*+|\p{{L}}[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]*+|\p{{Lu}}{{1,6}}"""
    rf"""|\d{{1,4}})(?:['\u2019-][\p{{L}}\p{{M}}]++)*+[)\p{{Pf}}"'*.,;:!?\u061f\u060c\uff1f\u3002%]*+"""
)
_STAMPED = regex.compile(
    r"\A\W*+(?:\d{4}-\d\d-\d\d|\d\d:\d\d|\d\d/\w{2,3}/\d|[A-Z][a-z]{2} +\d+ +\d\d:"
    r"|(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL)\b"
    r"|at \S+\(|File \"|Traceback |Caused by:|During handling of |The above exception "
    r"|\.{3} \d+ more|[\w.]*(?:Error|Exception|Warning)\b)"
)
_MARKED = regex.compile(r"""\A\s*+(?:["'`{}\[\]<>|#@$%&+=~\\/;)]|//|--|\*/|/\*)""")
_CODE_END = regex.compile(r"[{};\\(\[|&>=,]\s*+$")
# Anchored at the beginning of a token: linear.
_NUMBERS = regex.compile(r"(?<![0-9A-Za-z])(?=[A-Fa-f]*\d)[0-9A-Fa-f]++|\d++")


@dataclass(frozen=True, slots=True)
class _Passage:
    """A stretch that reads like language.

    Args:
        text: Its text.
        asks: Whether it ends with a question mark.
        is_edge: Whether the message begins or ends with it.
        is_line: Whether it has lines of its own.
    """

    text: str
    asks: bool
    is_edge: bool
    is_line: bool = False


def find_question(message: str) -> str:
    """Return the part of a long message that asks, if the rest is pasted; the message itself where none can be told.

    What ends with a question mark counts, and what the message begins or ends with, if it reads like language; without
    either, all that does.
    """
    if len(message) <= SHORT_CHARS:
        return message
    found = list(_passages(message))
    if sum(len(passage.text) for passage in found) > _MOST_PROSE * len(message):
        found = [passage for passage in found if passage.is_edge] if any(p.asks and p.is_edge for p in found) else []
    # A row of words in a line of a log may be its own: it counts if there is nothing else.
    chosen = [passage for passage in found if passage.asks or (passage.is_edge and passage.is_line)]
    chosen = chosen or [passage for passage in found if passage.is_edge or passage.is_line] or found
    question = _within_budget(chosen)
    content = [word for word in name_words(question) if word not in FUNCTION_WORDS]
    return question if len(content) >= _LEAST_CONTENT else message


def _within_budget(passages: Sequence[_Passage]) -> str:
    """Return the passages in order, the asking ones and the last ones first in the claim for room."""
    left = MAX_QUESTION_CHARS
    kept = []
    for place in sorted(range(len(passages)), key=lambda place: (not passages[place].asks, -place)):
        if len(passages[place].text) <= left:
            left -= len(passages[place].text)
            kept.append(place)
    return "\n".join(passages[place].text for place in sorted(kept))


def _passages(message: str) -> Iterator[_Passage]:
    lines = [line.strip() for line in message.splitlines()]
    lines = [line for line in lines if line]
    repeated = Counter(_template(line) for line in lines)
    everything = _NUMBERS.sub("0", message)
    for place, line in enumerate(lines):
        edges = (place == 0, place == len(lines) - 1)
        if len(line) <= _LONG_LINE and repeated[_template(line)] == 1 and _is_language(line):
            yield _Passage(line, _ASKS.search(line) is not None, any(edges), is_line=True)
        elif len(line) > _LONG_LINE or any(edges):
            for passage in _passages_of_mixed_line(line, edges):
                # The last line of a log is none that the message ends with.
                if not passage.is_edge or everything.count(_template(passage.text)) == 1:
                    yield passage


def _template(line: str) -> str:
    return _NUMBERS.sub("0", line[:_LONG_LINE])


def _is_language(line: str) -> bool:
    """Report whether a line reads like a sentence rather than a log's, a trace's or a program's."""
    if len(line) < _LEAST_CHARS or _STAMPED.match(line) or _MARKED.match(line) or _CODE_END.search(line):
        return False
    tokens = line.split()
    wordlike = [token for token in tokens if _WORDLIKE.fullmatch(token)]
    # Several characters of a script without spaces are one word.
    count = sum(max(1, len(_UNSPACED_LETTER.findall(token)) // _CHARS_OF_A_WORD) for token in wordlike)
    if count < _LEAST_WORDS or len(wordlike) < _LEAST_WORDLIKE * len(tokens):
        return False
    return _ASKS.search(line) is not None or _reads_like_a_sentence(line)


def _reads_like_a_sentence(text: str) -> bool:
    """Report whether a text has function words, or letters of another language than that of logs."""
    found = name_words(text)
    if any(not word.isascii() for word in found):
        return True
    return sum(word in FUNCTION_WORDS for word in found) >= _LEAST_FUNCTION * len(found)


def _passages_of_mixed_line(line: str, edges: tuple[bool, bool]) -> Iterator[_Passage]:
    """Yield the sentences in a line, and the words in a row between what is none."""
    runs = list(_word_runs(line.split(), edges))
    repeated = Counter(_template(run.text) for run in runs)
    yield from (run for run in runs if repeated[_template(run.text)] == 1 and _is_language(run.text))


def _word_runs(tokens: Sequence[str], edges: tuple[bool, bool]) -> Iterator[_Passage]:
    """Yield the runs of tokens that look like words; one that ends a sentence ends its run."""
    run: list[str] = []
    begin = 0
    for place, token in enumerate(tokens):
        is_word = _WORDLIKE.fullmatch(token) is not None
        if is_word:
            run.append(token)
        if run and (not is_word or token[-1] in _ENDS or place == len(tokens) - 1):
            last = place if is_word else place - 1
            is_edge = (edges[0] and begin == 0) or (edges[1] and last == len(tokens) - 1)
            yield _Passage(" ".join(run), _ASKS.search(run[-1]) is not None, is_edge)
            run = []
        if not run:
            begin = place + 1
