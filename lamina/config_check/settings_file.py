"""Lamina's own settings in a file: strictly, all mistakes at once, with the environment they will meet."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from lamina.config_check.findings import Finding, Place, meant, warning
from lamina.config_check.shapes import shown
from lamina.core.masking import is_secret, masked
from lamina.settings import ENV_PREFIX, OTHER_VARIABLES, Settings

ELSEWHERE = "from-elsewhere"
"""Stands for a value that a Secret or the environment will give."""
DATABASE = f"postgresql://{ELSEWHERE}"
"""Stands for a URL that holds a password, and is therefore not missed in a file."""
NESTED = "__"
# The settings as they are, without the sources that `Settings` reads by itself.
_fields: dict[str, Any] = {name: (field.annotation, field) for name, field in Settings.model_fields.items()}
_Plain: type[BaseModel] = create_model("Plain", __config__=ConfigDict(extra="forbid", frozen=True), **_fields)
Variables = Mapping[str, str | None]
"""Environment variables; ``None`` where a Secret gives the value."""


def read_settings(data: Any, variables: Variables | None = None) -> tuple[Settings | None, list[Finding]]:
    """Return the settings, if they are valid, and what is wrong with them.

    Args:
        data: What the file says; nothing at all is fine.
        variables: The environment, which wins; variables of others in it are left alone.
    """
    if not isinstance(data, Mapping) and data is not None:
        return None, [Finding((), "is no mapping of settings", "write `section:` and its keys below it")]
    found = [*secrets_in(data or {}), *unknown_variables(variables or {})]
    told = _overlaid(_with_kinds(data or {}), variables or {})
    try:
        return cast("Settings", _Plain.model_validate(_with_secrets(told))), found
    except ValidationError as error:
        return None, [*found, *(_finding(item, told) for item in error.errors())]


def field_of(path: Iterable[str], data: Mapping[str, Any]) -> FieldInfo | None:
    """Return the field at a path, in the kinds that the data choose; ``None`` if there is none."""
    models: list[type[BaseModel]] = [_Plain]
    field: FieldInfo | None = None
    for name in path:
        fields = [model.model_fields[name] for model in models if name in model.model_fields]
        if not fields:
            return field if field is not None and _is_open(field) else None
        field = fields[0]
        data = _inner(data, name)
        models = _chosen(field, data)
    return field


def secrets_in(data: Mapping[str, Any], place: Place = ()) -> Iterator[Finding]:
    """Warn of secrets in a file, which belong in the environment or a Secret."""
    for name, value in data.items():
        inner = (*place, str(name))
        if isinstance(value, Mapping):
            yield from secrets_in(value, inner)
        elif isinstance(value, str) and (_is_key(name, value) or has_password(value)):
            variable = ENV_PREFIX + NESTED.join(map(str, inner)).upper()
            yield warning(inner, "is a secret in a file", f"take it out, and set {variable} from a Secret")


def has_password(value: str) -> bool:
    """Tell whether a URL holds a password, before its host or in what follows it."""
    _, found, rest = value.partition("://")
    user_info, at, _ = rest.partition("@")
    is_before = bool(at) and ":" in user_info and not user_info.endswith(":")
    return bool(found) and (is_before or masked(f"?{rest.partition('?')[2]}") != f"?{rest.partition('?')[2]}")


def _is_key(name: object, value: str) -> bool:
    return bool(value) and is_secret(name)


def _with_kinds(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data, with the kind that a section has by default where it says none."""
    return {name: _with_kind(str(name), section) for name, section in data.items()}


def _with_kind(name: str, section: Any) -> Any:
    default = getattr(Settings.model_fields.get(name), "default", None)
    if isinstance(section, Mapping) and "kind" not in section and hasattr(default, "kind"):
        return {"kind": getattr(default, "kind", None), **section}
    return section


def _with_secrets(data: dict[str, Any]) -> dict[str, Any]:
    """Return the data, with the URLs of the database that the environment has to give."""
    postgres = data.get("postgres")
    if not isinstance(postgres, Mapping) or postgres.get("kind") != "server":
        return data
    needed = ("url", "direct_url") if postgres.get("pooling") == "transaction" else ("url",)
    return {**data, "postgres": {**dict.fromkeys(needed, DATABASE), **postgres}}


def _overlaid(data: dict[str, Any], variables: Variables) -> dict[str, Any]:
    for name, value in variables.items():
        path = path_of(name)
        if path is not None and field_of(path, data) is not None:
            data = _replaced(data, path, _value_of(value))
    return _with_kinds(data)


def path_of(variable: str) -> list[str] | None:
    """Return the path of the setting that a variable sets; ``None`` if it is another's."""
    if not variable.startswith(ENV_PREFIX) or variable.startswith(OTHER_VARIABLES):
        return None
    return variable.removeprefix(ENV_PREFIX).lower().split(NESTED)


