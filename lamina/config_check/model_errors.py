"""Errors of pydantic as findings: with the place as the user wrote it, and a remedy from the model."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from lamina.config_check.fields import chosen_models, field_paths
from lamina.config_check.findings import Finding, Place, describe_value, suggest_name


def describe_errors(error: ValidationError, model: type[BaseModel], data: Any) -> list[Finding]:
    """Return a finding for each error of a validation.

    Args:
        error: The failed validation.
        model: The model that refused the data.
        data: The refused data.
    """
    return [_describe_error(item, model, data) for item in error.errors()]


def _describe_error(error: ErrorDetails, model: type[BaseModel], data: Any) -> Finding:
    place, section, field = _locate(error["loc"], model, data)
    match error["type"]:
        case "extra_forbidden":
            return Finding(place, "is not known", _suggest_key(str(place[-1]), section, model))
        case "missing":
            return Finding(place, "is missing", f"write it{_describe_field(field, ': {}')}")
        case "union_tag_invalid" | "union_tag_not_found":
            return _describe_wrong_kind(place, error)
        case "value_error":
            fault, _, remedy = error["msg"].removeprefix("Value error, ").partition("; ")
            return Finding(place, fault, remedy or "correct one of them")
    expected = error["msg"].replace("Input ", "it ")
    expected = f"{expected[:1].lower()}{expected[1:]}"
    quotes = ", in quotes" if isinstance(error["input"], bool) else ""
    remedy = f"{expected}{quotes}{_describe_field(field, ' ({})')}"
    return Finding(place, f"is {describe_value(error['input'], place)}", remedy)


def _describe_wrong_kind(place: Place, error: ErrorDetails) -> Finding:
    context = error.get("ctx", {})
    kinds = context.get("expected_tags", "").replace("'", "")
    tag = context.get("tag")
    if tag is None:
        return Finding((*place, "kind"), "is missing", f"choose one of {kinds}")
    if tag == "False":
        return Finding((*place, "kind"), "is false", 'write "off" in quotes: YAML reads off as false')
    return Finding((*place, "kind"), f"is {describe_value(tag, place)}", f"choose one of {kinds}")


def _locate(
    loc: tuple[int | str, ...], model: type[BaseModel], data: Any
) -> tuple[Place, type[BaseModel] | None, FieldInfo | None]:
    """Return the place of an error with its section and field; pydantic's place names the kinds of unions, too."""
    place: list[int | str] = []
    section: type[BaseModel] | None = None
    inner: type[BaseModel] | None = model
    field: FieldInfo | None = None
    for part in loc:
        if place and isinstance(data, Mapping) and data.get("kind") == part and part not in data:
            continue
        place.append(part)
        if isinstance(part, int):  # An item of a list, whose annotation named its model already.
            data = data[part] if isinstance(data, list) and part < len(data) else None
            continue
        section, field = inner, inner.model_fields.get(part) if inner else None
        data = data.get(part) if isinstance(data, Mapping) else None
        chosen = chosen_models(field, data) if field else []
        inner = chosen[0] if chosen else None
    return tuple(place), section, field


def _suggest_key(name: str, section: type[BaseModel] | None, model: type[BaseModel]) -> str:
    """Return the remedy for an unknown key: a similar one in its section, or the place where this one is known."""
    known = sorted(section.model_fields) if section else []
    suggestion = suggest_name(name, known)
    places = [".".join(path) for path in field_paths(model) if path[-1] == name]
    if places and not suggestion.startswith("did you mean"):
        return f"it stands in {places[0]}"
    return suggestion


def _describe_field(field: FieldInfo | None, template: str) -> str:
    """Put the first sentence of a field's description into a template; nothing if it has none."""
    description = (field.description if field else None) or ""
    return template.format(description.partition(". ")[0].rstrip(".")) if description else ""
