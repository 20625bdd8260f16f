import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from deployments.environment import INSTANCE
from jobs.runner import OWN_PROCESSES
from lamina.config_check.fields import models_in
from lamina.errors import Misconfigured
from lamina.settings.doors import JwtSettings
from lamina.settings.loading import Settings, load_settings
from lamina.settings.models import HashingSettings, SentenceTransformersSettings
from lamina.settings.stores import EmbeddedPostgresSettings, Neo4jServerSettings, PostgresServerSettings
from tests.support.configuration import REFERENCE, reference

ROOT = Path(__file__).resolve().parents[2]
LOCAL = ROOT / "configs" / "local.yaml"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment without Lamina's variables; what a test adds to it goes with the test."""
    for name in list(os.environ):
        if name.startswith("LAMINA_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LAMINA_CONFIG", "")
    return monkeypatch


def file_of(folder: Path, text: str) -> Path:
    file = folder / "lamina.yaml"
    file.write_text(text)
    return file


def test_without_file_or_environment_the_defaults_hold() -> None:
    settings = load_settings()

    assert isinstance(settings.postgres, EmbeddedPostgresSettings)
    assert isinstance(settings.embedding, SentenceTransformersSettings)
    assert (settings.search.limit, settings.search.rrf_k, settings.search.min_similarity) == (10, 60, 0.25)
    assert (settings.context.budget_tokens, settings.context.max_chunks) == (8192, 20)


def test_the_shipped_file_loads_and_repeats_the_defaults() -> None:
    settings = load_settings(LOCAL)

    assert settings.model_dump() == {**Settings().model_dump(), "serve": settings.serve.model_dump()}
    assert settings.serve.port == 8000


def test_a_file_counts_for_one_loading_only(tmp_path: Path) -> None:
    before = dict(os.environ)

    assert load_settings(file_of(tmp_path, "search: {limit: 3}")).search.limit == 3

    assert dict(os.environ) == before
    assert Settings().search.limit == 10


