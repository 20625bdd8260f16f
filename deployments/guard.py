"""Hold every call of a bound key within its bounds, by the declaration of its route."""

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from pydantic import BaseModel

from deployments.access import Access, declare
from deployments.routes.dependencies import WriteKey
from deployments.services import Services
from lamina.core.principals import (
    BoundRule,
    Principal,
    Reach,
    Rules,
    ScopeField,
    Verb,
    bound_ids,
    reach_of,
    refuse_outside,
)
from lamina.errors import NotFound, OutsideBounds
from lamina.text.hygiene import clean_id

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Model = TypeVar("Model", bound=BaseModel)
Arguments = Mapping[str, Any]
Endpoint = Callable[Parameters, Awaitable[Result]]


def allow(access: Access) -> Callable[[Endpoint[Parameters, Result]], Endpoint[Parameters, Result]]:
    """Return a decorator that declares a route's access and holds its calls within the bounds of their keys.

    The function gets the request as if its sender had named the ids that the key is bound to.
    """

    def guard(endpoint: Endpoint[Parameters, Result]) -> Endpoint[Parameters, Result]:
        @wraps(endpoint)
        async def guarded(*args: Parameters.args, **arguments: Parameters.kwargs) -> Result:
            principal = arguments.get("principal")
            if isinstance(principal, Principal) and principal.bounds.bound_fields():
                arguments.update(_within_bounds(access, principal, arguments))
                await _refuse_foreign(access, principal, arguments)
            return await endpoint(*args, **arguments)

        declare(guarded, access)
        return guarded

    return guard


def _within_bounds(access: Access, principal: Principal, arguments: Arguments) -> dict[str, Any]:
    """Return the arguments with the ids of the bounds filled in.

    Raises:
        OutsideBounds: If the request reaches further than the key.
    """
    for name, field in access.beside.items():
        path = name.rpartition(".")[2]
        if (id_ := getattr(arguments["body"], path)) is not None:
            refuse_outside(field, clean_id(id_, path), principal.bounds.of(field), path)
    if access.items is not None:
        body = arguments["body"]
        items = [_fill(item, _filled(access, principal, _named_by(item))) for item in getattr(body, access.items)]
        return {"body": body.model_copy(update={access.items: items})}
    filled = _filled(access, principal, _named(arguments))
    changed: dict[str, Any] = {
        name: _fill(value, filled) for name, value in arguments.items() if isinstance(value, BaseModel)
    }
    changed |= {field.value: id_ for field, id_ in filled.items() if field.value in arguments}
    write_key = arguments.get("write_key")
    return changed | ({"write_key": write_key.of_bounds(principal.bounds)} if isinstance(write_key, WriteKey) else {})


def _filled(access: Access, principal: Principal, named: Mapping[ScopeField, str | None]) -> dict[ScopeField, str]:
    if access.of is None:
        return bound_ids(principal.bounds, access.rules, named)
    # The things that are named by id tell the ids that the request does not have.
    rules = {
        field: rule if field in named or rule is BoundRule.REFUSED else BoundRule.COMMON
        for field, rule in access.rules.items()
    }
    return bound_ids(principal.bounds, rules, named)


async def _refuse_foreign(access: Access, principal: Principal, arguments: Arguments) -> None:
    """Refuse ids of things that the key does not reach.

    Raises:
        NotFound: For something that the key does not see, as if it were not there.
        OutsideBounds: For something that it sees and may not change.
    """
    if access.of is None:
        return
    services, found = arguments["services"], arguments.get(access.ids)
    assert isinstance(services, Services)  # noqa: S101 - injected
    ids = [found] if found is not None else list(getattr(arguments["body"], access.ids))
    named = _named(arguments)
    rules: Rules = {field: rule for field, rule in access.rules.items() if field not in named}
    owners = await services.owners.find(principal.tenant, access.of, ids, principal.bounds.users)
    for id_ in ids:
        owner = owners.get(id_)
        reach, field = (Reach.HIDDEN, None) if owner is None else reach_of(owner, principal.bounds, rules)
        if reach is Reach.HIDDEN:
            raise NotFound(access.of.value, str(id_))
        if reach is Reach.COMMON and field is not None and access.verb is not Verb.READ:
            value = getattr(owner, field.value)
            whose = f"belongs to no {field.value}" if value is None else f"belongs to {value}"
            raise OutsideBounds(
                field.value, f"{access.of.value} {id_} {whose}; use a key that is not bound to {field.value}s"
            )


def _named(arguments: Arguments) -> dict[ScopeField, str | None]:
    """Return the scope fields that the request has, with ``None`` for one that it leaves out."""
    named = {field: arguments[field.value] for field in ScopeField if field.value in arguments}
    for value in arguments.values():
        if isinstance(value, BaseModel):
            named |= _named_by(value)
    return named


def _named_by(model: BaseModel) -> dict[ScopeField, str | None]:
    fields = [field for field in ScopeField if field.value in type(model).model_fields]
    return {field: getattr(model, field.value) if field.value in model.model_fields_set else None for field in fields}


def _fill(model: Model, filled: Mapping[ScopeField, str]) -> Model:
    has = type(model).model_fields
    return model.model_copy(update={field.value: id_ for field, id_ in filled.items() if field.value in has})
