"""Where an instance listens, and what is said where it cannot."""

import socket
import subprocess
import sys

import pytest

from deployments.environment import free_port, is_free, url_of
from lamina.errors import Misconfigured


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


HOSTS = ["127.0.0.1", "0.0.0.0", "localhost", *(["::", "::1"] if has_ipv6() else [])]  # noqa: S104 - tried, not served


@pytest.mark.parametrize("host", HOSTS)
def test_a_port_is_taken_as_long_as_somebody_listens_on_it(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    port = free_port(host)

    with socket.socket(family) as listening:
        listening.bind((host, port))
        listening.listen()
        assert not is_free(port, host)


@pytest.mark.parametrize("host", ["192.0.2.1", "256.1.1.1", "no-such-host.invalid", "2001:db8::1", "a" * 64])
def test_an_address_that_is_not_this_machines_is_told_apart_from_a_taken_port(host: str) -> None:
    with pytest.raises(Misconfigured, match=rf"serve\.host '{host}' cannot be bound: .*; name an address"):
        free_port(host)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:80"),  # noqa: S104 - compared
        ("::", "http://[::1]:80"),
        ("fe80::1", "http://[fe80::1]:80"),
        ("localhost", "http://localhost:80"),
    ],
)
def test_the_url_is_one_that_a_client_on_this_machine_can_ask(host: str, url: str) -> None:
    assert url_of(host, 80) == url


def test_refusing_imports_no_ray() -> None:
    said = subprocess.run(
        [sys.executable, "-c", "import deployments.up, sys; print('ray' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert said.stdout.strip() == "False"
