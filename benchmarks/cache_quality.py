"""How often near questions really want the same answer: labelled pairs, by threshold, without and with the guard.

Source:
    Quora Question Pairs, of which all-MiniLM-L6-v2 saw a part in training, so that its figures are flattered. The
    folder holds `qqp_pairs_*.jsonl.gz`, one `{"text_a", "text_b", "label"}` a line. Who labelled them chose pairs
    that look alike: every negative is a hard one. The guard's rules were chosen on one half of the pairs; the other
    is measured by itself, too. It was looked at a few times on the way: its figures are fair, not untouched.
"""

import gzip
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from benchmarks.paraphrase_pairs import read_pairs
from benchmarks.report import stage, table
from lamina.errors import Misconfigured
from lamina.models.onnx.model import OnnxModel
from lamina.settings.models import SentenceTransformersSettings
from lamina.text.paraphrase import is_same_question, is_same_statement

THRESHOLDS = (0.85, 0.92, 0.95, 0.97)
LEAST = 0.85
STEP = 0.001
# Of 183 pairs within .90 that differ in case and punctuation alone, people called 95 % the same: no rule gets beyond.
TARGET_PRECISION = 0.93
LEAST_HITS = 300
STRICT = 0.97
# Of the pairs that people call the same, those that the guard of release 8fe7171 let pass at that cosine.
RECALL_BEFORE = 0.116
LEAST_KEPT = 0.9
BATCH = 512
SEED = 20_240_601
REFERENCE = (
    "reference of this model at 0.95, on a selection of its own: precision .955, recall .258, negatives hit .024"
)

Json = dict[str, Any]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Labelled:
    """Labelled pairs of questions.

    Args:
        cosines: Of the pairs, float32, shape (n,).
        same: Whether people said that they ask the same.
        passes: Whether the guard lets them pass; false for pairs below the least threshold, which it never sees.
        held_out: Whether the guard's rules were chosen without them.
    """

    cosines: NDArray[np.float32]
    same: Mask
    passes: Mask
    held_out: Mask

    def part(self, chosen: Mask) -> "Labelled":
        """Return the chosen pairs alone."""
        return Labelled(self.cosines[chosen], self.same[chosen], self.passes[chosen], self.held_out[chosen])

    def hits(self, threshold: float, *, guarded: bool) -> Mask:
        """Return which pairs the cache would take for one."""
        near = self.cosines >= threshold
        return near & self.passes if guarded else near

    def figures(self, threshold: float, *, guarded: bool) -> tuple[float, float, float]:
        """Return precision, recall, and the share of negatives that are hit."""
        hits = self.hits(threshold, guarded=guarded)
        right = int((hits & self.same).sum())
        wrong = int((hits & ~self.same).sum())
        same = int(self.same.sum())
        return right / max(1, right + wrong), right / max(1, same), wrong / max(1, self.same.size - same)


def measure_quality(folder: Path, *, sample: int | None = None) -> Json:
    """Return precision, recall and false hits by threshold, and the threshold that the data recommend.

    The same under ``held_out`` for the pairs the guard's rules were chosen without; the threshold is recommended from
    all pairs.

    Raises:
        Misconfigured: If the folder has no pairs.
    """
    pairs = _read(folder, sample)
    stage(f"{len(pairs)} labelled pairs of questions")
    labelled = _labelled(pairs)
    recommended = _recommended(labelled)
    figures = _measured(labelled, recommended) | {
        "held_out": _measured(labelled.part(labelled.held_out), recommended),
        **_mistaken(pairs, labelled),
    }
    kept = figures[f"guarded_recall_at_{round(STRICT * 100):03d}"] / RECALL_BEFORE
    return figures | {"kept_of_right_hits": kept, "least_kept_of_right_hits": LEAST_KEPT}


def _mistaken(pairs: Sequence[tuple[str, str, bool]], labelled: Labelled) -> Json:
    """Count false hits and false merges at a cosine of .97 in a thousand pairs that people call different."""
    near = labelled.cosines >= STRICT
    merges = [bool(is_near) and is_same_statement(*pair[:2]) for is_near, pair in zip(near, pairs, strict=True)]
    merged = Labelled(labelled.cosines, labelled.same, np.array(merges), labelled.held_out)
    return {
        "false_hits_per_thousand": 1000 * labelled.figures(STRICT, guarded=True)[2],
        "false_merges_per_thousand": 1000 * merged.figures(STRICT, guarded=True)[2],
        "merged_recall_at_097": merged.figures(STRICT, guarded=True)[1],
    }


