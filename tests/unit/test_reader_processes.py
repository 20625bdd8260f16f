import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lamina.core.media_types import HTML, MARKDOWN, TEXT
from lamina.errors import InvalidInput
from lamina.ingest.parsing.parse import DocumentLimits
from lamina.ingest.parsing.processes import LARGEST_IDLE_BYTES, ReaderProcess, ReadingLimits, ReadingOrder

LIMITS = ReadingLimits(DocumentLimits(max_bytes=50_000_000, max_chars=50_000_000), cpu_s=60, memory_bytes=512 * 1024**2)
SLOW = ReadingOrder("- " * 3_000_000 + "x", MARKDOWN, "documents.2", 800)
LARGE = ReadingOrder("<p>" + "word " * 9_000_000, HTML, "", 800)
SMALL = ReadingOrder("---\ntitle: Tea\nyear: 2024\n---\n# Kinds\n\nGreen.\n\n## Black\n\nAssam.", MARKDOWN, "", 800)


@pytest.fixture
def process() -> Iterator[ReaderProcess]:
    made = ReaderProcess(LIMITS)
    yield made
    made.kill()


@pytest.fixture
def hasty() -> Iterator[ReaderProcess]:
    """A process that a long document keeps busy for longer than it may be."""
    made = ReaderProcess(replace(LIMITS, cpu_s=2))
    yield made
    made.kill()


def children() -> set[int]:
    """Those of all threads: a process belongs to the one that started it."""
    return {int(pid) for listed in Path("/proc/self/task").glob("*/children") for pid in listed.read_text().split()}


def test_a_document_is_read_as_in_this_process(process: ReaderProcess) -> None:
    read = process.read(SMALL)

    assert (read.parsed.title, read.parsed.text[:7]) == ("Tea", "# Kinds")
    assert [span.heading for span in read.passages] == ["Kinds", "Kinds > Black"]


def test_a_refusal_names_the_callers_field(process: ReaderProcess) -> None:
    with pytest.raises(InvalidInput) as refused:
        process.read(ReadingOrder("  ", TEXT, "documents.3", 800))

    assert (refused.value.field, refused.value.reason) == ("documents.3.content", "has no text in it")


def test_a_document_that_takes_too_much_time_is_refused_and_the_next_one_read(hasty: ReaderProcess) -> None:
    with pytest.raises(InvalidInput, match=r"documents\.2\.content: takes more than 2 s to read; send it in parts"):
        hasty.read(SLOW)

    assert hasty.read(SMALL).parsed.title == "Tea"


def test_a_document_that_takes_too_much_memory_is_refused_and_the_next_one_read(process: ReaderProcess) -> None:
    with pytest.raises(InvalidInput, match=r"content: (takes more than 512 MiB of memory|made its parser crash)"):
        process.read(LARGE)

    assert process.read(SMALL).parsed.title == "Tea"


def test_a_process_that_was_killed_is_replaced(process: ReaderProcess) -> None:
    before = children()
    process.read(SMALL)
    (pid,) = children() - before
    os.kill(pid, 15)

    with pytest.raises(InvalidInput, match="made its parser crash"):
        process.read(SMALL)
    assert process.read(SMALL).parsed.title == "Tea"


def test_a_process_knows_no_secrets(process: ReaderProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_POSTGRES__URL", "postgresql://lamina:s3cret@host/lamina")
    before = children()
    process.read(SMALL)
    (pid,) = children() - before

    assert "s3cret" not in Path(f"/proc/{pid}/environ").read_text()


async def test_a_process_that_was_given_up_is_not_replaced(process: ReaderProcess) -> None:
    before = children()
    reading = asyncio.create_task(asyncio.to_thread(process.read, SLOW))
    async with asyncio.timeout(60):
        while not children() - before:  # noqa: ASYNC110 - a thread starts it
            await asyncio.sleep(0.05)

    process.kill()
    with pytest.raises(InvalidInput):
        await reading

    assert children() <= before


def test_the_process_of_a_large_caller_reads_one_document_after_another(process: ReaderProcess) -> None:
    held = b"x" * (2 * LARGEST_IDLE_BYTES)
    before = children()

    process.read(SMALL)
    first = children() - before
    process.read(SMALL)

    assert children() - before == first
    assert held[-1:] == b"x"
