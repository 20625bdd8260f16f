"""Graphs that were made, each in a folder named after its sources."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import onnx  # It makes numpy know bfloat16, which safetensors reads then.
from safetensors import SafetensorError
from safetensors.numpy import load_file

from lamina.errors import Misconfigured
from lamina.host.private_files import make_private
from lamina.models.onnx.folder import OTHERWISE, EncoderFolder
from lamina.models.onnx.graph import GRAPH_VERSION, make_graph, read_encoder
from lamina.models.onnx.quantised import quantise

GRAPH_FILE, _WEIGHTS_FILE, _ORIGIN_FILE = "encoder.onnx", "weights.bin", "origin.json"
_DRAFT = "draft-"

Check = Callable[[Path, str], str]
"""Compares a graph's vectors with those of its origin; returns how it was checked, or raises."""


def made_graph(
    folder: EncoderFolder, graphs: Path, check: Check, *, precision: Literal["float32", "int8"]
) -> tuple[Path, str]:
    """Return the file of a model's graph and how it was checked; make it if there is none of these weights yet.

    Another process that makes the same at the same time does no harm: the first to end is used.

    Args:
        folder: The model.
        graphs: Folder of all graphs, made where it is missing.
        check: Is called once, before the graph is used by anything else.
        precision: Of the products; each has a folder of its own.

    Raises:
        Misconfigured: If no graph can be made of such a model, or its vectors are others than the recorded ones.
    """
    origin = origin_of(folder)
    model = [origin, folder.config, precision]
    parts = json.dumps([GRAPH_VERSION, *model], sort_keys=True)
    made = graphs / hashlib.sha256(parts.encode()).hexdigest()[:32]
    if not made.is_dir():
        make_private(graphs)
        draft = Path(tempfile.mkdtemp(prefix=_DRAFT, dir=graphs))
        try:
            graph = _graph_of(folder)
            # Weights beside the graph are mapped, not read; and a graph with them inside ends at 2 GB.
            onnx.save_model(
                quantise(graph) if precision == "int8" else graph,
                str(draft / GRAPH_FILE),
                save_as_external_data=True,
                location=_WEIGHTS_FILE,
            )
            checked = check(draft / GRAPH_FILE, origin)
            (draft / _ORIGIN_FILE).write_text(json.dumps({"made_from": parts, "checked": checked}))
            _publish(draft, made)
            _remove_older(graphs, model)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return made / GRAPH_FILE, str(json.loads((made / _ORIGIN_FILE).read_text())["checked"])


def _graph_of(folder: EncoderFolder) -> onnx.ModelProto:
    encoder = read_encoder(folder.config)
    try:
        return make_graph(encoder, {name: row for file in folder.weights for name, row in load_file(file).items()})
    except KeyError as error:
        raise Misconfigured(f"the model in {folder.transformer} has no weights {error}", OTHERWISE) from error
    except SafetensorError as error:
        raise Misconfigured(f"the weights in {folder.transformer} cannot be read: {error}", "save them anew") from error


def origin_of(folder: EncoderFolder) -> str:
    """Return the weights' SHA-256 and how the folder uses them: models of equal origin have equal vectors."""
    return json.dumps([_digest(folder.weights), *folder.layout])


def _publish(draft: Path, made: Path) -> None:
    try:
        draft.rename(made)
    except OSError:
        if not made.is_dir():
            raise


def _remove_older(graphs: Path, model: list[Any]) -> None:
    """Delete the graphs of the same model by earlier releases; a process that has one open keeps its mapped files."""
    for file in graphs.glob(f"*/{_ORIGIN_FILE}"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            version, *of = json.loads(json.loads(file.read_text())["made_from"])
            if version < GRAPH_VERSION and of == model:
                # Of another name first: what is removed in part must not be found.
                shutil.rmtree(file.parent.rename(file.parent.with_name(f"{_DRAFT}{file.parent.name}")))


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return digest.hexdigest()
