import gzip
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks.distinct_texts import distinct_texts, sentences, unique
from benchmarks.many_memories import layouts, loads_of, tables
from benchmarks.memory_load import (
    TEXTS_AT_ONCE,
    WRITES_PER_SESSION,
    RememberingEmbedder,
    held_out,
    place_of,
    workspace_of,
    writes,
)
from lamina.core.memories import Chunk
from lamina.core.scope import Scope
from lamina.errors import Misconfigured
from lamina.models.batching import BatchingEmbedder
from lamina.models.hashing import HashingModel

Json = dict[str, Any]
CHATS = [
    "We meet at the old harbour at nine.",
    "Is the ferry late again?  I hear the horn.",
    "Is the ferry late AGAIN? I hear the horn.",
]


def write_sets(folder: Path) -> None:
    """Write sets of the known shapes, each with a text of its own."""
    turns = [{"speaker": "Ann", "dia_id": "D1:1", "text": "The lantern hangs behind the door."}]
    talk = {"speaker_a": "Ann", "speaker_b": "Ben", "session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    (folder / "locomo").mkdir()
    (folder / "locomo" / "locomo10.json").write_text(json.dumps([{"sample_id": "c", "conversation": talk}]))
    (folder / "locomo" / "locomo10_evidence_normalised.jsonl").write_text("")
    pair = {"text_a": "Where do herons nest in winter?", "text_b": "Where do herons nest in winter?"}
    lines: dict[str, list[Json]] = {
        "dedup/irc_messages_50k.jsonl.gz": [{"id": str(place), "text": text} for place, text in enumerate(CHATS)],
        "dedup/debian_descriptions.jsonl.gz": [
            {"id": "a", "text": "A tool that folds paper boats.\nIt also\nsails them far."}
        ],
        "scifact/corpus.jsonl.gz": [
            {"_id": "1", "title": "t", "text": "Cells divide under light. They rest when it is dark."}
        ],
        "semantic_cache/qqp_pairs_80854.jsonl.gz": [pair],
    }
    for name, items in lines.items():
        (folder / name).parent.mkdir(exist_ok=True)
        with gzip.open(folder / name, "wt") as opened:
            opened.writelines(f"{json.dumps(item)}\n" for item in items)
    (folder / "multihop").mkdir()
    with gzip.open(folder / "multihop" / "2wikimultihopqa_corpus.json.gz", "wt") as opened:
        json.dump([{"title": "t", "text": "A queen of Lotharingia reigned here."}], opened)


def test_every_text_is_another_one_whatever_its_case_and_spaces(tmp_path: Path) -> None:
    write_sets(tmp_path)

    single = distinct_texts(tmp_path, 8)

    assert single == [
        "Ann: The lantern hangs behind the door.",
        "We meet at the old harbour at nine.",
        "Is the ferry late again? I hear the horn.",
        "A tool that folds paper boats.",
        "It also sails them far.",
        "Cells divide under light.",
        "They rest when it is dark.",
        "A queen of Lotharingia reigned here.",
    ]


def test_more_texts_than_there_are_are_joined_of_two_and_not_repeated(tmp_path: Path) -> None:
    write_sets(tmp_path)

    found = distinct_texts(tmp_path, 20)

    assert len({text.casefold() for text in found}) == 20
    assert found[9] == "Ann: The lantern hangs behind the door. We meet at the old harbour at nine."


def test_too_few_texts_and_a_missing_set_are_errors_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="locomo"):
        distinct_texts(tmp_path, 5)
    write_sets(tmp_path)
    with pytest.raises(Misconfigured, match="has 24 texts; ask for at most so many instead of 1000"):
        distinct_texts(tmp_path, 1_000)
    (tmp_path / "multihop" / "2wikimultihopqa_corpus.json.gz").unlink()
    with pytest.raises(Misconfigured, match="does not exist; name the folder"):
        distinct_texts(tmp_path, 1_000)


