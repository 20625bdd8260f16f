"""The log of a process of the service: JSON lines with the id of the request, and never a content."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import IO, Any

from lamina.core.request_ids import current_request
from lamina.settings.logs import LogsSettings

LOGGERS = ("lamina", "deployments", "actors", "jobs")
"""Whose records may be many lines long and carry fields. All others are libraries'."""


class JsonLines(logging.Formatter):
    """Writes a record as one line of JSON.

    Of an error, its type and the places in the code are written: its text may repeat what was sent. Of a library's
    record, the first line is: it may end with an error, and Postgres quotes a row's values behind the first line.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
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
        return json.dumps(line, ensure_ascii=False, default=str)


def _places(record: logging.LogRecord) -> list[str]:
    """Return the file, line and function of each call that led to an error."""
    trace, places = record.exc_info[2] if record.exc_info else None, []
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append(f"{code.co_filename}:{trace.tb_lineno} {code.co_qualname}")
        trace = trace.tb_next
    return places


def install(settings: LogsSettings, stream: IO[str] | None = None) -> None:
    """Write the log of this process, libraries' lines and warnings too, as the settings say; once is enough."""
    if not settings.json_lines:
        return
    # Serve has put a log of its own in the place of sys.stderr, which keeps lines back until there are more.
    stream = stream or sys.__stderr__ or sys.stderr
    logging.captureWarnings(capture=True)
    root = logging.getLogger()
    root.handlers = [_json_handler(stream)]
    for name in LOGGERS:
        of_package = logging.getLogger(name)
        of_package.handlers, of_package.propagate = list(root.handlers), False
        of_package.setLevel(logging.INFO)
    for logger in list(root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            # Ray's write by themselves, some to files as well, and leave records out.
            logger.handlers = [
                _json_handler(stream, old)
                if isinstance(old, logging.StreamHandler) and not isinstance(old, logging.FileHandler)
                else old
                for old in logger.handlers
            ]


def _json_handler(stream: IO[str], old: logging.Handler | None = None) -> logging.Handler:
    """Return a handler for the same records as another one, or for all."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    if old is not None:
        handler.setLevel(old.level)
        handler.filters = list(old.filters)
    return handler
