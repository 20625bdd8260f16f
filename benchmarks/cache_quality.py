"""How often near questions really want the same answer: labelled pairs, by threshold, without and with the guard.

Source:
    Quora Question Pairs, of which all-MiniLM-L6-v2 saw a part in training, so that its figures are flattered. The
    folder holds `qqp_pairs_*.jsonl.gz`, one `{"text_a", "text_b", "label"}` a line. Who labelled them chose pairs
    that look alike: every negative is a hard one.
"""

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from benchmarks.report import stage, table
from lamina.embedding.sentence_transformers import SentenceTransformerModel
from lamina.errors import Misconfigured
from lamina.lifecycle.same_question import is_same_question
from lamina.settings import SentenceTransformersSettings

THRESHOLDS = (0.85, 0.92, 0.95, 0.97)
LEAST = 0.85
STEP = 0.001
TARGET_PRECISION = 0.93
BATCH = 512
SEED = 20_240_601
REFERENCE = (
    "reference of this model at 0.95, on a selection of its own: precision .955, recall .258, negatives hit .024"
)

Json = dict[str, Any]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Labelled:
    """Pairs of questions with what is known of each.

    Args:
        cosines: Of the pairs, float32, shape (n,).
        same: Whether people said that they ask the same.
        passes: Whether the guard lets them pass; false for pairs below the least threshold, which it never sees.
    """

    cosines: NDArray[np.float32]
    same: Mask
    passes: Mask

    def figures(self, threshold: float, *, guarded: bool) -> tuple[float, float, float]:
        """Return precision, recall, and the share of negatives that are hit."""
        hits = self.cosines >= threshold
        if guarded:
            hits &= self.passes
        right = int((hits & self.same).sum())
        wrong = int((hits & ~self.same).sum())
        same = int(self.same.sum())
        return right / max(1, right + wrong), right / max(1, same), wrong / max(1, self.same.size - same)


def measure_quality(folder: Path, *, sample: int | None = None) -> Json:
    """Return precision, recall and hit negatives by threshold, and what the data recommend.

    Raises:
        Misconfigured: If the folder has no pairs.
    """
    pairs = _read(folder, sample)
    stage(f"{len(pairs)} labelled pairs of questions")
    labelled = _labelled(pairs)
    figures: Json = {"pairs": len(pairs)}
    for threshold in THRESHOLDS:
        figures |= _at(labelled, threshold)
    return figures | _recommended(labelled)


def _read(folder: Path, sample: int | None) -> list[tuple[str, str, bool]]:
    files = sorted(folder.glob("qqp_pairs_*.jsonl.gz"))
    if not files:
        raise Misconfigured(f"{folder} has no qqp_pairs_*.jsonl.gz", "name the folder of the pairs with --pairs")
    pairs = [pair for file in files for pair in _pairs_of(file)]
    if sample is None:
        return pairs
    chosen = np.random.default_rng(SEED).choice(len(pairs), size=min(sample, len(pairs)), replace=False)
    return [pairs[place] for place in sorted(chosen)]


def _pairs_of(file: Path) -> Iterator[tuple[str, str, bool]]:
    with gzip.open(file, "rt") as lines:
        for row in (json.loads(line) for line in lines if line.strip()):
            yield row["text_a"], row["text_b"], bool(row["label"])


def _labelled(pairs: Sequence[tuple[str, str, bool]]) -> Labelled:
    vectors = _embedded(sorted({text for first, second, _ in pairs for text in (first, second)}, key=len))
    cosines = np.array([vectors[first] @ vectors[second] for first, second, _ in pairs], dtype=np.float32)
    near = cosines >= LEAST
    passes = [bool(is_near) and is_same_question(*pair[:2]) for is_near, pair in zip(near, pairs, strict=True)]
    return Labelled(cosines, np.array([same for _, _, same in pairs]), np.array(passes))


def _embedded(texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """Return the unit vector of each text; texts of like length come together, which wastes least."""
    model = SentenceTransformerModel(SentenceTransformersSettings(threads=2, precision="float32"), "cpu")
    vectors: dict[str, NDArray[np.float32]] = {}
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        vectors.update(zip(batch, model.encode(batch), strict=True))
        if start % (BATCH * 50) == 0:
            stage(f"{start} of {len(texts)} questions embedded")
    return vectors


def _at(labelled: Labelled, threshold: float) -> Json:
    name = f"at_{round(threshold * 100):03d}"
    figures: Json = {}
    for prefix, guarded in (("", False), ("guarded_", True)):
        precision, recall, negatives = labelled.figures(threshold, guarded=guarded)
        figures |= {
            f"{prefix}precision_{name}": precision,
            f"{prefix}recall_{name}": recall,
            f"{prefix}hard_negative_hits_{name}": negatives,
        }
    equal = _equal_recall(labelled, figures[f"recall_{name}"], threshold)
    if equal is not None:
        precision, _, negatives = labelled.figures(equal, guarded=True)
        figures |= {
            f"equal_recall_threshold_{name}": equal,
            f"equal_recall_precision_{name}": precision,
            f"false_hits_removed_at_equal_recall_{name}": _removed(figures[f"hard_negative_hits_{name}"], negatives),
        }
    return figures


def _removed(before: float, after: float) -> float | None:
    """Return the share that is gone; ``None`` where there was nothing."""
    return 1 - after / before if before else None


def _equal_recall(labelled: Labelled, recall: float, below: float) -> float | None:
    """Return the highest threshold at which the guard leaves at least this recall."""
    return next((at for at in _down_from(below) if labelled.figures(at, guarded=True)[1] >= recall), None)


def _down_from(threshold: float) -> Iterator[float]:
    yield from (float(at) for at in np.arange(threshold, LEAST, -STEP))


def _recommended(labelled: Labelled) -> Json:
    """Return the lowest threshold from which on the guarded hits are right often enough."""
    best: float | None = None
    for at in _down_from(0.995):
        if labelled.figures(at, guarded=True)[0] < TARGET_PRECISION:
            break
        best = at
    if best is None:
        return {"recommended_threshold": None}
    precision, recall, _ = labelled.figures(best, guarded=True)
    return {"recommended_threshold": best, "recommended_precision": precision, "recommended_recall": recall}


def quality_tables(figures: Json) -> list[Table]:
    """Return the figures as people read them."""
    shown = table(
        f"Hits of the semantic cache on {figures['pairs']} labelled pairs",
        "cosine",
        "precision",
        "recall",
        "negatives hit",
        "guarded",
        "recall",
        "negatives hit",
        "equal recall",
    )
    for threshold in THRESHOLDS:
        shown.add_row(*_row(figures, threshold))
    shown.caption = (
        f"recommended: {figures['recommended_threshold']} (precision of at least {TARGET_PRECISION} with the guard); "
        f"equal recall: precision with the guard at the lower threshold that finds as many. {REFERENCE}"
    )
    return [shown]


def _row(figures: Json, threshold: float) -> Iterator[str]:
    name = f"at_{round(threshold * 100):03d}"
    yield f"{threshold:.2f}"
    for prefix in ("", "guarded_"):
        for figure in ("precision", "recall", "hard_negative_hits"):
            yield f"{figures[f'{prefix}{figure}_{name}']:.3f}"
    precision = figures.get(f"equal_recall_precision_{name}")
    yield "-" if precision is None else f"{precision:.3f}"
