"""Rates by address: each address has so many tries a minute, then it waits."""

import ipaddress
import math
from collections import OrderedDict
from dataclasses import dataclass

MINUTE_S = 60.0
MAX_ADDRESSES = 10_000
# A household or a host has a whole one, and could send each key from another address of it.
_IPV6_PREFIX = 64


@dataclass(frozen=True, slots=True)
class _Bucket:
    """Tries that are left at a time; a try is earned back in every ``MINUTE_S / per_minute``."""

    tries: float
    at: float


class AddressRates:
    """A token bucket for each address; plain, bounded, and without a clock.

    Beyond the bound the address that tried least recently is forgotten: it starts anew.

    Args:
        per_minute: Tries a minute of one address, and at once.
        most: Most addresses.
    """

    def __init__(self, per_minute: int, most: int = MAX_ADDRESSES) -> None:
        self._per_minute = per_minute
        self._most = most
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, address: str, now: float, cost: int = 1) -> int:
        """Take tries; return 0, or the seconds after which the address may try again.

        Args:
            address: Of the client.
            now: Seconds of a clock that never goes back.
            cost: Tries that it takes; more than a minute has is taken as what a minute has.
        """
        network = network_of(address)
        tries = self._tries(network, now)
        cost = min(cost, self._per_minute)
        if tries < cost:
            return max(1, math.ceil((cost - tries) * MINUTE_S / self._per_minute))
        self._put(network, _Bucket(tries - cost, now))
        return 0

    def give_back(self, address: str, now: float) -> None:
        """Give a try back that does not count."""
        network = network_of(address)
        if network in self._buckets:
            self._put(network, _Bucket(min(self._per_minute, self._tries(network, now) + 1), now))

    def _tries(self, network: str, now: float) -> float:
        bucket = self._buckets.get(network)
        if bucket is None:
            return self._per_minute
        return min(self._per_minute, bucket.tries + (now - bucket.at) * self._per_minute / MINUTE_S)

    def _put(self, network: str, bucket: _Bucket) -> None:
        self._buckets[network] = bucket
        self._buckets.move_to_end(network)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)


def network_of(address: str) -> str:
    """Return the part of an address that one client has to itself: an IPv4 address, or a /64 of IPv6."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:  # A name, or a socket's path.
        return address
    if parsed.version == 4:  # noqa: PLR2004 - the version's own number
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_PREFIX), strict=False))