def measure_pairs_by_hand() -> Json:
    """Return the mistakes of the guard on pairs of many languages, as if their vectors were equal."""
    pairs = read_pairs()
    other, same = ([pair for pair in pairs if pair.is_same == is_same] for is_same in (False, True))
    figures: Json = {"pairs": len(pairs), "languages": len({pair.language for pair in pairs})}
    for name, guard in (("hits", is_same_question), ("merges", is_same_statement)):
        figures[f"false_{name}_per_thousand"] = 1000 * sum(guard(p.first, p.second) for p in other) / len(other)
        figures[f"right_{name}"] = sum(guard(pair.first, pair.second) for pair in same) / len(same)
    return figures


def pairs_by_hand_table(figures: Json) -> Table:
    """Return the figures of the pairs by hand as people read them."""
    shown = table(
        f"The guard on {figures['pairs']} pairs by hand in {figures['languages']} languages, at equal vectors",
        "use",
        "false per thousand",
        "right ones kept",
        "limit",
    )
    for name in ("hits", "merges"):
        false, right = figures[f"false_{name}_per_thousand"], figures[f"right_{name}"]
        shown.add_row(name, f"{false:.1f}", f"{right:.1%}", f"{LEAST_KEPT:.0%}")
    return shown


def _measured(labelled: Labelled, recommended: float | None) -> Json:
    figures: Json = {"pairs": labelled.same.size, "recommended_threshold": recommended}
    for threshold in THRESHOLDS:
        figures |= _at(labelled, threshold)
    if recommended is not None:
        precision, recall, _ = labelled.figures(recommended, guarded=True)
        figures |= {"recommended_precision": precision, "recommended_recall": recall}
    return figures


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
    held_out = [_is_held_out(*pair[:2]) for pair in pairs]
    return Labelled(cosines, np.array([same for _, _, same in pairs]), np.array(passes), np.array(held_out))


def _is_held_out(first: str, second: str) -> bool:
    return hashlib.sha256(f"{first}|{second}".encode()).digest()[0] % 2 == 1


def _embedded(texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """Return the unit vector of each text; texts of like length come together, which wastes least."""
    vectors: dict[str, NDArray[np.float32]] = {}
    with TemporaryDirectory() as graphs:
        model = OnnxModel(SentenceTransformersSettings(threads=2), "cpu", Path(graphs))
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
    yield from (round(float(at), 3) for at in np.arange(threshold, LEAST + STEP / 2, -STEP))


def _recommended(labelled: Labelled) -> float | None:
    """Return the lowest threshold from which on the guarded hits are right often enough, where there are hits."""
    best: float | None = None
    for at in _down_from(0.995):
        if labelled.hits(at, guarded=True).sum() < LEAST_HITS:
            continue
        if labelled.figures(at, guarded=True)[0] < TARGET_PRECISION:
            break
        best = at
    return best


def quality_tables(figures: Json) -> list[Table]:
    """Return the figures as people read them: of all pairs, and of those held out."""
    everything = _shown(figures, f"Hits of the semantic cache on {figures['pairs']} labelled pairs")
    held_out = figures["held_out"]
    others = _shown(held_out, f"On the {held_out['pairs']} of them that the guard's rules were chosen without")
    everything.caption = (
        f"recommended: {_recommendation(figures)} (precision of at least {TARGET_PRECISION} with the guard); held out: "
        f"{_recommendation(held_out)}; equal recall: precision with the guard at the lower threshold that finds as "
        f"many. {REFERENCE}"
    )
    mistakes = table("At a cosine of 0.97 with the guard", "figure", "value", "limit")
    if "kept_of_right_hits" in figures:
        for name in ("false_hits_per_thousand", "false_merges_per_thousand", "merged_recall_at_097"):
            mistakes.add_row(name, f"{figures[name]:.3f}", "-")
        kept = f"{figures['kept_of_right_hits']:.3f}"
        mistakes.add_row(f"right hits, of {RECALL_BEFORE:.1%} before", kept, f"{LEAST_KEPT:.3f}")
    return [everything, others, *([mistakes] if mistakes.row_count else [])]


def _recommendation(figures: Json) -> str:
    if figures["recommended_threshold"] is None:
        return "none"
    threshold, precision, recall = (figures[f"recommended_{name}"] for name in ("threshold", "precision", "recall"))
    return f"{threshold:.3f}, precision {precision:.3f}, recall {recall:.3f}"


def _shown(figures: Json, title: str) -> Table:
    shown = table(
        title,
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
    return shown


def _row(figures: Json, threshold: float) -> Iterator[str]:
    name = f"at_{round(threshold * 100):03d}"
    yield f"{threshold:.2f}"
    for prefix in ("", "guarded_"):
        for figure in ("precision", "recall", "hard_negative_hits"):
            yield f"{figures[f'{prefix}{figure}_{name}']:.3f}"
    precision = figures.get(f"equal_recall_precision_{name}")
    yield "-" if precision is None else f"{precision:.3f}"
