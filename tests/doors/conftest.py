"""A service from the main environment, and what a test of a framework needs to reach it."""

import json
import os
import re
import runpy
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv/bin/python"
START_TIMEOUT_S, STOP_TIMEOUT_S = 180.0, 60.0


@dataclass(frozen=True)
class Door:
    """The service, and a workspace of this test alone."""

    url: str
    key: str
    workspace: str


@pytest.fixture(scope="session")
def service() -> Iterator[dict[str, str]]:
    """A service over real stores, without Ray, by the interpreter of LAMINA_TEST_PYTHON or `.venv`."""
    python = os.environ.get("LAMINA_TEST_PYTHON", str(PYTHON))
    command = [python, "-m", "tests.support.door_service"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        patience = threading.Timer(START_TIMEOUT_S, process.kill)
        patience.start()
        line = process.stdout.readline()
        patience.cancel()
        assert line, f"the service did not start within {START_TIMEOUT_S:g} s: {process.wait()}"
        yield json.loads(line)
        process.stdin.close()
        try:
            process.wait(STOP_TIMEOUT_S)
        finally:
            process.kill()


@pytest.fixture
def door(service: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Door:
    """The service as a user has it: its address and key are in the environment."""
    monkeypatch.setenv("LAMINA_URL", service["url"])
    monkeypatch.setenv("LAMINA_API_KEY", service["key"])
    return Door(**service, workspace=f"workspace {uuid.uuid4()}")


@pytest.fixture
def pasted(door: Door, capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Run the programs of docs/doors.md that import an integration; each prints what stands below it."""

    def run(integration: str) -> None:
        text = (ROOT / "docs/doors.md").read_text()
        programs = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)
        chosen = [(code, output) for code, output in programs if f"lamina.integrations.{integration} " in code]
        assert chosen, f"docs/doors.md has no program of {integration}"
        for code, output in chosen:
            exec(compile(code, "docs/doors.md", "exec"), {})  # noqa: S102 - our own document
            assert capsys.readouterr().out == output

    return run


@pytest.fixture
def printed(door: Door, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Run an example of `examples/` in the workspace of this test and return its output."""

    def run(name: str) -> str:
        monkeypatch.setenv("LAMINA_WORKSPACE", door.workspace)
        runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
        return capsys.readouterr().out

    return run
