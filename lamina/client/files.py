"""Files as documents to upload."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from lamina.client.calls import Json
from lamina.core.media_types import is_known, media_type_of
from lamina.errors import InvalidInput
from lamina.text.hygiene import MAX_ID_CHARS
from lamina.text.words import content_hash

BATCH_FILES = 32
# Of text, which a model that reads 2 000 tokens a second embeds in 25 s: what is cut off is sent whole again.
BATCH_BYTES = 200_000


def files_of(paths: Iterable[Path]) -> list[Path]:
    """Return the files, and those of a known kind in the folders, each once.

    Raises:
        InvalidInput: If a path does not exist.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise InvalidInput("file", f"{path} does not exist")
        inside = sorted(item for item in path.rglob("*") if item.is_file() and is_known(item.name))
        found.update(dict.fromkeys(inside if path.is_dir() else [path]))
    return list(found)


def upload_batches(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Yield the files in groups that fit into one request; a larger one goes alone."""
    batch: list[Path] = []
    size = 0
    for path in paths:
        weight = path.stat().st_size
        if batch and (len(batch) == BATCH_FILES or size + weight > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(path)
        size += weight
    if batch:
        yield batch


def document_of_file(path: Path) -> Json:
    """Return a file as an item of :meth:`Client.add_documents`; its path is its key, its time of change its time."""
    return {
        "key": key_of(path),
        "content": path.read_bytes(),
        "media_type": media_type_of(path.name),
        "occurred_at": datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(),
        "source": path.name,
    }


def key_of(path: Path) -> str:
    """Return the absolute path, or where that is no id a hash of it."""
    name = str(path.resolve())
    return name if len(name) <= MAX_ID_CHARS and name.isprintable() else content_hash(name).hex()
