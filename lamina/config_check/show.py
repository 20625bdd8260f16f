"""The settings in effect, as a YAML file that says of each line what it is."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, SecretStr

from lamina.config_check.settings_file import has_password
from lamina.config_check.shapes import shown
from lamina.core.masking import is_secret, masked


def lines_of(section: BaseModel, depth: int = 0) -> Iterator[str]:
    """Return the lines of a YAML file that sets what is set; secrets stand in it as comments, without their values."""
    indent = "  " * depth
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield f"{indent}{name}:  # {_first_line(type(value))}"
            yield from lines_of(value, depth + 1)
        else:
            yield f"{indent}{_line(name, value)}{_remark(field.description, value, field.get_default())}"


def _line(name: str, value: Any) -> str:
    if isinstance(value, SecretStr):
        return f'{name}: ""' if not value.get_secret_value() else f"# {name}: is set, and not shown"
    if isinstance(value, str) and has_password(value):
        return f"# {name}: {shown(value, ())}"
    hidden = list(_hidden(value)) if isinstance(value, Mapping) else []
    said = f"{name}: {_flow(_plain(value))}"
    return f"{said}  # without {', '.join(hidden)}: set, and not shown" if hidden else said


def _hidden(value: Mapping[Any, Any]) -> Iterator[str]:
    """Return the keys of a mapping, which are the user's own, whose values are left out."""
    for key, item in value.items():
        if is_secret(key) or (isinstance(item, str) and masked(item) != item):
            yield str(key)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        hidden = set(_hidden(value))
        return {str(key): _plain(item) for key, item in value.items() if str(key) not in hidden}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _flow(value: Any) -> str:
    """Return a value in one line of YAML."""
    said = yaml.safe_dump(value, default_flow_style=True, width=10_000, allow_unicode=True)
    return said.removesuffix("\n...\n").rstrip("\n")


def _remark(description: str | None, value: Any, default: Any) -> str:
    said = (description or "").rstrip(".")
    if isinstance(value, SecretStr) or value == default or default is None:
        return f"  # {said}" if said else ""
    return f"  # {said}; by default {_flow(_plain(default))}" if said and not _is_undefined(default) else ""


def _is_undefined(default: Any) -> bool:
    return type(default).__name__ == "PydanticUndefinedType"


def _first_line(model: type[BaseModel]) -> str:
    return (model.__doc__ or "").strip().split("\n")[0].rstrip(".")
