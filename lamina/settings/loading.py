"""All settings in one model, read from arguments, environment and file.

Sources, strongest first: arguments, environment variables (``LAMINA_SEARCH__RRF_K=30``, or the file that
``LAMINA_POSTGRES__URL_FILE`` names), the YAML file, the defaults of each section.
"""

import os
import re
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    YamlConfigSettingsSource,
)
from yaml import YAMLError

from lamina.core.masking import is_secret, mask_secrets
from lamina.core.tiers import PROJECTIONS, TIERS, ProjectionName, TierName
from lamina.errors import Misconfigured
from lamina.host.secret_files import FILE_SUFFIX, variable_or_file
from lamina.settings.aliases import aliased
from lamina.settings.caches import CachesSettings
from lamina.settings.doors import AuthSettings, GatewaySettings, McpSettings
from lamina.settings.events import EventsSettings, WebhooksSettings
from lamina.settings.jobs import JobsSettings
from lamina.settings.logs import LogsSettings
from lamina.settings.models import (
    EmbeddingSettings,
    LanguageModelSettings,
    NoRerankSettings,
    RerankSettings,
    SentenceTransformersSettings,
)
from lamina.settings.search import ContextSettings, ProceduresSettings, SearchSettings
from lamina.settings.serving import QuotasSettings, ServeSettings
from lamina.settings.stores import (
    ColdSettings,
    EmbeddedFalkorDBSettings,
    EmbeddedPostgresSettings,
    GraphSettings,
    HybridSettings,
    NoGraphSettings,
    PoolSettings,
    PostgresSettings,
    QdrantEdgeSettings,
    VectorSettings,
)
from lamina.settings.writing import (
    DocumentsSettings,
    ErasureSettings,
    FilesSettings,
    HistorySettings,
    IndexerSettings,
    WriteSettings,
)

ENV_PREFIX = "LAMINA_"

# Read by the CLI, by clients, by tests and benchmarks, and set in processes that Lamina starts.
OTHER_VARIABLES = (
    "LAMINA_CONFIG",
    "LAMINA_DATA_SETS",
    "LAMINA_DEBUG",
    "LAMINA_LOCOMO",
    "LAMINA_URL",
    "LAMINA_API_KEY",
    "LAMINA_TEST_",
    "LAMINA_INSTANCE_FOLDER",
    "LAMINA_JOB_WORKER",
)

# Kubernetes puts them into each container of a namespace, for the Services that are there when it starts: one that is
# named lamina-serve-svc gives LAMINA_SERVE_SVC_SERVICE_HOST, and LAMINA_SERVE_SVC_PORT=tcp://10.0.0.7:8000.
_SERVICE_LINK = re.compile(
    r"\A(?!.*__)LAMINA_(\w+_)?(SERVICE_HOST=|SERVICE_PORT(_\w+)?=|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?=|PORT=(tcp|udp|sctp)://)"
)

# pydantic-settings has no way to hand a source to one construction.
_file_to_load: ContextVar[Path | None] = ContextVar("file_to_load", default=None)


class _Variables(EnvSettingsSource):
    """The environment, in which every variable may name a file with its value instead: `NAME_FILE`."""

    def _load_env_vars(self) -> Mapping[str, str | None]:
        named, suffix = super()._load_env_vars(), FILE_SUFFIX.lower()
        variables = {**aliased(named), **named}
        in_files = {
            name.removesuffix(suffix)
            for name in variables
            if name.endswith(suffix)
            and name.upper().startswith(ENV_PREFIX)
            and not name.upper().startswith(OTHER_VARIABLES)
        }
        given = {name.upper(): value or "" for name, value in variables.items()}
        plain = {name: value for name, value in variables.items() if name.removesuffix(suffix) not in in_files}
        return {**plain, **{name: variable_or_file(name.upper(), given) for name in in_files}}


class _File(YamlConfigSettingsSource):
    """The YAML file, of which each fault is named as it is."""

    def _read_file(self, file_path: Any) -> dict[str, Any]:
        found: Any
        try:
            found = super()._read_file(file_path)
        except UnicodeDecodeError as error:
            raise SettingsError(f"configuration file {file_path} is no text in UTF-8 at byte {error.start}") from error
        except (ValueError, RecursionError) as error:  # As of a date that no calendar has.
            raise SettingsError(f"configuration file {file_path} cannot be read: {error}") from error
        if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
            raise SettingsError(f"configuration file {file_path} is no mapping of settings")
        return found


