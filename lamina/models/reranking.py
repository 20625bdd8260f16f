"""Rerankers: a cross-encoder in this process, or an endpoint."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

from lamina.aio.coalescing import Coalescer
from lamina.errors import Unavailable
from lamina.models.retrying import EndpointClient
from lamina.settings.models import RerankEndpointSettings

PART = "reranker"
MOST_CALLS = 16
MOST_WAITING = 256
Pair = tuple[str, str]
RerankCall = tuple[str, tuple[str, ...]]
_NOT_THE_FORM = "its endpoint's answer is no list of scores, one for each text"


class PairModel(Protocol):
    """A cross-encoder in this process; slow, blocking and thread-safe."""

    def score(self, pairs: Sequence[Pair]) -> Sequence[float]:
        """Return a score for each question with a text: logits or probabilities, more is better."""
        ...


class BatchingReranker:
    """Runs a blocking model in a thread; calls that come while it works are in its next pass together.

    Args:
        model: The model.
    """

    def __init__(self, model: PairModel) -> None:
        self._model = model
        self._calls: Coalescer[RerankCall, Sequence[float]] = Coalescer(
            self._pass, part=PART, max_items=MOST_CALLS, max_in_flight=1, max_queued=MOST_WAITING, is_sent_singly=True
        )

    async def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Return the model's score of each text.

        Raises:
            Overloaded: If too many calls wait.
        """
        return await self._calls.submit((question, tuple(texts)))

    async def _pass(self, calls: Sequence[RerankCall]) -> list[Sequence[float]]:
        pairs = [(question, text) for question, texts in calls for text in texts]
        scores = iter(await asyncio.to_thread(self._model.score, pairs))
        return [[next(scores) for _ in texts] for _, texts in calls]


class EndpointReranker:
    """Asks an endpoint of the form of Cohere, Jina or Text Embeddings Inference (`POST /rerank`).

    Args:
        settings: The endpoint and its form.
    """

    def __init__(self, settings: RerankEndpointSettings) -> None:
        self._settings = settings
        self._client = EndpointClient(PART, f"{settings.url.rstrip('/')}/rerank", settings)
        self._places = asyncio.Semaphore(settings.max_concurrency)

    async def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Return the endpoint's score of each text.

        Raises:
            Unavailable: If it does not answer, or answers something else.
        """
        async with self._places:
            answer = await asyncio.to_thread(partial(self._client.post, self._body(question, texts)))
        return read_scores(answer, len(texts))

    def _body(self, question: str, texts: Sequence[str]) -> dict[str, Any]:
        if self._settings.form == "tei":
            return {"query": question, "texts": list(texts), "truncate": True}
        model = {"model": self._settings.model} if self._settings.model else {}
        return {**model, "query": question, "documents": list(texts), "top_n": len(texts)}


def read_scores(answer: Any, count: int) -> list[float]:
    """Return the score of each text, in the texts' order.

    Raises:
        Unavailable: If the answer has another form, or lacks a text.
    """
    listed: Any = answer.get("results", answer.get("data")) if isinstance(answer, dict) else answer
    try:
        found = {int(item["index"]): float(item.get("relevance_score", item.get("score"))) for item in listed}
        return [found[place] for place in range(count)]
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise Unavailable(PART, _NOT_THE_FORM) from error
