"""Lamina's settings in a file: read strictly, with all mistakes at once, together with environment variables."""

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.fields import FieldInfo

from lamina.config_check.documents import mapping_at
from lamina.config_check.fields import chosen_models, field_paths, models_in
from lamina.config_check.findings import Finding, Place, suggest_name, warning
from lamina.config_check.model_errors import describe_errors
from lamina.core.masking import is_secret, mask_secrets
from lamina.host.secret_files import FILE_SUFFIX
from lamina.settings.loading import ENV_PREFIX, OTHER_VARIABLES, Settings

# Stands for a value that a Secret or the environment will give.
PLACEHOLDER = "from-elsewhere"
# Stands for the database's URL: it holds a password, so a file may lack it.
DATABASE_PLACEHOLDER = f"postgresql://{PLACEHOLDER}"
NESTED = "__"
# `Settings` itself would read this process's environment and the file that LAMINA_CONFIG names.
_fields: dict[str, Any] = {name: (field.annotation, field) for name, field in Settings.model_fields.items()}
_SettingsData: type[BaseModel] = create_model(
    "SettingsData", __config__=ConfigDict(extra="forbid", frozen=True), **_fields
)
# Environment variables; ``None`` where a Secret gives the value.
Variables = Mapping[str, str | None]


def read_settings(data: Any, variables: Variables | None = None) -> tuple[Settings | None, list[Finding]]:
    """Return the settings, ``None`` if they are invalid, and the findings about them.

    Args:
        data: Content of the file; ``None`` for an empty one.
        variables: The environment, which goes before the file; variables without Lamina's prefix are ignored.
    """
    if not isinstance(data, Mapping) and data is not None:
        return None, [Finding((), "is no mapping of settings", "write `section:` and its keys below it")]
    found = [*find_secrets(data or {}), *find_unknown_variables(variables or {})]
    merged = _with_default_kinds(data or {})
    for name, value in (variables or {}).items():
        path = setting_path(name)
        if path is not None and _find_field(path, merged) is not None:
            merged = _replace(merged, path, _parse_value(None if name.endswith(FILE_SUFFIX) else value))
    merged = _with_default_kinds(merged)
    try:
        return cast("Settings", _SettingsData.model_validate(_with_database_placeholders(merged))), found
    except ValidationError as error:
        return None, [*found, *describe_errors(error, _SettingsData, merged)]


def find_secrets(data: Mapping[str, Any], place: Place = ()) -> Iterator[Finding]:
    """Warn of secrets in a file, which belong in the environment or a Secret."""
    for name, value in data.items():
        inner = (*place, str(name))
        if isinstance(value, Mapping):
            yield from find_secrets(value, inner)
        elif isinstance(value, str) and ((value and is_secret(name)) or has_password(value)):
            variable = ENV_PREFIX + NESTED.join(map(str, inner)).upper()
            yield warning(inner, "is a secret in a file", f"take it out, and set {variable} from a Secret")


def has_password(value: str) -> bool:
    """Report whether a URL holds a password, before its host or among its parameters."""
    _, scheme_end, rest = value.partition("://")
    user_info, at, _ = rest.partition("@")
    parameters = f"?{rest.partition('?')[2]}"
    is_before_host = bool(at) and ":" in user_info and not user_info.endswith(":")
    return bool(scheme_end) and (is_before_host or mask_secrets(parameters) != parameters)


def _with_default_kinds(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data with the default `kind` in each section that has several and names none."""
    return {name: _with_default_kind(str(name), section) for name, section in data.items()}


def _with_default_kind(name: str, section: Any) -> Any:
    default = getattr(Settings.model_fields.get(name), "default", None)
    if isinstance(section, Mapping) and "kind" not in section and hasattr(default, "kind"):
        return {"kind": getattr(default, "kind", None), **section}
    return section


def _with_database_placeholders(data: dict[str, Any]) -> dict[str, Any]:
    """Return the data with placeholders for the URLs that the environment has to give."""
    postgres = mapping_at(data, "postgres")
    if postgres.get("kind") != "server":
        return data
    needed = ("url", "direct_url") if postgres.get("pooling") == "transaction" else ("url",)
    return {**data, "postgres": {**dict.fromkeys(needed, DATABASE_PLACEHOLDER), **postgres}}


def setting_path(variable: str) -> list[str] | None:
    """Return the path of the setting that a variable of Lamina's, or its file, gives; ``None`` for other variables."""
    if not variable.startswith(ENV_PREFIX) or variable.startswith(OTHER_VARIABLES):
        return None
    return variable.removeprefix(ENV_PREFIX).removesuffix(FILE_SUFFIX).lower().split(NESTED)


def _parse_value(value: str | None) -> Any:
    """Parse a variable as pydantic does: mappings and lists are JSON."""
    if value is None:
        return f"http://{PLACEHOLDER}"
    if value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except json.JSONDecodeError:
            return value
    return value


def _replace(data: Mapping[str, Any], path: list[str], value: Any) -> dict[str, Any]:
    name, *rest = path
    return {**data, name: _replace(mapping_at(data, name), rest, value) if rest else value}


def find_unknown_variables(variables: Variables) -> Iterator[Finding]:
    """Return a finding for each variable of Lamina's that sets nothing in any kind of its section."""
    for name in variables:
        path = setting_path(name)
        if path is not None and not any(_find_field(path, data) for data in _data_of_each_kind(path[0])):
            yield Finding((name,), "sets nothing", suggest_name(name, variable_names()))


def variable_names() -> list[str]:
    """Return the name of every variable that sets something."""
    return sorted({ENV_PREFIX + NESTED.join(path).upper() for path in field_paths(_SettingsData)})


def _data_of_each_kind(section: str) -> Iterator[dict[str, Any]]:
    field = _SettingsData.model_fields.get(section)
    for model in models_in(field.annotation) if field else ():
        kind = model.model_fields.get("kind")
        yield {section: {"kind": kind.default}} if kind else {}
    yield {}


def _find_field(path: list[str], data: Mapping[str, Any]) -> FieldInfo | None:
    """Return the field at a path, in the kinds that the data choose; ``None`` if there is none."""
    models: list[type[BaseModel]] = [_SettingsData]
    field: FieldInfo | None = None
    for name in path:
        fields = [model.model_fields[name] for model in models if name in model.model_fields]
        if not fields:
            return field if field is not None and _is_mapping(field) else None
        field, data = fields[0], mapping_at(data, name)
        models = chosen_models(field, data)
    return field


def _is_mapping(field: FieldInfo) -> bool:
    """Report whether a field is a mapping, whose keys are the user's own."""
    annotation = field.annotation
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return get_origin(annotation) is dict
