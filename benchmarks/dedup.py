"""Near-duplicates of real texts: recall and speed of the exact join, beside MinHash.

Two texts are near when the Jaccard similarity of their runs of five characters, in lower case and with white space
squeezed, is at least 0.85. Every such pair was found beforehand by comparing all with all.

Source:
    The folder holds two sets: package descriptions of Debian's archive, and messages of chat channels of Ubuntu. Of
    each `NAME.jsonl.gz` has one `{"id", "text"}` a line, and `NAME.c5.t085.pairs.tsv`, which may be compressed, the
    two ids and the similarity of one pair a line. The peer is datasketch (Zhu, 2015): MinHash of 128 permutations,
    bands for 0.70, and its candidates compared on the same runs.
"""

import gzip
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.table import Table

from benchmarks.report import publish, stage, table
from benchmarks.shingles import shingled
from lamina.errors import Misconfigured
from lamina.policies.retention.set_join import SetJoin

NAMES = ("debian_descriptions", "irc_messages_50k")
SIZE = 5
THRESHOLD = 0.85
PERMUTATIONS = 128
BANDS_FOR = 0.70
MAX_TIME_RATIO = 1 / 3

Json = dict[str, Any]
# Places of two texts, the smaller first, shape (n, 2), each pair once.
Pairs = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Texts, and which of them are near."""

    name: str
    texts: tuple[str, ...]
    near: Pairs


@dataclass(frozen=True, slots=True)
class PairsFound:
    """The pairs that one method found, and its seconds.

    Args:
        right: How many of the pairs found are near.
        total: How many were found.
        near: How many there are.
    """

    right: int
    total: int
    near: int
    elapsed_s: float

    @property
    def recall(self) -> float:
        """Share of the near pairs that were found."""
        return self.right / self.near if self.near else 1.0

    @property
    def precision(self) -> float:
        """Share of near pairs among those found."""
        return self.right / self.total if self.total else 1.0

    def __add__(self, other: "PairsFound") -> "PairsFound":
        return PairsFound(
            self.right + other.right,
            self.total + other.total,
            self.near + other.near,
            self.elapsed_s + other.elapsed_s,
        )


# What Lamina found, and what the peer found.
Measured = tuple[PairsFound, PairsFound]


def measure(
    data: Annotated[Path, typer.Option("--data", help="Folder of the texts and their near pairs.")],
) -> None:
    """Measure recall, precision and time of the exact join beside datasketch's MinHash."""
    peer = _datasketch()
    measured = {name: _measured(read(data, name), peer) for name in NAMES}
    publish([_shown(measured)], figures(measured))


def read(folder: Path, name: str) -> Corpus:
    """Return a set of texts with its near pairs.

    Raises:
        Misconfigured: If a file is missing.
    """
    rows = [json.loads(line) for line in _lines(folder, f"{name}.jsonl")]
    place = {row["id"]: number for number, row in enumerate(rows)}
    near = [[place[id_] for id_ in line.split("\t")[:2]] for line in _lines(folder, f"{name}.c5.t085.pairs.tsv")]
    return Corpus(name, tuple(row["text"] for row in rows), _pairs(near))


def _lines(folder: Path, name: str) -> Iterator[str]:
    plain, compressed = folder / name, folder / f"{name}.gz"
    if compressed.exists():
        with gzip.open(compressed, "rt", encoding="utf-8") as lines:
            yield from lines
    elif plain.exists():
        with plain.open(encoding="utf-8") as lines:
            yield from lines
    else:
        raise Misconfigured(f"{folder} has no {name}, compressed or not", "name the folder of the texts with --data")


def _pairs(pairs: Sequence[Sequence[int]]) -> Pairs:
    return np.unique(np.sort(np.array(pairs, dtype=np.int64).reshape(-1, 2), axis=1), axis=0)


def _measured(corpus: Corpus, peer: Callable[[Sequence[str]], Pairs]) -> Measured:
    ours, theirs = _judged(corpus, joined), _judged(corpus, peer)
    stage(f"{corpus.name}: {len(corpus.texts)} texts, {len(corpus.near)} near pairs")
    return ours, theirs


