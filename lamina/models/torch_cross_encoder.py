"""A cross-encoder that sentence-transformers loads, by name or folder, with the extra gpu."""

import os
from collections.abc import Sequence

from lamina.errors import Misconfigured
from lamina.host.extras import needing


class TorchCrossEncoder:
    """Scores pairs of texts; blocking.

    Args:
        model: Folder, or name in the local cache of the hub.
        device: ``cpu`` or ``cuda``.
        batch_size: Most pairs of one pass.
        max_length: Most word pieces of a pair; ``None`` takes the model's own.

    Raises:
        Misconfigured: If torch is missing, or the model cannot be loaded.
    """

    def __init__(self, model: str, device: str, *, batch_size: int, max_length: int | None) -> None:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        with needing("gpu", f"rerank.model {model} runs on torch"):
            from sentence_transformers import CrossEncoder  # noqa: PLC0415 - seconds of import
        try:
            self._model = CrossEncoder(model, device=device, max_length=max_length)
        except (OSError, ValueError) as error:
            raise Misconfigured(f"rerank.model {model} cannot be loaded: {error}", "correct it") from error
        self._batch_size = batch_size

    def score(self, pairs: Sequence[tuple[str, str]]) -> Sequence[float]:
        """Return the model's score of each pair."""
        found = self._model.predict(list(pairs), batch_size=self._batch_size, show_progress_bar=False)
        return [float(score) for score in found]
