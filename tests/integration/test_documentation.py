"""The examples of the documents, asked and answered by the application with the real model."""

import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
import uvicorn

from lamina.core.principals import KeyRole
from tests.support.application import Application
from tests.support.examples import Exchange, blocks_of, difference, exchanges_of, filled, links_of
from tests.support.uvicorn_server import serving

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_EXCHANGES = [document for document in DOCUMENTS if any(exchanges_of(document))]
PROGRAMS = [
    pytest.param(block.language, block.text, id=f"{document.name}:{block.line}")
    for document in DOCUMENTS
    for block in blocks_of(document)
    # Those of frameworks run in their own environments: tests/doors.
    if (block.language == "python" and "lamina.integrations" not in block.text)
    or (block.language == "sh" and "curl " in block.text)
]
# Where the documents say that the service is.
ADDRESS = "http://127.0.0.1:8000"


@pytest.mark.parametrize("document", WITH_EXCHANGES, ids=lambda document: document.name)
async def test_each_request_of_a_document_is_answered_as_it_says(semantic: Application, document: Path) -> None:
    keys = {role.value: semantic.new_key(semantic.tenant, role) for role in KeyRole} | {"nobody": "lamina_nobody"}
    captured: dict[str, str] = {}
    for example in exchanges_of(document):
        await semantic.indexed()
        status, answer = await _sent(semantic, example, keys[example.role], captured)

        place = f"{document.name}:{example.line} {example.method} {example.path}"
        assert status == example.status, f"{place}: {status} {answer}"
        found = difference(example.answer, answer, captured)
        assert found is None, f"{place}: {found}; seen: {answer}"


@pytest.mark.parametrize(("language", "text"), PROGRAMS)
async def test_each_program_of_a_document_runs(semantic: Application, tmp_path: Path, language: str, text: str) -> None:
    if language == "sh" and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    (tmp_path / ".lamina").mkdir()
    (tmp_path / ".lamina" / "local.key").write_text(semantic.key)
    await semantic.client().post("/v1/search", json={"query": "open every store"})  # the first search opens them
    async with _served(semantic) as url:
        environment = {**os.environ, "LAMINA_URL": url, "LAMINA_API_KEY": semantic.key, "PYTHONPATH": str(ROOT)}
        program = [sys.executable, "-c"] if language == "python" else ["bash", "-euo", "pipefail", "-c"]
        ran = await asyncio.to_thread(
            subprocess.run,
            [*program, text.replace(ADDRESS, url)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )

    assert ran.returncode == 0, ran.stderr
    if language == "sh":
        json.loads(ran.stdout)
        assert '"text"' in ran.stdout


def test_every_link_of_a_document_leads_to_a_file_and_a_heading_of_it() -> None:
    dead = [
        f"{document.name}: {link}" for document in DOCUMENTS for link, is_alive in links_of(document) if not is_alive
    ]
    assert dead == []


def test_every_file_that_a_document_names_exists() -> None:
    named = re.compile(r"`((?:lamina|deployments|actors|jobs|tests|configs|benchmarks)/[a-z0-9_/.]+)`")
    missing = {
        f"{document.name}: {path}"
        for document in DOCUMENTS
        for path in named.findall(document.read_text())
        if not (ROOT / path).exists()
    }
    assert missing == set()


async def _sent(app: Application, example: Exchange, key: str, captured: dict[str, str]) -> tuple[int, object]:
    path, _, query = filled(example.path, captured).partition("?")
    url = quote(path) + (f"?{query}" if query else "")
    headers = {"Content-Type": "application/json"}
    body = filled(example.body, captured).encode() or None
    response = await app.client(key).request(example.method, url, content=body, headers=headers)
    return response.status_code, json.loads(response.content) if response.content else None


@asynccontextmanager
async def _served(app: Application) -> AsyncIterator[str]:
    """Serve the application on a free port of this machine."""
    listening = socket.create_server(("127.0.0.1", 0))
    try:
        async with serving(uvicorn.Config(app.api, lifespan="off", log_level="warning"), [listening]):
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.close()
