"""Everything on a disk, unpacked: to look for what should be nowhere any more."""

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pyarrow.parquet as pq

# In the dump that begins an append-only file: a compressed text, then its packed and its unpacked length.
_PACKED = 0xC3
_MOST_TEXT = 1 << 24


def files_with(folder: Path, mark: bytes) -> set[str]:
    """Return the files below a folder in which the mark stands, as it is or packed."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and holds(path, mark)}


def holds(path: Path, mark: bytes) -> bool:
    data = b"".join(_extents(path))
    return any(mark in text for text in (data, *_unpacked(data)))


def _extents(path: Path) -> Iterator[bytes]:
    """Yield what a file holds between its holes; files of indexes are large and mostly holes."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:  # It went meanwhile.
        return
    try:
        end = os.fstat(descriptor).st_size
        begin = 0
        while begin < end:
            try:
                begin = os.lseek(descriptor, begin, os.SEEK_DATA)
            except OSError:  # Only a hole is left.
                return
            stop = os.lseek(descriptor, begin, os.SEEK_HOLE)
            yield os.pread(descriptor, stop - begin, begin)
            begin = stop
    finally:
        os.close(descriptor)


def _unpacked(data: bytes) -> Iterator[bytes]:
    if data.startswith(b"PAR1"):
        table = pq.read_table(BytesIO(data))
        yield repr(table.to_pylist()).encode()
        yield b"\n".join(repr(column.to_pylist()).encode("utf-8", "surrogatepass") for column in table.columns)
    if data.startswith(b"\x1f\x8b"):
        yield gzip.decompress(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        raise AssertionError("a zstd file: unpack it here")
    if data.startswith(b"REDIS"):
        yield from _texts_of_dump(data)
    if data.startswith(b"\x78"):
        with suppress(zlib.error):  # One of 256 files begins with this byte and is not packed.
            yield zlib.decompress(data)


def _texts_of_dump(data: bytes) -> Iterator[bytes]:
    """Yield whatever reads as a packed text of Redis, wherever it begins."""
    begin = data.find(_PACKED)
    while begin >= 0:
        try:
            packed, at = _length(data, begin + 1)
            size, at = _length(data, at)
            if packed < size < _MOST_TEXT:
                yield _unpack_lzf(data[at : at + packed])
        except (IndexError, ValueError):
            pass
        begin = data.find(_PACKED, begin + 1)


def _length(data: bytes, at: int) -> tuple[int, int]:
    first = data[at]
    match first >> 6:
        case 0:
            return first & 0x3F, at + 1
        case 1:
            return (first & 0x3F) << 8 | data[at + 1], at + 2
        case 2:
            return int.from_bytes(data[at + 1 : at + 5], "big"), at + 5
        case _:
            raise ValueError("no length")


def _unpack_lzf(packed: bytes) -> bytes:
    out = bytearray()
    at = 0
    while at < len(packed):
        control = packed[at]
        at += 1
        if control < 32:
            out += packed[at : at + control + 1]
            at += control + 1
            continue
        length = control >> 5
        if length == 7:
            length += packed[at]
            at += 1
        begin = len(out) - ((control & 0x1F) << 8 | packed[at]) - 1
        at += 1
        if begin < 0:
            raise ValueError("no text")
        for place in range(begin, begin + length + 2):
            out.append(out[place])
    return bytes(out)
