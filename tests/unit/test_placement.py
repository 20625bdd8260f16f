"""Where what runs beside the replicas is put: by the resources that nodes offer, and by whose settings it runs."""

from pathlib import Path

import pytest

from actors.directory import Directory, actor_options
from deployments.router import directory_of
from jobs.launching import driver_options
from lamina.models.hashing import HashingModel
from lamina.settings.caches import CachesSettings
from lamina.settings.jobs import JobsSettings
from lamina.settings.loading import Settings, load_settings
from lamina.settings.models import LanguageModelSettings
from lamina.settings.stores import PostgresServerSettings
from lamina.stores.postgres.generations import Generation
from lamina.wiring.caches import shards_namespace
from lamina.wiring.jobs import build_summarizer, jobs_edition, jobs_namespace

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


SECRETS = {
    "language_model": {"base_url": "https://models.example/v1", "model": "m", "api_key": "%s"},
    "embedding": {
        "kind": "endpoint",
        "url": "https://models.example/v1",
        "model": "m",
        "dimensions": "8",
        "api_key": "%s",
    },
    "hybrid": {"kind": "meilisearch", "url": "https://words.example", "api_key": "%s"},
    "graph": {"kind": "neo4j", "url": "neo4j://graph.example", "password": "%s"},
}


@pytest.mark.parametrize("section", SECRETS)
def test_a_scheduler_with_another_secret_takes_the_place_of_the_one_before(section: str) -> None:
    def edition(secret: str) -> str:
        fields = {name: value.replace("%s", secret) for name, value in SECRETS[section].items()}
        return jobs_edition(Settings(postgres=SERVER, **{section: fields}))

    assert edition("old") == edition("old")
    assert edition("old") != edition("new")
    assert "new" not in edition("new")


def test_a_process_has_a_summariser_for_each_secret() -> None:
    def summarizer(secret: str) -> object:
        model = LanguageModelSettings(base_url="https://models.example/v1", model="m", api_key=secret)
        chosen = Settings(postgres=SERVER, language_model=model, jobs={"summaries": {"by": "language_model"}})
        return build_summarizer(chosen, HashingModel())

    assert summarizer("old") is summarizer("old")
    assert summarizer("old") is not summarizer("new")


def test_actors_of_a_database_are_found_with_another_password_and_other_options_of_the_connection() -> None:
    def namespaces(url: str) -> tuple[str, str]:
        settings = Settings(postgres=PostgresServerSettings(url=url))
        return jobs_namespace(settings), shards_namespace(settings)

    before = namespaces("postgresql://me:old@db/lamina")
    same = ["postgresql://me:new@db:5432/lamina?sslmode=verify-full", "postgres://other@db/lamina?connect_timeout=3"]
    others = ["postgresql://me:old@db/other", "postgresql://me:old@db2/lamina", "postgresql://me:old@db:5433/lamina"]

    assert {namespaces(url) for url in same} == {before}
    assert len({before, *(namespaces(url) for url in others)}) == 4


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
