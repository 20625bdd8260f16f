"""Fields of pydantic models: the sections they name, the section that a `kind` chooses, and all paths."""

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Return the models that an annotation names."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)


def chosen_models(field: FieldInfo, data: Any) -> list[type[BaseModel]]:
    """Return the models of a field that the data's `kind`, or its default, leaves to choose from."""
    models = list(models_in(field.annotation))
    default = getattr(field.default, "kind", None)
    kind = data.get("kind", default) if isinstance(data, Mapping) else default
    if len(models) == 1:
        return models
    return [model for model in models if getattr(model.model_fields.get("kind"), "default", None) == kind]


def field_paths(model: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    """Return the path of every field, sections included."""
    for name, field in model.model_fields.items():
        yield (name,)
        for inner in models_in(field.annotation):
            yield from ((name, *rest) for rest in field_paths(inner))
