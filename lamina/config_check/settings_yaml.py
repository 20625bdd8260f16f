"""Settings in effect, as a YAML file with a comment on each line."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from lamina.config_check.findings import describe_value
from lamina.config_check.settings_file import has_password
from lamina.core.masking import is_secret, mask_secrets


def settings_as_yaml(section: BaseModel, depth: int = 0) -> Iterator[str]:
    """Return the lines of a YAML file that sets the same; secrets are comments in it, without their values."""
    indent = "  " * depth
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield f"{indent}{name}:  # {summary_of(type(value))}"
            yield from settings_as_yaml(value, depth + 1)
        else:
            yield f"{indent}{_format_setting(name, value)}{_format_comment(field, value)}"


def _format_setting(name: str, value: Any) -> str:
    if isinstance(value, SecretStr):
        return f'{name}: ""' if not value.get_secret_value() else f"# {name}: is set, and not shown"
    if isinstance(value, str) and has_password(value):
        return f"# {name}: {describe_value(value)}"
    hidden = list(_secret_keys(value)) if isinstance(value, Mapping) else []
    line = f"{name}: {format_inline(value)}"
    return f"{line}  # without {', '.join(hidden)}: set, and not shown" if hidden else line


def _secret_keys(value: Mapping[Any, Any]) -> Iterator[str]:
    """Return the keys of a mapping, which are the user's own, whose values must not be shown."""
    for key, item in value.items():
        if is_secret(key) or (isinstance(item, str) and mask_secrets(item) != item):
            yield str(key)


def _without_secrets(value: Any) -> Any:
    """Return a value as YAML can write it, without the secrets in mappings."""
    if isinstance(value, Mapping):
        hidden = set(_secret_keys(value))
        return {str(key): _without_secrets(item) for key, item in value.items() if str(key) not in hidden}
    if isinstance(value, tuple):
        return [_without_secrets(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def format_inline(value: Any) -> str:
    """Return a value in one line of YAML, without the secrets in mappings."""
    text = yaml.safe_dump(_without_secrets(value), default_flow_style=True, width=10_000, allow_unicode=True)
    return text.removesuffix("\n...\n").rstrip("\n")


def _format_comment(field: FieldInfo, value: Any) -> str:
    description, default = (field.description or "").rstrip("."), field.get_default()
    if not description:
        return ""
    is_default = isinstance(value, SecretStr) or value == default or default in (None, PydanticUndefined)
    return f"  # {description}" if is_default else f"  # {description}; by default {format_inline(default)}"


def summary_of(model: type[BaseModel]) -> str:
    """Return the first line of a section's documentation."""
    return (model.__doc__ or "").strip().split("\n")[0].rstrip(".")
