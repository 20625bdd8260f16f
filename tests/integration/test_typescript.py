"""The TypeScript client: what it takes from the service is up to date, it is built, and its own tests pass."""

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from deployments.api import document
from lamina.core.principals import KeyRole
from tests.support.application import Application
from tests.support.ingress import uvicorn_of
from tests.support.service import ROOT
from tests.support.typescript import ROUTES, SCHEMA, header_of, routes_text, shape_of
from tests.support.typescript_package import built_package, fetch

TEST_TIMEOUT_S = 300


def test_the_types_are_those_of_the_service() -> None:
    with SCHEMA.open() as text:
        first = text.readline()

    assert first == header_of(document()), "the API has changed: run `make clients` and commit clients/typescript/src"


def test_the_table_of_routes_is_that_of_the_python_client() -> None:
    assert ROUTES.read_text() == routes_text(), "run `make clients` and commit clients/typescript/src"


def test_types_depend_on_no_prose() -> None:
    document = {"title": "T", "properties": {"title": {"type": "string", "description": "The title."}}}

    assert shape_of(document) == {"properties": {"title": {"type": "string"}}}


@pytest.mark.parametrize(
    "told",
    [
        "npm ERR! code ENOTFOUND",
        "npm error code E503\nnpm error 503 Service Unavailable",
        "npm error code E429",
        "npm error code E403",
        "npm error code EAI_AGAIN",
        "npm error code ERR_SOCKET_TIMEOUT",
        "npm error code FETCH_ERROR\nnpm error network Invalid response body",
        "npm error code SELF_SIGNED_CERT_IN_CHAIN",
    ],
)
def test_a_registry_that_refuses_skips_with_its_reason(tmp_path: Path, told: str) -> None:
    with pytest.raises(pytest.skip.Exception, match=r"npm cannot fetch the TypeScript compiler: \w"):
        fetch([sys.executable, "-c", f"import sys; sys.exit({told!r})"], tmp_path)


def test_a_registry_that_stalls_skips_and_a_lock_that_is_wrong_fails(tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match=r"within 0\.2 s"):
        fetch([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path, timeout_s=0.2)
    with pytest.raises(AssertionError, match="EUSAGE"):
        fetch([sys.executable, "-c", "import sys; sys.exit('npm error code EUSAGE')"], tmp_path)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_package(tmp_path_factory.mktemp("typescript"))


async def _run(package: Path, key: str, port: int, *command: str) -> str:
    """Return what a command prints, for a service on a port."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=package,
        env={**os.environ, "LAMINA_URL": f"http://127.0.0.1:{port}", "LAMINA_API_KEY": key},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(TEST_TIMEOUT_S):
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


async def test_its_own_tests_pass_against_a_running_service(package: Path, application: Application) -> None:
    key = application.new_key(application.tenant, KeyRole.ADMIN)
    async with uvicorn_of(application.api, application.settings.serve.front_door) as port:
        told = await _run(package, key, port, "npm", "test")

    assert re.search(r"^# fail 0$", told, re.MULTILINE)
    assert int(re.findall(r"^# pass (\d+)$", told, re.MULTILINE)[0]) > 0


async def test_the_command_of_the_doors_prints_what_it_says(package: Path, application: Application) -> None:
    page = (ROOT / "docs" / "doors.md").read_text().partition("## TypeScript\n")[2]
    program = re.findall(r"```sh\ncd clients/typescript .* -e '\n(.*?)'\n```", page, re.DOTALL)[0]
    printed = re.findall(r"```text\n(.*?)```", page, re.DOTALL)[0]

    async with uvicorn_of(application.api, application.settings.serve.front_door) as port:
        told = await _run(package, application.key, port, "node", "--input-type=module", "-e", program)

    assert re.sub(r"\d{4}-\d\d-\d\d", "…", told) == re.sub(r"\d{4}-\d\d-\d\d", "…", printed)
