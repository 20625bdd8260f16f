"""The TypeScript client as its users get it: fetched and built by npm, for tests with Node."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.typescript import PACKAGE

NODE_MAJOR = 20
FETCH_TIMEOUT_S, BUILD_TIMEOUT_S = 180, 300
# The codes of npm for a network or a registry that is away, slow, proxied badly or refuses: nothing of ours.
_AWAY = re.compile(
    r"\b(?:E5\d\d|E4(?:0[1378]|29)|ENOTFOUND|ECONN\w+|E\w*TIMEDOUT|EAI_\w+|ENET\w+|EHOST\w+|EPIPE|EPROTO|ERR_SOCKET\w*|"
    r"ERR_TLS\w*|ENOTCACHED|\w*SELF_SIGNED_CERT\w*|UNABLE_TO_(?:VERIFY|GET)\w*|CERT_\w+|FETCH_ERROR|network)\b"
)


def fetch(npm: Sequence[str], package: Path, timeout_s: float = FETCH_TIMEOUT_S) -> None:
    """Fetch the libraries of the package; the test is skipped where the network does not give them in time."""
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
    limits = [
        "--fetch-timeout=30000",
        "--fetch-retries=1",
        "--fetch-retry-mintimeout=1000",
        "--fetch-retry-maxtimeout=5000",
    ]
    command = [*npm, "ci", *options, *limits]
    try:
        done = subprocess.run(command, cwd=package, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not fetch the TypeScript compiler within {timeout_s:g} s")
    if done.returncode and (away := _AWAY.search(done.stderr)):
        pytest.skip(f"npm cannot fetch the TypeScript compiler: {away[0]}")
    assert done.returncode == 0, done.stderr


def built_package(folder: Path) -> Path:
    """Make a copy of the package with its libraries, built; the test is skipped where that cannot be."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("the TypeScript client is built by Node, and node or npm is not installed")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if int(re.findall(r"\d+", version)[0]) < NODE_MAJOR:
        pytest.skip(f"the TypeScript client needs Node {NODE_MAJOR}; {version.strip()} is installed")
    copy = folder / "client"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("node_modules", "build"))
    fetch([npm], copy)
    built = subprocess.run(
        [npm, "run", "build"], cwd=copy, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False
    )
    assert built.returncode == 0, built.stdout
    return copy
