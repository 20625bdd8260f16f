"""The log of a process of the service: lines with the id of the request, and never a content."""

import json
import logging
import os
import select
import sys
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import Any, Protocol

from lamina.core.request_ids import current_request
from lamina.settings.logs import LogsSettings
from lamina.text.visible import show_controls

LOGGERS = ("lamina", "deployments", "actors", "jobs")
"""Whose records may be many lines long and carry fields. All others are libraries'."""
PIPE = "LAMINA_LOG_PIPE"
"""Names the pipe to the terminal of `lamina up`; of standard error Ray makes files in a folder that ends with it."""
MOST_PLACES = 20
"""Those before are of the server and its middlewares; a line of 2 KB goes through a pipe in one piece."""
_TERMINAL = "terminal"


class LogStream(Protocol):
    """Takes lines of a log."""

    def write(self, text: str, /) -> object:
        """Take a text."""
        ...

    def flush(self) -> None:
        """Flush the buffer."""
        ...


class LogPipe:
    """A stream of lines into a pipe that several processes write to.

    One that finds it full is lost, and so is all once its reader is gone: no request waits for it. A long one is cut:
    beyond :data:`select.PIPE_BUF` bytes it could be written in part, or have others' lines within.

    Args:
        path: Of the pipe.

    Raises:
        OSError: If it is none, or nobody reads it.
    """

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)

    def write(self, text: str) -> None:
        """Write a line with its end at once, or not at all."""
        line = text.rstrip("\n").encode(errors="backslashreplace")[: select.PIPE_BUF - 1]
        with suppress(OSError):
            os.write(self._descriptor, line.decode(errors="ignore").encode() + b"\n")

    def flush(self) -> None:
        """Return: everything is written already."""


class JsonLines(logging.Formatter):
    """Writes a record as one line of JSON.

    Of an error, its type and the places in the code are written: its text may repeat what was sent. Of a library's
    record, the first line is: it may end with an error, and Postgres quotes a row's values behind the first line.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return json.dumps(self.values(record), ensure_ascii=False, default=str)

    def values(self, record: logging.LogRecord) -> dict[str, Any]:
        """Return the fields of a record's line."""
        is_own = record.name.partition(".")[0] in LOGGERS
        text = record.getMessage()
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": text if is_own else text.partition("\n")[0],
            "request_id": current_request(),
            **(getattr(record, "fields", {}) if is_own else {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line |= {"error": record.exc_info[0].__name__, "places": _places(record)}
        return line


class TextLines(JsonLines):
    """Writes the same for a person."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a message without arguments is followed by its fields, and any by its error."""
        values = self.values(record)
        begin = "{at} {level} {logger}: {message}".format_map(values)
        told = {"at", "level", "logger", "message"} | (getattr(record, "fields", {}).keys() if record.args else set())
        rest = [f"{name}={value}" for name, value in values.items() if name not in told and value not in (None, [])]
        return show_controls(" ".join([begin, *rest])).replace("\n", "\\n")


def _places(record: logging.LogRecord) -> list[str]:
    """Return the file, line and function of the last calls that led to an error."""
    trace, places = record.exc_info[2] if record.exc_info else None, []
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append(f"{code.co_filename}:{trace.tb_lineno} {code.co_qualname}")
        trace = trace.tb_next
    return places[-MOST_PLACES:]


def install(settings: LogsSettings, stream: LogStream | None = None) -> None:
    """Write the log of this process as the settings say; once is enough.

    As JSON that is every line, libraries' and Python's warnings too. As text, a process of `lamina up` shows Lamina's
    own lines; elsewhere, and libraries', they go where Ray and Serve put them.
    """
    if stream is None and PIPE in os.environ:
        stream = _pipe(os.environ[PIPE])
    if not settings.json_lines:
        if stream is not None:
            _show(stream)
        return
    # Serve has put a log of its own in the place of sys.stderr, which keeps lines back until there are more.
    lines: LogStream = stream or sys.__stderr__ or sys.stderr
    logging.captureWarnings(capture=True)
    root = logging.getLogger()
    root.handlers = [_json_handler(lines)]
    for name in LOGGERS:
        of_package = logging.getLogger(name)
        of_package.handlers, of_package.propagate = list(root.handlers), False
        of_package.setLevel(logging.INFO)
    for logger in list(root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            # Ray's write by themselves, some to files as well, and leave records out.
            logger.handlers = [
                _json_handler(lines, old)
                if isinstance(old, logging.StreamHandler) and not isinstance(old, logging.FileHandler)
                else old
                for old in logger.handlers
            ]


@cache
def _pipe(path: str) -> LogPipe | None:
    try:
        return LogPipe(path)
    except OSError:
        return None


def _show(stream: LogStream) -> None:
    for name in LOGGERS:
        logger = logging.getLogger(name)
        if all(handler.get_name() != _TERMINAL for handler in logger.handlers):
            handler = logging.StreamHandler(stream)
            handler.set_name(_TERMINAL)
            handler.setFormatter(TextLines())
            logger.addHandler(handler)
            logger.setLevel(logging.INFO)


def _json_handler(stream: LogStream, old: logging.Handler | None = None) -> logging.Handler:
    """Return a handler for the same records as another one, or for all."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    if old is not None:
        handler.setLevel(old.level)
        handler.filters = list(old.filters)
    return handler
