"""Find what of an OpenAPI document breaks programs that were written against an earlier one.

A request that was accepted must still be, and an answer must hold what it held. New routes, new optional inputs, new
fields and new values of answers break nothing.

The well-kept tool for this, oasdiff, is a Go program, which a test of this repository cannot install.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Schema = Mapping[str, Any]
_VERBS = ("get", "put", "post", "delete", "patch", "head", "options")
# Of each the least and the greatest: an input that was within them has to stay within them.
_LEAST = ("minLength", "minimum", "exclusiveMinimum", "minItems", "minProperties")
_MOST = ("maxLength", "maximum", "exclusiveMaximum", "maxItems", "maxProperties")
_EXACT = ("pattern", "multipleOf", "uniqueItems", "const")


def breaking_changes(old: Schema, new: Schema) -> Sequence[str]:
    """Return a line for each change that breaks programs, sorted; the same change always has the same line."""
    return sorted(set(_Comparison(old, new).changes()))


@dataclass(frozen=True, slots=True)
class _Comparison:
    old: Schema
    new: Schema

    def changes(self) -> Iterator[str]:
        for path, calls in self.old["paths"].items():
            for verb in (verb for verb in _VERBS if verb in calls):
                now = self.new["paths"].get(path, {}).get(verb)
                route = f"{verb.upper()} {path}"
                if now is None:
                    yield f"{route}: is gone"
                else:
                    yield from self._of_parameters(calls[verb], now, route)
                    yield from self._of_body(calls[verb].get("requestBody"), now.get("requestBody"), route)
                    yield from self._of_answers(calls[verb]["responses"], now["responses"], route)

    def _of_parameters(self, old: Schema, new: Schema, route: str) -> Iterator[str]:
        before, after = ({(one["in"], one["name"]): one for one in call.get("parameters", ())} for call in (old, new))
        for (place, name), parameter in before.items():
            if (place, name) not in after:
                yield f"{route}: {place} {name}: is gone"
            else:
                now = after[place, name]
                yield from self._of_input(parameter["schema"], now["schema"], f"{route}: {place} {name}")
        for (place, name), parameter in after.items():
            was_required = before.get((place, name), {}).get("required", False)
            if parameter.get("required", False) and not was_required:
                yield f"{route}: {place} {name}: is required now"

    def _of_body(self, old: Schema | None, new: Schema | None, route: str) -> Iterator[str]:
        if new is not None and new.get("required", False) and not (old or {}).get("required", False):
            yield f"{route}: body: is required now"
        if old is None:
            return
        for kind, content in old["content"].items():
            if new is None or kind not in new["content"]:
                yield f"{route}: body: {kind} is accepted no longer"
            else:
                yield from self._of_input(content["schema"], new["content"][kind]["schema"], f"{route}: body")

    def _of_answers(self, old: Schema, new: Schema, route: str) -> Iterator[str]:
        for status in (status for status in old if status.startswith("2")):
            if status not in new:
                yield f"{route}: answer {status}: is gone"
                continue
            for kind, content in old[status].get("content", {}).items():
                now = new[status].get("content", {}).get(kind)
                if now is None:
                    yield f"{route}: answer {status}: {kind} is gone"
                else:
                    place = f"{route}: answer {status}"
                    yield from self._of_output(content.get("schema", {}), now.get("schema", {}), place)

    def _of_input(self, old: Schema, new: Schema, place: str, seen: frozenset[Any] = frozenset()) -> Iterator[str]:
        """Yield why an input that was accepted is refused now."""
        pair = (old.get("$ref"), new.get("$ref"))
        if pair in seen:
            return
        seen = seen if pair == (None, None) else seen | {pair}
        before, after = self._alternatives(old, self.old), self._alternatives(new, self.new)
        for one in before:
            yield from _fewest([list(self._narrowed(one, other, place, seen)) for other in after])

    def _narrowed(self, old: Schema, new: Schema, place: str, seen: frozenset[Any]) -> Iterator[str]:
        if lost := _types(old) - _types(new):
            yield f"{place}: {', '.join(sorted(lost))} is accepted no longer"
            return
        if "enum" in new:
            gone = [value for value in old.get("enum", ()) if value not in new["enum"]]
            yield from (f"{place}: {value!r} is accepted no longer" for value in gone)
            if "enum" not in old:
                yield f"{place}: only some values are accepted now"
        yield from (f"{place}: {name} is {new[name]} now" for name in _tightened(old, new))
        if new.get("format", old.get("format")) != old.get("format"):
            yield f"{place}: has to be a {new['format']} now"
        fields, known = old.get("properties", {}), new.get("properties", {})
        for name, schema in fields.items():
            if name in known:
                yield from self._of_input(schema, known[name], f"{place}.{name}", seen)
            elif new.get("additionalProperties", True) is False:
                yield f"{place}.{name}: is gone"
        for name in new.get("required", ()):
            if name not in old.get("required", ()):
                yield f"{place}.{name}: is required now"
        yield from self._of_parts(old, new, place, seen, self._of_input)

    def _of_output(self, old: Schema, new: Schema, place: str, seen: frozenset[Any] = frozenset()) -> Iterator[str]:
        """Yield why an answer is no longer as it was described."""
        pair = (old.get("$ref"), new.get("$ref"))
        if pair in seen:
            return
        seen = seen if pair == (None, None) else seen | {pair}
        before, after = self._alternatives(old, self.old), self._alternatives(new, self.new)
        for other in after:
            yield from _fewest([list(self._widened(one, other, place, seen)) for one in before])

    def _widened(self, old: Schema, new: Schema, place: str, seen: frozenset[Any]) -> Iterator[str]:
        if more := _types(new) - _types(old):
            yield f"{place}: may be {', '.join(sorted(more))} now"
            return
        if "enum" in old:
            gone = [value for value in old["enum"] if value not in new.get("enum", old["enum"])]
            yield from (f"{place}: {value!r} is gone" for value in gone)
            if "enum" not in new:
                yield f"{place}: may be any value now"
        if old.get("format", new.get("format")) != new.get("format"):
            yield f"{place}: is no {old['format']} any longer"
        fields, known = old.get("properties", {}), new.get("properties", {})
        for name, schema in fields.items():
            if name not in known:
                yield f"{place}.{name}: is gone"
                continue
            if name in old.get("required", ()) and name not in new.get("required", ()):
                yield f"{place}.{name}: may be missing now"
            yield from self._of_output(schema, known[name], f"{place}.{name}", seen)
        yield from self._of_parts(old, new, place, seen, self._of_output)

    def _of_parts(self, old: Schema, new: Schema, place: str, seen: frozenset[Any], compare: Any) -> Iterator[str]:
        """Yield the changes of a list's items and of a map's values."""
        if "items" in old and "items" in new:
            yield from compare(old["items"], new["items"], f"{place}[]", seen)
        values = [schema.get("additionalProperties") for schema in (old, new)]
        if all(isinstance(value, Mapping) for value in values):
            yield from compare(*values, f"{place}.*", seen)

    def _alternatives(self, schema: Schema, document: Schema) -> Sequence[Schema]:
        """Return the schemas of which a value has to fit one, each without references."""
        if "$ref" in schema:
            found = document
            for name in schema["$ref"].removeprefix("#/").split("/"):
                found = found[name]
            return self._alternatives(found, document)
        several = schema.get("anyOf") or schema.get("oneOf")
        if several is None:
            return [schema]
        return [part for one in several for part in self._alternatives(one, document)]


def _fewest(changes: Sequence[list[str]]) -> list[str]:
    """Return the changes towards the alternative that fits best."""
    return min(changes, key=len, default=[])


def _types(schema: Schema) -> frozenset[str]:
    """Return the types of JSON that a schema accepts; none named means all."""
    named = schema.get("type", ["array", "boolean", "null", "number", "object", "string"])
    found = {named} if isinstance(named, str) else {*named}
    return frozenset(found | ({"integer"} if "number" in found else set()))


def _tightened(old: Schema, new: Schema) -> Iterator[str]:
    yield from (name for name in _LEAST if name in new and new[name] > old.get(name, float("-inf")))
    yield from (name for name in _MOST if name in new and new[name] < old.get(name, float("inf")))
    yield from (name for name in _EXACT if name in new and new[name] != old.get(name))
