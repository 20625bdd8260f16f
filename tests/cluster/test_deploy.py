"""`serve deploy` of the configuration file, on a Ray cluster that was started by hand."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from deployments.environment import free_port, ray_environment
from lamina.core.principals import KeyRole
from lamina.settings.loading import Settings
from lamina.stores.postgres.keys import create_key
from lamina.stores.postgres.migrate import migrate
from tests.support.ray_head import ray_head
from tests.support.service import ROOT, environment

BIN = Path(sys.executable).parent


@pytest.fixture
def variables(database: str, tmp_path: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    with tempfile.TemporaryDirectory(prefix="lm-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        settings = Settings(data_dir=tmp_path)
        own = ray_environment(settings, folder, ha_proxy=False)
        stores = {"LAMINA_POSTGRES__KIND": "server", "LAMINA_POSTGRES__URL": database, "LAMINA_GRAPH__KIND": "off"}
        model = {"LAMINA_EMBEDDING__KIND": "hashing"}
        yield folder, environment(tmp_path) | own | stores | model


def test_the_configuration_file_deploys_on_a_cluster(
    database: str, tmp_path: Path, variables: tuple[Path, dict[str, str]]
) -> None:
    folder, surroundings = variables
    config = yaml.safe_load((ROOT / "configs" / "serve.yaml").read_text())
    config["http_options"]["port"] = port = free_port()
    config["applications"][0]["args"]["data_dir"] = str(tmp_path / "data")
    (tmp_path / "serve.yaml").write_text(yaml.safe_dump(config))
    migrate(database)
    key = create_key(database, tenant="acme", role=KeyRole.WRITER, name="test")

    with ray_head(folder, surroundings) as head:
        _deploy(tmp_path / "serve.yaml", head.dashboard, surroundings)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {key}"}) as client:
            ready = _wait_until_ready(client)
            client.post("/v1/notes", json={"content": "deployed by a file"})
            found = client.post("/v1/search", json={"query": "deployed by a file"}).json()["results"]

    assert ready["parts"]["embedder"] == "ok"
    assert [hit["content"] for hit in found] == ["deployed by a file"]


def _deploy(config: Path, dashboard: str, surroundings: dict[str, str]) -> None:
    deadline = time.monotonic() + 180
    while True:
        done = subprocess.run(
            [BIN / "serve", "deploy", config, "--address", dashboard],
            capture_output=True,
            text=True,
            check=False,
            env=surroundings,
            cwd=ROOT,
            timeout=120,
        )
        if done.returncode == 0:
            return
        assert time.monotonic() < deadline, done.stdout + done.stderr
        time.sleep(1)


def _wait_until_ready(client: httpx.Client) -> dict[str, dict[str, str]]:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        try:
            answer = client.get("/readyz")
            if answer.status_code == 200:
                return dict(answer.json())
        except httpx.TransportError:
            pass
        time.sleep(0.5)
    raise AssertionError("the application did not become ready")
