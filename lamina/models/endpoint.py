"""An embedding model behind an endpoint of OpenAI's form (`POST /embeddings`)."""

import re
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from lamina.core.ports import Clock, ModelReport
from lamina.errors import ModelLimit, TextRefused, Unavailable
from lamina.models.prefixes import endpoint_identity, prefixes_of
from lamina.models.retrying import MAY_BE_CHARGED, EndpointClient
from lamina.models.token_budget import TokenBudget
from lamina.settings.models import EndpointSettings
from lamina.text.parts import parts

PART = "embedder"
BYTES_PER_TOKEN = 3
"""Byte-pair vocabularies need a token for four letters of English, and one or two for a character of three bytes."""
_NOT_THE_FORM = "its endpoint's answer is no list of embeddings, one for each text"
_BLANK = re.compile(r"\s*")


class EndpointModel:
    """Embeds by HTTP; blocking and thread-safe.

    Args:
        settings: The endpoint, its model, and the limits of a call.
        clock: The time of day, for the daily budget.
    """

    def __init__(self, settings: EndpointSettings, clock: Clock) -> None:
        self._settings = settings
        self._client = EndpointClient(PART, f"{settings.url.rstrip('/')}/embeddings", settings)
        self._budget = TokenBudget(settings.daily_tokens, clock)
        self._lock = Lock()
        self.identity = endpoint_identity(settings)
        self.pass_tokens = settings.batch_tokens
        self.passes_at_once = settings.max_concurrency
        self.report = ModelReport(
            model=self.identity.model,
            dimension=self.identity.dimension,
            runtime="endpoint",
            precision="float32",
            device=urlsplit(settings.url).hostname or "",
            checked=None,
            may_be_mixed=False,
        )

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit row a text, float32; a blank text, which endpoints refuse, points along the first axis.

        Raises:
            Unavailable: If the endpoint does not answer in time, or answers something else.
            ModelLimit: If its limit is reached, or the day's budget is spent.
            TextRefused: If it refuses these texts, or has no vector of one.
        """
        rows = np.zeros((len(texts), self.identity.dimension), dtype=np.float32)
        rows[:, 0] = 1
        asked = [number for number, text in enumerate(texts) if not _BLANK.fullmatch(text)]
        for batch in self._batches(asked, self.lengths(texts)):
            rows[batch] = self._ask([texts[number] for number in batch])
        return rows

    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Cut a long text at its paragraphs, sentences and words, by an estimate that errs high."""
        room = self._settings.text_tokens - self.lengths([prefixes_of(self._settings).longest])[0]
        stretches = parts(text, 0, len(text), room * BYTES_PER_TOKEN)
        return [span for begin, end in stretches for span in _fit(text, begin, end, room)]

    def lengths(self, texts: Sequence[str]) -> Sequence[int]:
        """Estimate the tokens of each text."""
        return [1 + len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN for text in texts]

    def _batches(self, numbers: Sequence[int], tokens: Sequence[int]) -> Iterator[list[int]]:
        batch: list[int] = []
        total = 0
        for number in numbers:
            is_full = len(batch) == self._settings.batch_texts or total + tokens[number] > self._settings.batch_tokens
            if batch and is_full:
                yield batch
                batch, total = [], 0
            batch.append(number)
            total += tokens[number]
        if batch:
            yield batch

    def _ask(self, texts: Sequence[str]) -> NDArray[np.float32]:
        cost = sum(self.lengths(texts))
        with self._lock:
            if not self._budget.take(cost):
                raise ModelLimit(PART, "the tokens of the day (embedding.daily_tokens) are spent", retry_after_s=3_600)
        used = cost
        try:
            answer = self._client.post(self._body(texts))
            used = _used_tokens(answer, cost)
        except Unavailable as error:
            used = cost if error.reason in MAY_BE_CHARGED else 0
            raise
        finally:
            with self._lock:
                self._budget.settle(cost, used)
        return self._rows(answer, len(texts))

    def _body(self, texts: Sequence[str]) -> dict[str, Any]:
        chosen = self._settings
        shortened = {"dimensions": chosen.dimensions} if chosen.sends_dimensions else {}
        return {"model": chosen.model, "input": list(texts), "encoding_format": "float", **shortened}

    def _rows(self, answer: Any, count: int) -> NDArray[np.float32]:
        try:
            placed = {int(item["index"]): item["embedding"] for item in answer["data"]}
            found = [np.asarray(placed[number], dtype=np.float32) for number in range(count)]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise Unavailable(PART, _NOT_THE_FORM) from error
        wrong = next((row.shape for row in found if row.shape != (self.identity.dimension,)), None)
        if wrong is not None or len(placed) != count:
            got = f"vectors of {wrong[0]} numbers" if wrong and len(wrong) == 1 else "something else"
            raise Unavailable(
                PART, f"its endpoint answers {got} for {count} texts, embedding.dimensions is {self.identity.dimension}"
            )
        rows = np.stack(found)
        with np.errstate(over="ignore"):
            norms = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
        if not np.isfinite(norms).all() or not norms.all():
            raise TextRefused(PART, "its endpoint answers a vector without a direction")
        unit: NDArray[np.float32] = (rows / norms).astype(np.float32)
        return unit


def _fit(text: str, start: int, end: int, most_tokens: int) -> Iterator[tuple[int, int]]:
    """Yield stretches of at most so many tokens; other scripts have fewer characters of as many bytes."""
    if len(text[start:end].encode("utf-8", "replace")) <= most_tokens * BYTES_PER_TOKEN or end - start < 2:  # noqa: PLR2004
        yield start, end
        return
    for begin, stop in parts(text, start, end, (end - start + 1) // 2):
        yield from _fit(text, begin, stop, most_tokens)


def _used_tokens(answer: Any, otherwise: int) -> int:
    usage = answer.get("usage") if isinstance(answer, dict) else None
    tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
    return tokens if isinstance(tokens, int) and tokens >= 0 else otherwise
