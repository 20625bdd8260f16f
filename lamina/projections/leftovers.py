"""Stores that hold memories and that no service feeds any more."""

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from lamina.core.erasures import Remnant
from lamina.core.tiers import PROJECTIONS
from lamina.projections.locations import index_path
from lamina.settings.loading import Settings, store_settings
from lamina.settings.stores import EmbeddedFalkorDBSettings, FalkorDBServerSettings, QdrantEdgeSettings
from lamina.stores.postgres.erasures import FormerStore
from lamina.stores.postgres.generations import Generation

# Set aside by a start that could not read them, for somebody to look at.
_SET_ASIDE = re.compile(r"\.(format-\d+|unreadable)$")
_EDGE, _GRAPH = "edge", "graph"
_ENDS = "when you remove it; no service reads it"


def remove_leftovers(settings: Settings, generation: Generation, former: Sequence[FormerStore]) -> list[Remnant]:
    """Remove the files set aside in the data directory, and name every other store that is not used; blocks.

    Files that cannot be removed are named, too.

    Indexes of another generation of vectors, and stores that the configuration does not name, may belong to a service
    that still runs or is to come back: they are named.

    Args:
        settings: Where projections are kept now.
        generation: The generation of vectors that is searched.
        former: Where they were kept before.
    """
    data_dir = settings.data_dir.resolve()
    aside = list(_set_aside(data_dir))
    for path in aside:
        shutil.rmtree(path, ignore_errors=True)
    still_there = (path for path in aside if path.exists())
    unused = sorted({*still_there, *_unused(settings, generation, data_dir)})
    here = [Remnant(f"{path.relative_to(data_dir)}/*", "memories in a store without use", _ENDS) for path in unused]
    elsewhere = [store for store in former if _is_elsewhere(store, data_dir)]
    return here + [
        Remnant(store.place, f"what {store.projection} held until {store.left_at:%Y-%m-%d}", _ENDS)
        for store in elsewhere
    ]


def _set_aside(data_dir: Path) -> Iterator[Path]:
    for folder in (data_dir, data_dir / _EDGE):
        if folder.is_dir():
            yield from (path for path in folder.iterdir() if path.is_dir() and _SET_ASIDE.search(path.name))


def _unused(settings: Settings, generation: Generation, data_dir: Path) -> Iterator[Path]:
    """Yield folders of embedded stores that the settings do not choose."""
    used = {
        index_path(settings, name, generation).name
        for name in PROJECTIONS
        if isinstance(store_settings(settings, name), QdrantEdgeSettings)
    }
    if (data_dir / _EDGE).is_dir():
        folders = (path for path in (data_dir / _EDGE).iterdir() if path.is_dir() and not path.name.startswith("new-"))
        yield from (path for path in folders if path.name.partition(".")[0] not in used)
    if (data_dir / _GRAPH).is_dir() and not _has_embedded_graph(settings):
        yield data_dir / _GRAPH


def _has_embedded_graph(settings: Settings) -> bool:
    """Report whether `lamina up` runs the graph: it then hands the address of its socket to the application."""
    match settings.graph:
        case EmbeddedFalkorDBSettings():
            return True
        case FalkorDBServerSettings(url=url):
            return url.startswith("unix:")
        case _:
            return False


def _is_elsewhere(store: FormerStore, data_dir: Path) -> bool:
    """Report whether a former store is none of those that were looked for in the data directory."""
    kind, _, place = store.place.partition(" ")
    if kind == "qdrant_edge":
        path = Path(place.partition(" ")[2])
        return path.is_dir() and not path.is_relative_to(data_dir)
    return kind not in {"embedded", "off"}
