"""How the benchmark of near-duplicates reads its data and counts."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import dedup
from benchmarks.dedup import Corpus, PairsFound, figures, joined, read, squeezed
from lamina.errors import Misconfigured

ROWS = [
    {"id": "a", "text": "Green tea\n is GOOD"},
    {"id": "b", "text": " green tea is good "},
    {"id": "c", "text": "é"},
]


def write(folder: Path, *, compress_pairs: bool) -> None:
    with gzip.open(folder / "some.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in ROWS)
    pairs = "b\ta\t1.000000\n"
    if compress_pairs:
        (folder / "some.c5.t085.pairs.tsv.gz").write_bytes(gzip.compress(pairs.encode()))
    else:
        (folder / "some.c5.t085.pairs.tsv").write_text(pairs, encoding="utf-8")


@pytest.mark.parametrize("compress_pairs", [False, True])
def test_texts_are_read_with_their_near_pairs(tmp_path: Path, *, compress_pairs: bool) -> None:
    write(tmp_path, compress_pairs=compress_pairs)

    corpus = read(tmp_path, "some")

    assert corpus.texts == tuple(row["text"] for row in ROWS)
    assert corpus.near.tolist() == [[0, 1]]
    assert joined(corpus.texts).tolist() == [[0, 1]]


def test_a_folder_without_the_texts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"has no some\.jsonl.*--data"):
        read(tmp_path, "some")


def test_texts_are_compared_in_lower_case_with_white_space_squeezed() -> None:
    assert squeezed("  Green\u00a0tea\n\t is GOOD ") == "green tea is good"


def test_a_pair_counts_once_whatever_its_order() -> None:
    corpus = Corpus("some", ("", "", ""), np.array([[0, 1], [0, 2]]))

    found = dedup._judged(corpus, lambda _texts: np.array([[1, 0], [0, 1], [2, 1]]))

    assert (found.right, found.total, found.near) == (1, 2, 2)
    assert (found.recall, found.precision) == (0.5, 0.5)


def test_nothing_found_where_nothing_is_near_is_perfect() -> None:
    found = PairsFound(0, 0, 0, 1.0)

    assert (found.recall, found.precision) == (1, 1)


def test_figures_are_of_all_sets_together_and_of_each() -> None:
    measured = {
        "one": (PairsFound(10, 10, 10, 1.0), PairsFound(9, 9, 10, 8.0)),
        "other": (PairsFound(30, 30, 30, 1.0), PairsFound(30, 30, 30, 2.0)),
    }

    found = figures(measured)

    assert (found["recall"], found["precision"], found["ok"]) == (1, 1, True)
    assert (found["seconds"], found["datasketch_seconds"], found["time_ratio_to_datasketch"]) == (2, 10, 0.2)
    assert found["datasketch_recall"] == 39 / 40
    assert found["other"]["time_ratio_to_datasketch"] == 0.5


@pytest.mark.parametrize(
    "ours",
    [PairsFound(9, 9, 10, 1.0), PairsFound(10, 11, 10, 1.0), PairsFound(10, 10, 10, 1.1)],
    ids=["recall", "precision", "time"],
)
def test_what_misses_a_limit_is_not_ok(ours: PairsFound) -> None:
    assert not figures({"some": (ours, PairsFound(10, 10, 10, 3.0))})["ok"]


def test_the_peer_compares_its_candidates_on_the_same_runs() -> None:
    datasketch = pytest.importorskip("datasketch")
    texts = ["Green tea is good for you", "green tea is  good for you", "green tea is good for you!", "Coffee, please"]

    near = dedup._sketched(datasketch, texts)

    assert near.tolist() == joined(texts).tolist() == [[0, 1], [0, 2], [1, 2]]
