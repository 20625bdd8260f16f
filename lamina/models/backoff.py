"""Waits between two tries of an endpoint, and which answers are worth another try."""

import email.utils
import random
from datetime import UTC, datetime
from http import HTTPStatus

MAX_BACKOFF_S = 30.0
_RETRIED = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS})
_OF_THE_CALLER = frozenset(
    {
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.PAYMENT_REQUIRED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.METHOD_NOT_ALLOWED,
        HTTPStatus.PROXY_AUTHENTICATION_REQUIRED,
        HTTPStatus.TOO_EARLY,
    }
)
"""Statuses that say something of the key, the address or the hour, whatever was asked."""


def may_pass(status: int) -> bool:
    """Report whether another try may be answered otherwise than with this status."""
    return status in _RETRIED or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def refuses_request(status: int) -> bool:
    """Report whether a status refuses this request alone, so that another one may be answered."""
    is_clients = HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
    return is_clients and not may_pass(status) and status not in _OF_THE_CALLER


def backoff_s(first_s: float, attempt: int) -> float:
    """Return the seconds to wait after a try, counted from 0: doubling with jitter, at most 30."""
    most_s: float = min(MAX_BACKOFF_S, first_s * 2**attempt)
    return most_s * random.uniform(0.5, 1)  # noqa: S311 - jitter


def asked_wait_s(header: str) -> float | None:
    """Return the seconds that a Retry-After header asks for, given as a number or as a date; ``None`` if it is none."""
    try:
        seconds = float(header)
    except ValueError:
        pass
    else:
        return seconds if 0 <= seconds < float("inf") else None
    try:
        return max(0.0, (email.utils.parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None
