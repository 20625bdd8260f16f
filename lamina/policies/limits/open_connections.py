"""How many connections a server has open: of all clients together, and of each address."""

import ipaddress
from collections import Counter
from collections.abc import Collection

from lamina.policies.limits.address_rates import network_of


class OpenConnections:
    """Counts connections by address; an IPv6 client counts by its /64. Bounded by what is open.

    Args:
        most: Most connections.
        of_address: Most connections of one address.
        trusted: Networks of proxies, which have no limit of their own.
    """

    def __init__(self, most: int, of_address: int, trusted: Collection[str] = ()) -> None:
        self._most = most
        self._of_address = of_address
        self._trusted = tuple(ipaddress.ip_network(network, strict=False) for network in trusted)
        self._open: Counter[str] = Counter()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def admit(self, address: str) -> bool:
        """Count a connection of an address; return whether there is room for it. Each one ends with ``leave``."""
        network = network_of(address)
        self._open[network] += 1
        self._count += 1
        has_room = self._open[network] <= self._of_address or self._is_trusted(address)
        return has_room and self._count <= self._most

    def leave(self, address: str) -> None:
        """Count a connection no longer."""
        network = network_of(address)
        self._open[network] -= 1
        self._count -= 1
        if self._open[network] <= 0:
            del self._open[network]

    def _is_trusted(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:  # A name, or a socket's path.
            return False
        return any(parsed in network for network in self._trusted)
