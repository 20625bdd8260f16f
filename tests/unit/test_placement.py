"""Where what runs beside the replicas is put: by the resources that nodes offer."""

from pathlib import Path

import pytest

from actors.directory import Directory, actor_options
from deployments.router import directory_of
from jobs.launching import driver_options
from lamina.models.hashing import HashingModel
from lamina.settings.caches import CachesSettings
from lamina.settings.jobs import JobsSettings
from lamina.settings.loading import Settings, load_settings
from lamina.settings.stores import PostgresServerSettings
from lamina.stores.postgres.generations import Generation

SERVING = {"lamina_serving": 0.001}
SERVER = PostgresServerSettings(url="postgresql://me@db/lamina")
GENERATION = Generation(1, HashingModel().identity)
CLUSTER = Path(__file__).resolve().parents[2] / "configs" / "cluster.yaml"


def directory_with(resources: dict[str, float]) -> Directory:
    return directory_of(Settings(postgres=SERVER, caches=CachesSettings(resources=resources)), GENERATION)


def test_cache_shards_run_where_the_settings_say() -> None:
    placed, anywhere = directory_with(SERVING), directory_with({})

    assert placed.resources == SERVING
    assert anywhere.resources == {}
    assert placed.names() != anywhere.names()


@pytest.mark.parametrize("resources", [{}, SERVING])
def test_actors_and_drivers_reserve_what_the_settings_say_and_no_cpu(resources: dict[str, float]) -> None:
    actor = actor_options("cache-0", "lamina", resources)
    driver = driver_options(JobsSettings(driver_resources=resources))

    assert (actor["num_cpus"], actor["resources"]) == (0, resources)
    assert (driver["num_cpus"], driver["resources"]) == (0, resources)


def test_on_a_cluster_all_that_serves_stays_on_the_nodes_for_serving(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_POSTGRES__URL", SERVER.url)

    settings = load_settings(CLUSTER)

    assert settings.caches.resources == SERVING
    assert settings.jobs.driver_resources == SERVING
    assert "lamina_serving" not in settings.jobs.task_resources
