"""Read documents in processes of their own: a file on which its parser loops, grows or crashes costs only itself.

A process has limits of processor time and memory, can write no file, and knows none of this process's variables. Idle
ones wait for the next document, because a start takes as long as the reading of many.
"""

import atexit
import os
import pickle
import resource
import select
import signal
import subprocess
import sys
from collections import deque
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, BinaryIO

from pydantic import TypeAdapter

from lamina.core.documents import Parsed, Span
from lamina.errors import InvalidInput
from lamina.ingest.parsing.parse import DocumentLimits, known_media_type, parse
from lamina.ingest.parsing.passages import split

IDLE_S = 60
LARGEST_IDLE_BYTES = 256 * 1024**2
_HEADER_BYTES = 8
_MOST_FILES = 64
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL")


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """Limits of the reading of one document.

    Args:
        document: How large it may be.
        cpu_s: Seconds of processor time.
        memory_bytes: Address space of its process.
    """

    document: DocumentLimits
    cpu_s: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class ReadingOrder:
    """A document that is to be read.

    Args:
        media_type: Its format, perhaps with a charset.
        field_path: Path of the document in the caller's request.
        passage_chars: Most characters of a passage.
    """

    content: str | bytes
    media_type: str
    field_path: str
    passage_chars: int

    @property
    def field(self) -> str:
        """The caller's field that holds the content."""
        name = "content" if isinstance(self.content, str) else "content_base64"
        return f"{self.field_path}.{name}" if self.field_path else name


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A document that was read, and the passages that it is cut into."""

    parsed: Parsed
    passages: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class _Refusal:
    field: str
    reason: str


# As JSON: a parser that a file took over could make a pickle run anything here.
_ANSWERS: TypeAdapter[ReadDocument | _Refusal] = TypeAdapter(ReadDocument | _Refusal)


class ReaderProcess:
    """A process that reads one document after another, each within limits; it is started when one comes."""

    def __init__(self, limits: ReadingLimits) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._is_given_up = False

    def read(self, order: ReadingOrder) -> ReadDocument:
        """Read a document; blocks until it is read, refused, or its process ended.

        Raises:
            InvalidInput: If it cannot be read, or not within the limits.
        """
        message = pickle.dumps((self._limits, order))
        while (answer := self._ask(message)) is None:
            # Whoever gave it up has ended it; a second process with the same file would be nobody's.
            if (code := self._end()) or self._is_given_up:
                raise InvalidInput(order.field, self._describe_end(code))
        if isinstance(answer, _Refusal):
            raise InvalidInput(answer.field, answer.reason)
        return answer

    def kill(self) -> None:
        """End the process in the middle of its work, for good: no other one takes its place."""
        self._is_given_up = True
        self._end()

    def _end(self) -> int:
        """End the process and return its exit code: 0 if it ended by itself before an order came."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.kill()
        process.communicate()  # Waits, and closes the pipes, also one that was not read to its end.
        return process.returncode

    def _ask(self, message: bytes) -> "ReadDocument | _Refusal | None":
        process = self._process = self._process or _start()
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None  # noqa: S101 - it is a pipe
        assert stdout is not None  # noqa: S101 - it is a pipe
        try:
            _send(stdin, message)
            return _ANSWERS.validate_json(_receive(stdout))
        except (OSError, EOFError):
            process.wait()  # Its pipe is closed a moment before it has an exit code.
            return None

    def _describe_end(self, code: int) -> str:
        if code == -signal.SIGXCPU:
            return f"takes more than {self._limits.cpu_s:g} s to read; send it in parts, or its text"
        return "made its parser crash; repair it, or send its text"


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - runs this module
        [sys.executable, "-c", f"from {__name__} import main; main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # Parsers warn there of each oddity of a file.
        env={"PYTHONPATH": os.pathsep.join(sys.path)}
        | {name: os.environ[name] for name in _PASSED_ON if name in os.environ},
    )


class ReaderProcesses:
    """Processes that wait for documents."""

    def __init__(self, limits: ReadingLimits) -> None:
        self._limits = limits
        self._idle: deque[ReaderProcess] = deque()

    def take(self) -> ReaderProcess:
        """Return a process that nobody else uses."""
        return self._idle.pop() if self._idle else ReaderProcess(self._limits)

    def give_back(self, process: ReaderProcess) -> None:
        """Keep a process that is done with its document."""
        self._idle.append(process)

    def close(self) -> None:
        """End all that wait."""
        while self._idle:
            self._idle.pop().kill()


@cache
def reader_processes(limits: ReadingLimits) -> ReaderProcesses:
    """Return the processes with these limits that all of this process shares."""
    processes = ReaderProcesses(limits)
    atexit.register(processes.close)
    return processes


def _send(stream: IO[bytes] | BinaryIO, message: bytes) -> None:
    stream.write(len(message).to_bytes(_HEADER_BYTES))
    stream.write(message)
    stream.flush()


def _receive(stream: IO[bytes] | BinaryIO) -> bytes:
    """Return the next message.

    Raises:
        EOFError: If the other side ended.
    """
    header = stream.read(_HEADER_BYTES)
    message = stream.read(int.from_bytes(header)) if len(header) == _HEADER_BYTES else b""
    if not message or len(message) < int.from_bytes(header):
        raise EOFError
    return message


def _read(limits: ReadingLimits, order: ReadingOrder) -> ReadDocument | _Refusal:
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = int(used.ru_utime + used.ru_stime + limits.cpu_s) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, resource.RLIM_INFINITY))
    try:
        parsed = parse(order.content, order.media_type, limits.document, field_path=order.field_path)
        kind, _ = known_media_type(order.media_type, "media_type")
        return ReadDocument(parsed, split(parsed, kind, passage_chars=order.passage_chars))
    except InvalidInput as error:
        return _Refusal(error.field, error.reason)
    except MemoryError:
        size = limits.memory_bytes // 1024**2
        return _Refusal(order.field, f"takes more than {size} MiB of memory to read; send it in parts, or its text")


def serve(orders: BinaryIO, answers: BinaryIO) -> None:
    """Read documents until the other side ends, nothing came for a minute, or a document left much memory taken."""
    while select.select([orders], [], [], IDLE_S)[0]:
        try:
            limits, order = pickle.loads(_receive(orders))  # noqa: S301 - from the process that started this one
        except EOFError:
            return
        _send(answers, _ANSWERS.dump_json(_read(limits, order)))
        # Not `ru_maxrss`: it begins with that of the process which started this one.
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        if pages * resource.getpagesize() > LARGEST_IDLE_BYTES:
            return


def main() -> None:
    """Read documents from the standard input; the answers go to the standard output."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_MOST_FILES, _MOST_FILES))
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as pipe:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # For a parser that prints.
        serve(sys.stdin.buffer, pipe)