class Settings(BaseSettings):
    """All of Lamina's configuration."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        nested_model_default_partial_update=True,
    )

    data_dir: Path = Field(Path(".lamina"), description="Directory of the embedded stores and the local key.")
    postgres: PostgresSettings = EmbeddedPostgresSettings()
    hybrid: HybridSettings = QdrantEdgeSettings()
    vectors: VectorSettings = QdrantEdgeSettings()
    graph: GraphSettings = EmbeddedFalkorDBSettings()
    embedding: EmbeddingSettings = SentenceTransformersSettings()
    rerank: RerankSettings = NoRerankSettings()
    pool: PoolSettings = PoolSettings()
    search: SearchSettings = SearchSettings()
    cold: ColdSettings = ColdSettings()
    procedures: ProceduresSettings = ProceduresSettings()
    context: ContextSettings = ContextSettings()
    write: WriteSettings = WriteSettings()
    erasure: ErasureSettings = ErasureSettings()
    history: HistorySettings = HistorySettings()
    events: EventsSettings = EventsSettings()
    webhooks: WebhooksSettings = WebhooksSettings()
    language_model: LanguageModelSettings = LanguageModelSettings()
    indexer: IndexerSettings = IndexerSettings()
    documents: DocumentsSettings = DocumentsSettings()
    files: FilesSettings = FilesSettings()
    caches: CachesSettings = CachesSettings()
    jobs: JobsSettings = JobsSettings()
    quotas: QuotasSettings = QuotasSettings()
    serve: ServeSettings = ServeSettings()
    mcp: McpSettings = McpSettings()
    auth: AuthSettings = AuthSettings()
    gateway: GatewaySettings = GatewaySettings()
    logs: LogsSettings = LogsSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then the environment, then the YAML file that is being loaded or that `LAMINA_CONFIG` names."""
        file = _file_to_load.get() or os.environ.get("LAMINA_CONFIG")
        variables = _Variables(settings_cls)
        if not file:
            return init_settings, variables
        return init_settings, variables, _File(settings_cls, yaml_file=file)


def store_settings(settings: Settings, projection: ProjectionName) -> HybridSettings | VectorSettings | GraphSettings:
    """Return the section that chooses the store of a projection."""
    section: HybridSettings | VectorSettings | GraphSettings = getattr(settings, PROJECTIONS[projection].store)
    return section


def served_tiers(settings: Settings) -> tuple[TierName, ...]:
    """Return the tiers that are served: all whose projections have a store."""
    return tuple(
        name
        for name, spec in TIERS.items()
        if not any(isinstance(store_settings(settings, kept), NoGraphSettings) for kept in spec.projections)
    )


def kept_projections(settings: Settings) -> tuple[ProjectionName, ...]:
    """Return the projections that the served tiers keep."""
    return tuple(projection for name in served_tiers(settings) for projection in TIERS[name].projections)


def load_settings(config: Path | None = None, **overrides: Any) -> Settings:
    """Read the settings of this process.

    Args:
        config: YAML file; `LAMINA_CONFIG` if not given.
        overrides: Fields that win over file and environment.

    Raises:
        Misconfigured: If the file is missing, or a key is unknown or its value is wrong.
    """
    named = os.environ.get("LAMINA_CONFIG")
    chosen = config or (Path(named) if named else None)
    if chosen is not None and not chosen.is_file():
        raise Misconfigured(f"configuration file {chosen} does not exist", "name an existing file with --config")
    _refuse_unknown_variables(os.environ)
    remedy = f"correct {chosen or 'the environment'}; `lamina config check FILE` tells more"
    loading = _file_to_load.set(chosen)
    try:
        return Settings(**overrides)
    except ValidationError as error:
        raise Misconfigured(_describe(error), remedy) from error
    except (SettingsError, YAMLError) as error:
        raise Misconfigured(" ".join(str(error).split()), remedy) from error
    finally:
        _file_to_load.reset(loading)


def _refuse_unknown_variables(environment: Mapping[str, str]) -> None:
    for name, value in environment.items():
        if not name.startswith(ENV_PREFIX) or name.startswith(OTHER_VARIABLES):
            continue
        if _SERVICE_LINK.match(f"{name}={value}"):
            continue
        field = name.removeprefix(ENV_PREFIX).removesuffix(FILE_SUFFIX).split("__")[0].lower()
        if field not in Settings.model_fields:
            raise Misconfigured(
                f"environment variable {name} sets nothing",
                f"the settings are {', '.join(sorted(Settings.model_fields))}",
            )


def _describe(error: ValidationError) -> str:
    lines = (
        f"{'.'.join(map(str, item['loc']))}: {mask_secrets(item['msg']).lower()}{_describe_input(item)}"
        for item in error.errors()
    )
    return "; ".join(lines)


def _describe_input(item: ErrorDetails) -> str:
    """Return a refused value, unless it may be a secret: an unknown key may be a misspelt password."""
    if item["type"] in ("extra_forbidden", "missing") or isinstance(item["input"], Mapping | list):
        return ""
    is_hidden = any(is_secret(part) for part in item["loc"])
    return f" (is {'…' if is_hidden else mask_secrets(repr(item['input']))})"
