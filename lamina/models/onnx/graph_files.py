"""Graphs that were made, each in a folder named after its sources."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import onnx  # It makes numpy know bfloat16, which safetensors reads then.
from safetensors.numpy import load_file

from lamina.models.onnx.folder import EncoderFolder
from lamina.models.onnx.graph import GRAPH_VERSION, make_graph, read_encoder
from lamina.private_files import make_private

GRAPH_FILE, _WEIGHTS_FILE, _ORIGIN_FILE = "encoder.onnx", "weights.bin", "origin.json"

Check = Callable[[Path, str], str]
"""Compares a graph's vectors with recorded ones of these weights; returns how it was checked, or raises."""


def made_graph(folder: EncoderFolder, graphs: Path, check: Check) -> tuple[Path, str]:
    """Return the file of a model's graph and how it was checked; make it if there is none of these weights yet.

    Another process that makes the same at the same time does no harm: the first to end is used.

    Args:
        folder: The model.
        graphs: Folder of all graphs, made where it is missing.
        check: Is called once, before the graph is used by anything else.

    Raises:
        Misconfigured: If no graph can be made of such a model, or its vectors are others than the recorded ones.
    """
    encoder = read_encoder(folder.config)
    weights = _digest(folder.weights)
    fingerprint = hashlib.sha256(json.dumps([GRAPH_VERSION, weights, folder.config], sort_keys=True).encode())
    made = graphs / fingerprint.hexdigest()[:32]
    if not made.is_dir():
        make_private(graphs)
        draft = Path(tempfile.mkdtemp(prefix="draft-", dir=graphs))
        try:
            # Weights beside the graph are mapped, not read; and a graph with them inside ends at 2 GB.
            onnx.save_model(
                make_graph(encoder, load_file(folder.weights)),
                str(draft / GRAPH_FILE),
                save_as_external_data=True,
                location=_WEIGHTS_FILE,
            )
            origin = {"version": GRAPH_VERSION, "weights": weights, "checked": check(draft / GRAPH_FILE, weights)}
            (draft / _ORIGIN_FILE).write_text(json.dumps(origin))
            _publish(draft, made)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    origin_of: Mapping[str, Any] = json.loads((made / _ORIGIN_FILE).read_text())
    return made / GRAPH_FILE, str(origin_of["checked"])


def _publish(draft: Path, made: Path) -> None:
    try:
        draft.rename(made)
    except OSError:
        if not made.is_dir():
            raise


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
