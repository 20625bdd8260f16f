"""Torch's vectors in float32, from a process of its own: whoever only compares does not keep torch in memory."""

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lamina.settings.models import SentenceTransformersSettings

logger = logging.getLogger(__name__)
_DEADLINE_S = 300.0


def torch_vectors(model: str, texts: Sequence[str]) -> NDArray[np.float32] | None:
    """Return one unit row a text, float32; ``None`` if torch cannot run the model, or takes five minutes."""
    # Only what this process finds by its path may be installed nowhere.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "lamina.models.torch_vectors", model]
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            command,
            input=json.dumps(list(texts)).encode(),
            capture_output=True,
            check=True,
            env=environment,
            timeout=_DEADLINE_S,
        )
    except subprocess.CalledProcessError as error:
        logger.warning("torch does not run %s: %s", model, error.stderr.decode(errors="replace")[-500:])
        return None
    except subprocess.TimeoutExpired:
        logger.warning("torch did not run %s within %.0f s", model, _DEADLINE_S)
        return None
    vectors: NDArray[np.float32] = np.load(io.BytesIO(done.stdout))
    return vectors


def main() -> None:
    """Write the vectors of the texts on standard input to standard output."""
    from lamina.models.sentence_transformers import SentenceTransformerModel  # noqa: PLC0415 - imports torch

    settings = SentenceTransformersSettings(model=sys.argv[1], runtime="torch", precision="float32")
    vectors = SentenceTransformerModel(settings, "cpu").encode(json.load(sys.stdin))
    np.save(sys.stdout.buffer, vectors)


if __name__ == "__main__":
    main()