def _value_of(value: str | None) -> Any:
    """Return what a variable says: JSON where it is a mapping or a list, as pydantic reads it."""
    if value is None:
        return f"http://{ELSEWHERE}"
    if value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except json.JSONDecodeError:
            return value
    return value


def _replaced(data: Mapping[str, Any], path: list[str], value: Any) -> dict[str, Any]:
    name, *rest = path
    return {**data, name: _replaced(_inner(data, name), rest, value) if rest else value}


def unknown_variables(variables: Variables) -> Iterator[Finding]:
    """Return the variables with Lamina's prefix that set nothing."""
    for name in variables:
        path = path_of(name)
        if path is not None and not any(field_of(path, data) for data in _kinds_of(path[0])):
            yield Finding((name,), "sets nothing", meant(name, variable_names()))


def variable_names() -> list[str]:
    """Return the name of every variable that sets something."""
    return sorted({ENV_PREFIX + NESTED.join(path).upper() for path in _paths(_Plain)})


def _paths(model: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        yield (name,)
        for inner in models_in(field.annotation):
            yield from ((name, *rest) for rest in _paths(inner))


def _kinds_of(section: str) -> Iterator[dict[str, Any]]:
    """Return data that choose each kind of a section in turn."""
    field = _Plain.model_fields.get(section)
    for model in [] if field is None else models_in(field.annotation):
        kind = model.model_fields.get("kind")
        yield {section: {"kind": kind.default}} if kind else {}
    yield {}


def _chosen(field: FieldInfo, data: Mapping[str, Any]) -> list[type[BaseModel]]:
    models = list(models_in(field.annotation))
    kind = data.get("kind", getattr(field.default, "kind", None))
    return [model for model in models if len(models) == 1 or model.model_fields["kind"].default == kind]


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Return the sections that an annotation names."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)


def _is_open(field: FieldInfo) -> bool:
    """Tell whether the keys below a field are the writer's own."""
    annotation = field.annotation
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return get_origin(annotation) is dict


def _inner(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    return value if isinstance(value, Mapping) else {}


def _finding(error: ErrorDetails, data: Mapping[str, Any]) -> Finding:
    place, model, field = _located(error["loc"], data)
    match error["type"]:
        case "extra_forbidden":
            return Finding(place, "is not known", _elsewhere(str(place[-1]), model))
        case "missing":
            return Finding(place, "is missing", f"write it: {_said_of(field)}")
        case "union_tag_invalid" | "union_tag_not_found":
            return _wrong_kind(place, error)
        case "value_error":
            what, _, remedy = error["msg"].removeprefix("Value error, ").partition("; ")
            return Finding(place, what, remedy or "correct one of them")
    expected = error["msg"].replace("Input ", "it ").lower()
    quotes = ", in quotes" if isinstance(error["input"], bool) else ""
    return Finding(place, f"is {shown(error['input'], place)}", f"{expected}{quotes} ({_said_of(field)})")


def _wrong_kind(place: Place, error: ErrorDetails) -> Finding:
    context = error.get("ctx", {})
    kinds = context.get("expected_tags", "").replace("'", "")
    if "tag" not in context:
        return Finding((*place, "kind"), "is missing", f"choose one of {kinds}")
    tag = context["tag"]
    if tag == "False":
        return Finding((*place, "kind"), "is false", 'write "off" in quotes: YAML reads off as false')
    return Finding((*place, "kind"), f"is {shown(tag, place)}", f"choose one of {kinds}")


def _located(loc: tuple[int | str, ...], data: Any) -> tuple[Place, type[BaseModel] | None, FieldInfo | None]:
    """Return the place of an error without the names of kinds in it, with the section and the field it is in."""
    place: list[int | str] = []
    model: type[BaseModel] | None = _Plain
    field: FieldInfo | None = None
    for part in loc:
        if place and isinstance(data, Mapping) and data.get("kind") == part and part not in data:
            continue
        place.append(part)
        field = model.model_fields.get(str(part)) if model else None
        data = data.get(part) if isinstance(data, Mapping) else None
        chosen = _chosen(field, data if isinstance(data, Mapping) else {}) if field else []
        parent, model = model, chosen[0] if chosen else None
    return tuple(place), parent, field


def _elsewhere(name: str, model: type[BaseModel] | None) -> str:
    """Return the remedy for an unknown key: its like here, or where it stands."""
    known = model.model_fields if model else {}
    places = [".".join(path) for path in _paths(_Plain) if path[-1] == name]
    close = meant(name, sorted(known))
    if places and not close.startswith("did you mean"):
        return f"it stands in {places[0]}"
    return close


def _said_of(field: FieldInfo | None) -> str:
    said = (field.description if field else None) or "see lamina/settings.py"
    return said.rstrip(".")