def test_the_environment_wins_over_the_file_and_arguments_over_both(
    environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = file_of(tmp_path, "search: {rrf_k: 9, limit: 3, per_source: 4}\ndata_dir: from-file\n")
    environment.setenv("LAMINA_SEARCH__RRF_K", "7")
    environment.setenv("LAMINA_DATA_DIR", "from-environment")

    settings = load_settings(file, data_dir=Path("from-argument"))

    assert (settings.search.rrf_k, settings.search.limit, settings.search.per_source) == (7, 3, 4)
    assert settings.data_dir == Path("from-argument")


def test_the_file_that_the_environment_names_is_read(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environment.setenv("LAMINA_CONFIG", str(file_of(tmp_path, "search: {limit: 3}")))

    assert load_settings().search.limit == 3


def test_the_file_given_wins_over_the_one_that_the_environment_names(
    environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environment.setenv("LAMINA_CONFIG", str(tmp_path / "missing.yaml"))

    assert load_settings(file_of(tmp_path, "search: {limit: 3}")).search.limit == 3


def test_one_field_of_a_section_of_several_kinds_can_be_set_alone(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("LAMINA_EMBEDDING__THREADS", "3")

    assert load_settings().embedding == SentenceTransformersSettings(threads=3)


def test_another_kind_is_chosen_by_name(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("LAMINA_POSTGRES__KIND", "server")
    environment.setenv("LAMINA_POSTGRES__URL", "postgresql://localhost/lamina")

    settings = load_settings(LOCAL)

    assert settings.postgres == PostgresServerSettings(url="postgresql://localhost/lamina")


def test_a_variable_that_a_command_reads_stops_no_service_that_it_starts(environment: pytest.MonkeyPatch) -> None:
    texts = [path.read_text() for folder in ("lamina", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    names = {name for text in texts for name in re.findall(r'envvar="(\w+)"', text)}
    for name in names - {"LAMINA_CONFIG"}:
        environment.setenv(name, "x")

    assert len(names) > 3
    assert load_settings(LOCAL)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("LAMINA_SERACH__LIMIT", "LAMINA_SERACH__LIMIT sets nothing"),
        ("LAMINA_SEARCH_LIMIT", "LAMINA_SEARCH_LIMIT sets nothing"),
        ("LAMINA_LIMIT", "the settings are .*search"),
        ("LAMINA_SEARCH__LIMITS", r"search\.limits"),
        ("LAMINA_SERVE__ROUTER__CPUS", r"serve\.router\.cpus"),
    ],
)
def test_an_unknown_variable_is_refused_naming_it(environment: pytest.MonkeyPatch, name: str, told: str) -> None:
    environment.setenv(name, "5")

    with pytest.raises(Misconfigured, match=told):
        load_settings()


@pytest.mark.parametrize(
    ("name", "value", "path", "expected"),
    [
        ("SEMANTIC_CACHE_ENABLED", "false", ("caches", "semantic", "enabled"), False),
        ("SEMANTIC_CACHE_ENABLED", "true", ("caches", "semantic", "enabled"), True),
        ("NOVAMEM_DECAY_DAYS", "3.5", ("cold", "days_per_doubling"), 3.5),
        ("novamem_decay_days", "3.5", ("cold", "days_per_doubling"), 3.5),
        ("NOVAMEM_GRAPH_ENABLED", "false", ("graph", "kind"), "off"),
        ("NOVAMEM_GRAPH_ENABLED", "0", ("graph", "kind"), "off"),
        ("NOVAMEM_GRAPH_ENABLED", "True", ("graph", "kind"), "embedded"),
    ],
)
def test_a_documents_name_of_a_variable_sets_it_too(
    environment: pytest.MonkeyPatch, name: str, value: str, path: tuple[str, ...], expected: object
) -> None:
    environment.setenv(name, value)

    found: object = load_settings()
    for part in path:
        found = getattr(found, part)

    assert found == expected


def test_laminas_own_name_wins_over_a_documents(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environment.setenv("NOVAMEM_DECAY_DAYS", "3")
    assert load_settings(file_of(tmp_path, "cold: {days_per_doubling: 5}")).cold.days_per_doubling == 3

    environment.setenv("LAMINA_COLD__DAYS_PER_DOUBLING", "4")
    assert load_settings().cold.days_per_doubling == 4


@pytest.mark.parametrize(
    ("name", "value"),
    [("NOVAMEM_GRAPH_ENABLED", "perhaps"), ("NOVAMEM_DECAY_DAYS", "-1"), ("SEMANTIC_CACHE_ENABLED", "")],
)
def test_a_wrong_value_under_a_documents_name_is_refused(
    environment: pytest.MonkeyPatch, name: str, value: str
) -> None:
    environment.setenv(name, value)

    with pytest.raises(Misconfigured):
        load_settings()


@pytest.mark.parametrize(
    "name",
    [
        "LAMINA_URL",
        "LAMINA_API_KEY",
        "LAMINA_TEST_POSTGRES",
        "OTHER_SEARCH__LIMIT",
        INSTANCE,
        *OWN_PROCESSES["env_vars"],
    ],
)
def test_variables_of_others_are_left_alone(environment: pytest.MonkeyPatch, name: str) -> None:
    environment.setenv(name, "5")

    assert load_settings() == Settings()


def test_what_kubernetes_says_of_services_stops_nothing_but_a_misspelt_setting_does(
    environment: pytest.MonkeyPatch,
) -> None:
    for service in ("LAMINA", "LAMINA_SERVE_SVC"):
        environment.setenv(f"{service}_SERVICE_HOST", "10.0.0.7")
        environment.setenv(f"{service}_SERVICE_PORT", "8000")
        environment.setenv(f"{service}_SERVICE_PORT_SERVE", "8000")
        environment.setenv(f"{service}_PORT", "tcp://10.0.0.7:8000")
        environment.setenv(f"{service}_PORT_8000_TCP", "tcp://10.0.0.7:8000")
        environment.setenv(f"{service}_PORT_8000_TCP_ADDR", "10.0.0.7")
    among_services = load_settings()
    environment.setenv("LAMINA_PORT", "8000")

    assert among_services == Settings()
    with pytest.raises(Misconfigured, match="LAMINA_PORT sets nothing"):
        load_settings()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("serach: {limit: 5}", "serach"),
        ("search: {limits: 5}", "search.limits"),
        ("search: {limit: 0}", "search.limit"),
        ("search: {limit: many}", "search.limit"),
        ("search: {min_similarity: 1.5}", "search.min_similarity"),
        ("serve: {embedder: {gpu_fraction: 2}}", "serve.embedder.gpu_fraction"),
        ("postgres: {kind: sqlite}", "postgres"),
        ("postgres: {kind: server}", "url"),
        ("embedding: {kind: hashing, threads: 2}", "threads"),
        ("write: {extraction: magic}", "write.extraction"),
    ],
)
def test_a_wrong_entry_of_the_file_is_refused_naming_it(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(Misconfigured, match=told):
        load_settings(file_of(tmp_path, text))


def test_every_wrong_entry_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"search\.limit.*context\.max_chunks"):
        load_settings(file_of(tmp_path, "search: {limit: 0}\ncontext: {max_chunks: 0}"))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"missing\.yaml does not exist"):
        load_settings(tmp_path / "missing.yaml")


def test_an_empty_file_sets_nothing(tmp_path: Path) -> None:
    assert load_settings(file_of(tmp_path, "")) == Settings()


@pytest.mark.parametrize("text", ["search: [1", "- 1\n- 2", "just words", "a: b: c", "\t- x"])
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(Misconfigured):
        load_settings(file_of(tmp_path, text))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("data_dir: naïve".encode("latin-1"), r"is no text in UTF-8 at byte 12; correct .*settings\.yaml"),
        (b"data_dir: 2026-13-45", r"settings\.yaml cannot be read: month must be in 1\.\.12"),
        (b"[" * 3000, r"settings\.yaml cannot be read: maximum recursion depth"),
        (b"3: 4", r"settings\.yaml is no mapping of settings"),
    ],
    ids=["charset", "date", "depth", "number"],
)
def test_a_file_that_cannot_be_read_is_refused_with_its_fault(tmp_path: Path, content: bytes, told: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_bytes(content)

    with pytest.raises(Misconfigured, match=told):
        load_settings(file)


def test_a_variable_that_cannot_be_read_is_refused(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("LAMINA_SEARCH", "not json")

    with pytest.raises(Misconfigured, match=r"(?i)search"):
        load_settings()


def test_a_refusal_never_tells_a_password(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("LAMINA_POSTGRES__URL", "postgresql://lamina:s3cret@db/lamina")

    with pytest.raises(Misconfigured, match=r"postgres.*url") as refused:
        load_settings()

    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "graph: {kind: neo4j, url: 'bolt://g', pasword: s3cret}",
        "graph: {kind: neo4j, password: s3cret}",
        "graph: {kind: neo4j, url: 's3cret://me:p@s3cret@g', password: [s3cret]}",
        "language_model: {api_key: [s3cret]}",
        "serach: {anything: s3cret}",
        "jobs: {archival: {options: {token: [s3cret]}}}",
        "jobs: {archival: {options: {client_pwd: 5, region: [s3cret]}}}",
        "hybrid: {kind: meilisearch, url: 'tcp://m?password=s3cret'}",
    ],
)
def test_a_refusal_tells_no_secret_whatever_it_stands_under(tmp_path: Path, text: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        load_settings(file_of(tmp_path, text.replace("s3cret://", "tcp://")))

    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("name", ["CPU", "GPU", "memory", "object_store_memory"])
@pytest.mark.parametrize("place", ["serve: {router: {resources: %s}}", "jobs: {task_resources: %s}"])
def test_what_ray_counts_by_itself_is_no_resource_of_the_users(tmp_path: Path, name: str, place: str) -> None:
    with pytest.raises(Misconfigured, match=rf"resources: .*{name.lower()} is counted by ray itself"):
        load_settings(file_of(tmp_path, place % f"{{{name}: 1}}"))


def test_no_setting_can_be_changed_afterwards() -> None:
    settings = Settings()

    with pytest.raises(ValidationError):
        settings.search.limit = 5  # type: ignore[misc]
    with pytest.raises(ValidationError):
        settings.data_dir = Path("elsewhere")  # type: ignore[misc]


def test_every_field_of_every_section_has_a_line_of_documentation() -> None:
    undocumented = [
        f"{section.__name__}.{name}"
        for section in _sections(Settings)
        for name, field in section.model_fields.items()
        if name != "kind" and not field.description and not list(models_in(field.annotation))
    ]

    assert undocumented == []


def test_the_reference_is_the_one_that_the_settings_make() -> None:
    assert REFERENCE.read_text() == reference(), "run `make docs`"


def test_every_setting_is_in_the_reference() -> None:
    text = reference()

    for section in _sections(Settings):
        for name, field in section.model_fields.items():
            if name != "kind" and not list(models_in(field.annotation)):
                assert f"\n| `{name}` | " in text


def test_every_section_has_a_line_of_documentation_and_refuses_unknown_fields() -> None:
    for section in _sections(Settings):
        assert section.__doc__
        assert section.model_config["extra"] == "forbid"


def test_every_section_is_walked() -> None:
    names = {section.__name__ for section in _sections(Settings)}

    assert {"PostgresServerSettings", "HashingSettings", "EmbedderDeploymentSettings", "SearchSettings"} <= names


def test_every_default_is_valid() -> None:
    for section in _sections(Settings):
        url = {Neo4jServerSettings: "bolt://x", JwtSettings: "https://x"}.get(section, "http://x")
        needed = {name: field.annotation for name, field in section.model_fields.items() if field.is_required()}
        required: dict[str, Any] = {name: 384 if kind is int else url for name, kind in needed.items()}
        section.model_validate(section(**required).model_dump())


@pytest.mark.parametrize("dimension", [0, 7])
def test_a_dimension_too_small_is_refused(dimension: int) -> None:
    with pytest.raises(ValidationError):
        HashingSettings(dimension=dimension)


def _sections(section: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield section
    for field in section.model_fields.values():
        for inner in models_in(field.annotation):
            yield from _sections(inner)
