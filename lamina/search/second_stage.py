"""Ask a reranker for the order of the best hits; without its answer the first order stands."""

import time
from collections.abc import Sequence

from lamina.aio.circuit_breaker import CircuitBreaker
from lamina.core.metrics import RERANK_SECONDS, RERANKS, UNMEASURED, CallOutcome, Meter
from lamina.core.ports import Reranker
from lamina.core.queries import FusedHit, Memory, RerankerState
from lamina.errors import LaminaError, Overloaded, Unavailable, describe_error
from lamina.policies.ranking.reranking import probabilities, reorder

RERANKER = "reranker"


class SecondStage:
    """Reranks the first hits of a search.

    Args:
        reranker: Reads a question with each text.
        pool: Most hits that it reads.
        breaker: Its deadline; after several failures in a row it is left out for a while.
        meter: Records how each call ended, and how long it took.
    """

    def __init__(self, reranker: Reranker, *, pool: int, breaker: CircuitBreaker, meter: Meter = UNMEASURED) -> None:
        self._reranker = reranker
        self._breaker = breaker
        self._meter = meter
        self.pool = pool

    @property
    def state(self) -> RerankerState:
        """Whether the next search asks it, or it is left out for a while after its failures."""
        return "paused" if self._breaker.refuses else "ok"

    async def rerank(self, question: str, hits: Sequence[FusedHit]) -> tuple[tuple[FusedHit, ...], dict[str, str]]:
        """Return the hits in the reranker's order, or as they were, and then the reason by the reranker's name."""
        pool = hits[: self.pool]
        if not pool:
            return tuple(hits), {}
        began, outcome = time.monotonic(), CallOutcome.FAILED
        try:
            raw = await self._breaker.call(lambda: self._scores(question, [_text(hit.memory) for hit in pool]))
            outcome = CallOutcome.OK
        except Overloaded as error:  # It was not asked: its breaker is open, or its queue full.
            outcome = CallOutcome.REFUSED
            return tuple(hits), {RERANKER: describe_error(error)}
        except LaminaError as error:
            return tuple(hits), {RERANKER: describe_error(error)}
        except Exception as error:  # noqa: BLE001 - the first order is an answer; another error may quote a text
            return tuple(hits), {RERANKER: f"it failed with {type(error).__name__}"}
        finally:
            self._meter.record(RERANKS, outcome=outcome)
            if outcome is not CallOutcome.REFUSED:
                self._meter.record(RERANK_SECONDS, time.monotonic() - began)
        scores = probabilities(raw)
        assert scores is not None  # noqa: S101 - checked where a failure counts
        return reorder(hits, raw, scores), {}

    async def _scores(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        raw = await self._reranker.score(question, texts)
        if len(raw) != len(texts) or probabilities(raw) is None:
            raise Unavailable(RERANKER, f"it answers no finite score for each of {len(texts)} texts")
        return raw


def _text(memory: Memory) -> str:
    """Return a memory's text with its title or speaker, without which a short one says little."""
    before = memory.title or memory.name
    return f"{before}: {memory.content}" if before else memory.content