def test_texts_too_short_and_too_long_are_left_out() -> None:
    assert list(unique(["ok", "x" * 1_001, "long enough to be kept", " Long\tenough to  be kept "])) == [
        "long enough to be kept"
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One ends. Another begins.", ["One ends.", "Another begins."]),
        ("Version 2.1 of it. see below", ["Version 2.1 of it. see below"]),
        ("Really?\n  Yes! Ça va.", ["Really?", "Yes! Ça va."]),
        ("", [""]),
    ],
)
def test_a_sentence_ends_before_white_space_and_a_capital(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(("texts", "workspaces"), [(100, 1), (100, 7), (1_003, 10), (5, 5)])
def test_all_texts_are_written_once_and_as_many_to_each_workspace(texts: int, workspaces: int) -> None:
    stored = [f"text {number}" for number in range(texts)]

    planned = list(writes(stored, workspaces))

    written = [text for item in planned for text in (*item.messages, *item.notes)]
    assert written == stored
    of_each = [
        sum(len(item.messages) + len(item.notes) for item in planned if item.scope.workspace == workspace_of(number))
        for number in range(workspaces)
    ]
    assert max(of_each) - min(of_each) <= 1


def test_a_fifth_of_the_texts_are_notes_and_sessions_stay_short() -> None:
    planned = list(writes([f"text {number}" for number in range(10 * TEXTS_AT_ONCE)], 1))

    assert sum(len(item.notes) for item in planned) == 2 * TEXTS_AT_ONCE
    sessions = [item.scope.session for item in planned]
    assert max(map(sessions.count, sessions)) == WRITES_PER_SESSION


@pytest.mark.parametrize(("texts", "questions"), [(100, 10), (12, 6), (1_050, 50), (7, 3), (10, 0)])
def test_what_is_asked_is_not_stored(texts: int, questions: int) -> None:
    everything = [f"text {number}" for number in range(texts)]

    stored, asked = held_out(everything, questions)

    assert len(asked) == questions
    assert sorted(stored + asked) == sorted(everything)


def test_a_question_goes_to_the_workspace_of_its_neighbours() -> None:
    everything = [f"text {number}" for number in range(1_200)]
    stored, asked = held_out(everything, 200)
    place = {text: item.scope.workspace for item in writes(stored, 10) for text in (*item.messages, *item.notes)}

    for number, text in enumerate(asked):
        neighbour = everything[everything.index(text) - 1]
        assert place_of(number, 200, 10) == place[neighbour]


def test_there_are_no_more_workspaces_than_memories() -> None:
    assert layouts(10_000) == {"one_workspace": 1, "spread": 1_000}
    assert layouts(300) == {"one_workspace": 1, "spread": 300}


async def test_a_text_of_two_layouts_is_embedded_once() -> None:
    embedded: dict[str, tuple[Chunk, ...]] = {}
    embedder = RememberingEmbedder(BatchingEmbedder(HashingModel(8, 1)), embedded)

    first = await embedder.embed_texts(Scope("t", "one"), ["a heron", "a boat", "a heron"])
    again = await embedder.embed_texts(Scope("t", "two"), ["a boat", "a lamp"])

    assert list(embedded) == ["a heron", "a boat", "a lamp"]
    assert again[0] is first[1]
    assert first[0] == first[2]


def test_the_tables_tell_every_load_and_the_processes_that_count() -> None:
    counts = {"failed": 0, "degraded": 3, "refused": 41}
    parts = {"postgres": 3.25, "ray raylet": 0.01}
    load = {"per_s": 70.0, "p50_ms": 25.0, "p95_ms": 30.0, "cpu_ms": 18.0, "cpu_ms_by_part": parts, "statements": 8.0}
    layout = {"workspaces": 1, "clients_16": load | counts, "cache_hit": load | counts}
    console = Console(width=160, file=StringIO(), record=True)

    for item in tables({"one_workspace": layout}, 60_000):
        console.print(item)

    text = console.export_text()
    assert list(loads_of(layout)) == ["clients_16", "cache_hit"]
    assert all(part in text for part in ("60000 memories", "clients 16", "cache hit", "41", "postgres", "3.2", "70.0"))
    assert "raylet" not in text
