"""Certificate authorities of HTTPS clients: read once, and again after a change of the environment or the file."""

import asyncio
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lamina.client import AsyncClient, Client
from lamina.errors import LaminaError, Misconfigured
from lamina.host.authorities import no_authorities, trusted_authorities
from lamina.models.retrying import EndpointClient
from lamina.settings.models import EndpointCalls
from tests.support.wires import new_certificate


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The contexts for which authorities were read."""
    made: list[Any] = []

    def counted(make: Callable[..., ssl.SSLContext]) -> Callable[..., ssl.SSLContext]:
        def make_and_count(**names: Any) -> ssl.SSLContext:
            made.append(make(**names))
            return made[-1]

        return make_and_count

    monkeypatch.setattr(ssl, "create_default_context", counted(ssl.create_default_context))
    return made


def subjects(context: ssl.SSLContext) -> set[str]:
    return {dict(part for name in one["subject"] for part in name)["commonName"] for one in context.get_ca_certs()}


def test_all_clients_of_a_process_share_what_is_read_once(read: list[Any]) -> None:
    trusted_authorities()
    read.clear()

    for _ in range(3):
        Client("https://lamina.example").close()
        EndpointClient("embedder", "https://models.example", EndpointCalls()).close()
        asyncio.run(AsyncClient("https://lamina.example").close())

    assert read == []
    assert trusted_authorities().verify_mode == ssl.CERT_REQUIRED
    assert trusted_authorities().check_hostname
    assert trusted_authorities().get_ca_certs()


def test_a_client_of_plain_http_reads_nothing_and_trusts_nobody(
    read: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing"))

    Client("http://127.0.0.1:1").close()
    asyncio.run(AsyncClient("http://127.0.0.1:1").close())

    assert read == []
    assert no_authorities().get_ca_certs() == []
    assert no_authorities().verify_mode == ssl.CERT_REQUIRED


def test_the_environment_names_other_authorities_and_its_file_may_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "authorities.pem"
    everybody = trusted_authorities()
    monkeypatch.setenv("SSL_CERT_FILE", str(file))

    found = []
    for name in ("one", "two"):
        file.write_bytes(new_certificate(tmp_path, name).file.read_bytes())
        os.utime(file, (0, len(found)))
        found.append(subjects(trusted_authorities()))
    monkeypatch.delenv("SSL_CERT_FILE")

    assert found == [{"one"}, {"two"}]
    assert trusted_authorities() is everybody


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_authorities_that_cannot_be_read_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    file = tmp_path / "authorities.pem"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))

    with pytest.raises(LaminaError, match=r"SSL_CERT_FILE names .*authorities\.pem") as caught:
        Client("https://lamina.example")
    assert isinstance(caught.value, Misconfigured)
