"""A turn as the service takes it: of a text that is too long both ends, of a turn that is too long several parts.

Agents say and call what no memory can hold, and nobody is there who could shorten it.
"""

import hashlib
import json
import math
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lamina.text.hygiene import MAX_CONTENT_CHARS, MAX_ID_CHARS, has_more_values, json_bytes
from lamina.text.parts import ends_of, ends_within
from lamina.text.words import CHARS_PER_TOKEN, language_tokens, quarter_tokens

Json = dict[str, Any]
_MOST_ITEMS = 200
"""Messages and calls of tools of one request, which may have 256."""
_MOST_TOKENS, _MOST_TEXT_TOKENS = 40_000, 110_000
"""Of one request, which the embedding model reads in 20 s, and of one text, which goes alone then. 120 000 are taken.
Characters and bytes say little: a letter of English is a quarter of a token, one of Thai, or a digit, a whole."""
_MOST_CHARS = 1_500_000
"""Of the texts of one request, which may have 32 MiB, six bytes a character: blanks are no tokens."""
_MOST_ARGUMENT_BYTES, _MOST_ARGUMENT_VALUES, _MOST_LEVELS = 60_000, 5_000, 60
_LEAST_RESULT_TOKENS = 1_000
_MOST_QUESTION_CHARS = 20_000
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"})


class TurnPart(NamedTuple):
    """Messages and calls that go in one request.

    Args:
        messages: In their order.
        tool_calls: Those before the last message, if that is the assistant's.
        tokens: Of the embedding model, at most.
    """

    messages: list[Json]
    tool_calls: list[Json]
    tokens: int


def turn_parts(
    messages: Sequence[Mapping[str, Any]],
    calls: Sequence[Mapping[str, Any]] = (),
    *,
    most_tokens: int = _MOST_TOKENS,
    most_argument_bytes: int = _MOST_ARGUMENT_BYTES,
) -> Iterator[TurnPart]:
    """Yield a turn in parts, in the order of its session; one without anything is one empty part.

    What its texts, ids and arguments may not hold is left out of them, messages that show nothing are left out whole,
    and calls stand before the last message, if that is the assistant's.

    Args:
        messages: What was said.
        calls: The tools that were called.
        most_tokens: Of a part that is no single message.
        most_argument_bytes: Of the arguments of a call, as JSON; of more the ends are kept, as text.
    """
    said = [
        {**message, **fitting_ids(message, "ref", "name"), "content": fitting_text(message["content"])}
        for message in messages
    ]
    items = [item for item in said if not is_blank(item["content"])]
    at = len(items) - 1 if items and items[-1].get("role") == "assistant" else len(items)
    items[at:at] = [_storable_call(call, most_argument_bytes) for call in calls]
    for batch, tokens in in_batches(items, most_tokens=most_tokens):
        spoken = [item for item in batch if "content" in item]
        yield TurnPart(spoken, [item for item in batch if "content" not in item], tokens)
    if not items:
        yield TurnPart([], [], 0)


def in_batches(
    items: Iterable[Json], *, most_items: int = _MOST_ITEMS, most_tokens: int = _MOST_TOKENS
) -> Iterator[tuple[list[Json], int]]:
    """Yield messages, calls or documents in order, as many together as one request takes, with their tokens at most."""
    batch: list[Json] = []
    tokens = chars = 0
    for item in items:
        texts = [_as_text(item[name]) for name in ("content", "arguments", "result") if item.get(name)]
        added, added_chars = sum(map(language_tokens, texts)), sum(map(len, texts))
        is_full = len(batch) == most_items or tokens + added > most_tokens or chars + added_chars > _MOST_CHARS
        if batch and is_full:
            yield batch, tokens
            batch, tokens, chars = [], 0, 0
        batch.append(item)
        tokens, chars = tokens + added, chars + added_chars
    if batch:
        yield batch, tokens


def is_blank(text: str) -> bool:
    """Report whether a text shows nothing, which is refused as a question and as a message."""
    return all(unicodedata.category(char) in _INVISIBLE for char in text)


def storable(text: str) -> str:
    """Return a text without NUL and halves of characters, which no message may hold."""
    return text.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def fitting_question(text: str) -> str:
    """Return the end of a question as it may be asked; nothing of one that shows nothing."""
    asked = storable(text[-_MOST_QUESTION_CHARS:])
    return "" if is_blank(asked) else asked


def fitting_text(text: str, most_tokens: int = _MOST_TEXT_TOKENS) -> str:
    """Return a text as it may be stored; of one that is too long both ends, as much of them as fits."""
    clean = storable(text)
    if len(clean) <= MAX_CONTENT_CHARS and language_tokens(clean) <= most_tokens:
        return clean
    ends = ends_of(_visible_part(clean.strip()), MAX_CONTENT_CHARS - 1)
    return ends_within(ends, CHARS_PER_TOKEN * most_tokens, quarter_tokens)


def _visible_part(text: str) -> str:
    """Return a text without the invisible characters at its ends."""
    places = range(len(text))
    first = next((at for at in places if not is_blank(text[at])), len(text))
    last = next((at for at in reversed(places) if not is_blank(text[at])), -1)
    return text[first : last + 1]


def fitting_id(text: str) -> str:
    """Return an id or name as it is; of one that is too long or not printable the beginning and a digest."""
    clean = "".join(char for char in storable(text) if unicodedata.category(char) != "Cc")
    if clean == text and len(text) <= MAX_ID_CHARS and not is_blank(text):
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{clean[: MAX_ID_CHARS - 1 - len(digest)]}-{digest}"


def fitting_ids(values: Mapping[str, Any], *names: str) -> dict[str, str]:
    """Return those of the named values that there are, as ids that are accepted."""
    return {name: fitting_id(values[name]) for name in names if values.get(name)}


def _storable_call(call: Mapping[str, Any], most_bytes: int) -> Json:
    """Return a call of a tool with ids and texts that are accepted."""
    arguments, result = _storable_json(call.get("arguments", {})), call.get("result")
    most_tokens = _MOST_TEXT_TOKENS - _LEAST_RESULT_TOKENS
    is_large = json_bytes({"arguments": arguments}) > most_bytes or language_tokens(_as_text(arguments)) > most_tokens
    if is_large or has_more_values(arguments, _MOST_ARGUMENT_VALUES):
        most_inner = most_bytes - json_bytes({"arguments": ""})
        ends = ends_within(_as_text(arguments), most_inner, lambda part: json_bytes(part) - len('""'))
        arguments = fitting_text(ends, most_tokens)
    left = max(_LEAST_RESULT_TOKENS, _MOST_TEXT_TOKENS - language_tokens(_as_text(arguments)))
    texts = {"result": fitting_text(result, left)} if isinstance(result, str) else {}
    return {**call, "arguments": arguments, **fitting_ids(call, "id", "name"), **texts}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _storable_json(value: Any, levels: int = _MOST_LEVELS) -> Any:
    match value:
        case str():
            return storable(value)
        case dict() | list() | tuple() if levels == 0:
            return "…"
        case dict():
            return {storable(str(name)): _storable_json(item, levels - 1) for name, item in value.items()}
        case list() | tuple():
            return [_storable_json(item, levels - 1) for item in value]
        case None | bool() | int() | float() if not isinstance(value, float) or math.isfinite(value):
            return value
        case _:
            return storable(str(value))
