"""The log of a process of the service: JSON lines with the id of the request, and never a content."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import IO, Any

from lamina.core.request_ids import current_request
from lamina.settings.logs import LogsSettings

LOGGERS = ("lamina", "deployments", "actors", "jobs")


class JsonLines(logging.Formatter):
    """Writes a record as one line of JSON.

    Of an error, its type and the places in the code are written: its text may repeat what was sent.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": current_request(),
            **getattr(record, "fields", {}),
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
    """Write the log of this process as the settings say; a second call changes nothing."""
    if not settings.json_lines:
        return
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    for name in LOGGERS:
        of_package = logging.getLogger(name)
        of_package.handlers, of_package.propagate = [handler], False
        of_package.setLevel(logging.INFO)