def _judged(corpus: Corpus, find: Callable[[Sequence[str]], Pairs]) -> PairsFound:
    begin = time.perf_counter()
    found = find(corpus.texts)
    elapsed_s = time.perf_counter() - begin
    both = np.concatenate((_pairs(found.tolist()), corpus.near))
    right = len(both) - len(np.unique(both, axis=0))
    return PairsFound(right, len(both) - len(corpus.near), len(corpus.near), elapsed_s)


def squeezed(text: str) -> str:
    """Return the text as it is compared: in lower case, each white space one blank, none at the ends."""
    return " ".join(text.lower().split())


def joined(texts: Sequence[str]) -> Pairs:
    """Return the near pairs as Lamina finds them."""
    return np.stack(SetJoin(shingled([squeezed(text) for text in texts], SIZE), THRESHOLD).near(), axis=1)


def _datasketch() -> Callable[[Sequence[str]], Pairs]:
    """Return the peer.

    Raises:
        Misconfigured: If it is not installed.
    """
    try:
        module = import_module("datasketch")
    except ModuleNotFoundError as error:
        raise Misconfigured(
            "datasketch is not installed", "install the development group: pip install --group dev"
        ) from error
    return lambda texts: _sketched(module, texts)


def _sketched(datasketch: Any, texts: Sequence[str]) -> Pairs:
    """Return the near pairs among the candidates of MinHash; it works on bytes, the comparison on text."""
    runs = [_runs(squeezed(text)) for text in texts]
    sketches = datasketch.MinHash.bulk([[run.encode() for run in some] for some in runs], num_perm=PERMUTATIONS)
    bands = datasketch.MinHashLSH(threshold=BANDS_FOR, num_perm=PERMUTATIONS)
    near = []
    for number, sketch in enumerate(sketches):
        near += [(other, number) for other in bands.query(sketch) if _jaccard(runs[other], runs[number]) >= THRESHOLD]
        bands.insert(number, sketch)
    return np.array(near, dtype=np.int64).reshape(-1, 2)


def _runs(text: str) -> frozenset[str]:
    return frozenset(text[start : start + SIZE] for start in range(max(1, len(text) - SIZE + 1)))


def _jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    common = len(first & second)
    return common / (len(first) + len(second) - common)


def figures(measured: Mapping[str, Measured]) -> Json:
    """Return the figures over all sets together, each set's under its name, and whether they are within the limits."""
    both = _figures(*_together(measured))
    is_ok = both["recall"] == both["precision"] == 1 and both["time_ratio_to_datasketch"] <= MAX_TIME_RATIO
    limits = {"recall": 1.0, "precision": 1.0, "time_ratio_to_datasketch": MAX_TIME_RATIO}
    return {**both, "ok": is_ok, "limits": limits, **{name: _figures(*found) for name, found in measured.items()}}


def _together(measured: Mapping[str, Measured]) -> Measured:
    nothing = PairsFound(0, 0, 0, 0.0)
    ours, theirs = zip(*measured.values(), strict=True)
    return sum(ours, nothing), sum(theirs, nothing)


def _figures(ours: PairsFound, theirs: PairsFound) -> Json:
    return {
        "pairs": ours.near,
        "recall": ours.recall,
        "precision": ours.precision,
        "seconds": ours.elapsed_s,
        "datasketch_recall": theirs.recall,
        "datasketch_precision": theirs.precision,
        "datasketch_seconds": theirs.elapsed_s,
        "time_ratio_to_datasketch": ours.elapsed_s / theirs.elapsed_s,
    }


def _shown(measured: Mapping[str, Measured]) -> Table:
    title = (
        f"Pairs with Jaccard of at least {THRESHOLD} on runs of {SIZE} characters; the ratio is to datasketch's time"
    )
    shown = table(title, "texts", "by", "pairs found", "recall", "precision", "seconds", "ratio")
    for name, (ours, theirs) in {**measured, "together": _together(measured)}.items():
        for who, found in (("lamina", ours), ("datasketch", theirs)):
            shown.add_row(
                name,
                who,
                str(found.total),
                f"{found.recall:.4f}",
                f"{found.precision:.4f}",
                f"{found.elapsed_s:.2f}",
                f"{found.elapsed_s / theirs.elapsed_s:.3f}",
            )
    return shown
