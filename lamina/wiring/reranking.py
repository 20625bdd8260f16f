"""Builders of the second stage."""

from pathlib import Path
from typing import assert_never

from lamina.aio.circuit_breaker import BreakerPolicy, CircuitBreaker
from lamina.core.metrics import UNMEASURED, Meter
from lamina.core.ports import Reranker
from lamina.errors import Misconfigured
from lamina.host.extras import needing
from lamina.models.packaged import model_folder
from lamina.models.processors import model_threads
from lamina.models.runtimes import is_torch_installed
from lamina.search.second_stage import RERANKER, SecondStage
from lamina.settings.loading import Settings
from lamina.settings.models import CrossEncoderSettings, NoRerankSettings, RerankEndpointSettings


def build_second_stage(settings: Settings, reranker: Reranker | None, meter: Meter = UNMEASURED) -> SecondStage | None:
    """Build the second stage of searches over any reranker; ``None`` where it is off."""
    chosen = settings.rerank
    if reranker is None or isinstance(chosen, NoRerankSettings):
        return None
    breaker = CircuitBreaker(RERANKER, BreakerPolicy(chosen.deadline_s, chosen.failures, chosen.pause_s))
    return SecondStage(reranker, pool=chosen.pool, breaker=breaker, meter=meter)


def build_reranker(settings: Settings, device: str) -> Reranker | None:
    """Build the reranker that the settings choose, loaded on ``cpu`` or ``cuda``; ``None`` where it is off.

    Raises:
        Misconfigured: If its model is missing, or nothing that is installed runs it.
    """
    from lamina.models.reranking import BatchingReranker, EndpointReranker  # noqa: PLC0415 - imports an HTTP client

    match settings.rerank:
        case NoRerankSettings():
            return None
        case RerankEndpointSettings() as endpoint:
            return EndpointReranker(endpoint)
        case CrossEncoderSettings() as chosen:
            if _runs_on_torch(chosen):
                from lamina.models.torch_cross_encoder import TorchCrossEncoder  # noqa: PLC0415 - imports torch

                return BatchingReranker(
                    TorchCrossEncoder(chosen.model, device, batch_size=chosen.batch_size, max_length=chosen.max_length)
                )
            with needing("model", f"rerank.runtime is {chosen.runtime}"):
                from lamina.models.onnx.cross_encoder import OnnxCrossEncoder  # noqa: PLC0415 - not every process ranks
            threads = model_threads(chosen.threads)
            return BatchingReranker(
                OnnxCrossEncoder(
                    _folder(chosen),
                    device,
                    batch_size=chosen.batch_size,
                    max_length=chosen.max_length,
                    threads=threads,
                )
            )
        case _ as other:
            assert_never(other)


def _runs_on_torch(chosen: CrossEncoderSettings) -> bool:
    if chosen.runtime != "auto":
        return chosen.runtime == "torch"
    folder = Path(chosen.model)
    has_graph = any(folder.glob("*.onnx")) or any(folder.glob("onnx/*.onnx"))
    return is_torch_installed() and not has_graph


def _folder(chosen: CrossEncoderSettings) -> Path:
    try:
        return model_folder(chosen.model)
    except Misconfigured as error:
        raise Misconfigured(
            f"rerank.model {chosen.model} is neither a folder nor in the local cache of the hub", error.remedy
        ) from error
