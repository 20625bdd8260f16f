"""Webhooks: addresses that events are sent to, and which addresses those may be."""

import base64
import ipaddress
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import urlsplit
from uuid import UUID

from lamina.core.events import EventFilter
from lamina.errors import InvalidInput

MAX_URL_CHARS = 2_000
SECRET_BYTES = 32
_SECRET_PREFIX = "whsec_"  # noqa: S105 - as Standard Webhooks has it
_FIRST_PAUSE = timedelta(seconds=5)
_LONGEST_PAUSE = timedelta(hours=1)
# Addresses of the old Internet inside of those of the new one, with the bits after which they stand.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address that gets the events of a tenant, or of one of its workspaces.

    Args:
        kinds: Only these; all if empty.
        secrets: Those that sign now, the newest first.
        position: Events up to it were delivered, or given up.
        attempts: Failed ones to deliver the next event.
    """

    id: UUID
    tenant: str
    url: str
    workspace: str | None
    kinds: frozenset[str]
    created_at: datetime
    position: int = 0
    attempts: int = 0
    secrets: tuple[str, ...] = field(default=(), repr=False)
    next_at: datetime | None = None
    delivered: int = 0
    delivered_at: datetime | None = None
    dead_letters: int = 0
    last_error: str | None = None
    failed_at: datetime | None = None

    def wanted(self) -> EventFilter:
        """Return which events it gets."""
        return EventFilter(workspace=self.workspace, kinds=self.kinds)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that a webhook did not take.

    Args:
        is_due: Whether it is sent again next.
    """

    event_id: UUID
    position: int
    attempts: int
    error: str
    died_at: datetime
    is_due: bool


@dataclass(frozen=True, slots=True)
class DeliveryPolicy:
    """How events are sent.

    Args:
        attempts: Most attempts of an event; then it is a dead letter.
        timeout_s: Longest time of an attempt, from the name to the head of the answer.
        poll_s: Seconds between two looks for something to send.
        allows_private: Whether addresses that are not public may be connected to.
    """

    attempts: int
    timeout_s: float
    poll_s: float
    allows_private: bool


class NotTaken(Exception):
    """An endpoint did not take an event, for the reason that its text says."""


def new_secret(random: bytes) -> str:
    """Return a secret in the form of Standard Webhooks."""
    return _SECRET_PREFIX + base64.b64encode(random).decode()


def pause_after(attempts: int) -> timedelta:
    """Return the pause after so many failed attempts: 5 s, twice as much after each further one, an hour at most."""
    doublings = 1 << min(max(attempts - 1, 0), 20)
    return min(_LONGEST_PAUSE, _FIRST_PAUSE * doublings)


def clean_url(url: str, *, allows_http: bool, allows_private: bool) -> str:
    """Return the URL of a webhook.

    Raises:
        InvalidInput: If it is none that events may be sent to.
    """
    if len(url) > MAX_URL_CHARS or not url.isprintable() or " " in url or not url.isascii():
        raise InvalidInput("url", f"is no URL of at most {MAX_URL_CHARS} ASCII characters")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidInput("url", f"is no URL: {error}") from error
    schemes = {"https", "http"} if allows_http else {"https"}
    if parts.scheme not in schemes or not host or port == 0:
        raise InvalidInput("url", "is no address over https, such as https://example.com/hook")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise InvalidInput("url", "has a user, a password or a fragment; leave them out")
    literal = _literal(host)
    if literal is not None and not allows_private and not is_public(literal):
        raise InvalidInput("url", f"names {host}, which is no public address")
    return url


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_public(address: Address) -> bool:
    """Report whether an address is on the public Internet, in any way of writing it.

    An address of IPv4 that stands in one of IPv6 (mapped, 6to4, Teredo, NAT64) has to be public itself.
    """
    inner: list[Address | None] = []
    if isinstance(address, ipaddress.IPv6Address):
        inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if address in _NAT64:
            inner.append(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
        if address.scope_id is not None or address.is_site_local:
            return False
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
    embedded = [one for one in inner if one is not None]
    return address.is_global and not address.is_multicast and not address.is_reserved and all(map(is_public, embedded))


def allowed_addresses(found: Collection[str], *, allows_private: bool) -> list[str]:
    """Return those addresses of a host that may be connected to."""
    return [one for one in found if allows_private or is_public(ipaddress.ip_address(one))]
