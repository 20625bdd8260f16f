"""Merge statements about a user into the profile: of two, the one that was made later holds.

The order of arrival does not count: an import of the past changes no field that was stated later, and brings back no
value that was withdrawn since. Of two statements of one time, the one that arrives later holds.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain, groupby
from typing import Any

from lamina.core.json_values import canonical_json
from lamina.text.instructions import instruction_topic, is_ended_by
from lamina.text.normal_forms import normalised

DOMAINS = "domains"
"""The field of fields by domain, as ``{"engineering": {"stack": ["Go"]}}``: each of them has a time of its own."""
INSTRUCTIONS = "instructions"
"""The field of standing instructions: of two about the same, the later one holds."""


@dataclass(frozen=True, slots=True)
class ProfileStatement:
    """A change of a profile that somebody stated.

    Args:
        patch: As :func:`merge` takes it.
        withdrawn: Values that hold no longer, by field; a field of another value stays as it is.
        stated_at: When it was said; ``None`` if the time is that of its arrival.
        source: Of which memory it was drawn.
    """

    patch: Mapping[str, Any] = field(default_factory=dict)
    withdrawn: Mapping[str, Sequence[str]] = field(default_factory=dict)
    stated_at: datetime | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class FieldTimes:
    """The times of the statements about one field, in ISO 8601, UTC, to the microsecond: they compare as text.

    Args:
        whole: When the field was stated, or deleted; empty if never.
        values: When each single value was stated, or withdrawn: an item of a list, or a value that ended.
    """

    whole: str = ""
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TimedDocument:
    """A profile's document, and when its fields were stated.

    Args:
        document: As callers read it.
        times: By field; a field that was withdrawn or deleted has times, too.
    """

    document: Mapping[str, Any]
    times: Mapping[str, FieldTimes] = field(default_factory=dict)

    def since(self, moment: datetime) -> "TimedDocument":
        """Return it with this time for the fields that have none: those that an older release wrote."""
        unknown = {key: value for key, value in self.document.items() if key not in self.times}
        at = timestamp(moment)
        filled = {
            key: FieldTimes(values={item_key(key, item): at for item in value})
            if isinstance(value, list)
            else FieldTimes(at)
            for key, value in unknown.items()
        }
        return replace(self, times={**self.times, **filled})


def taken_back(statements: Sequence[ProfileStatement], stated_at: datetime, source: str) -> list[ProfileStatement]:
    """Return the statement by which texts end that others stated, unless they were stated again later; else none."""
    values: dict[str, list[str]] = {}
    for statement in statements:
        domains = statement.patch.get(DOMAINS)
        fields = [statement.patch, *(domains.values() if isinstance(domains, dict) else ())]
        for key, value in chain.from_iterable(one.items() for one in fields if isinstance(one, Mapping)):
            told = value if isinstance(value, list) else [value]
            values.setdefault(key, []).extend(item for item in told if isinstance(item, str))
    withdrawn = {key: tuple(dict.fromkeys(found)) for key, found in values.items() if found}
    return [ProfileStatement(withdrawn=withdrawn, stated_at=stated_at, source=source)] if withdrawn else []


def verified_after(
    verified: AbstractSet[str],
    before: TimedDocument,
    after: TimedDocument,
    statements: Sequence[ProfileStatement],
    *,
    is_verified: bool,
) -> frozenset[str]:
    """Return the fields that are the word of the user, or of an admin, after statements that are so or not.

    A verified statement verifies a field that it begins, or whose whole value it states: a list that it adds to keeps
    what others put there. An unverified one takes the mark from every field that it changes.
    """
    old, new = ({key: canonical_json(value) for key, value in item.document.items()} for item in (before, after))
    if not is_verified:
        return frozenset(key for key in verified if key in new and new[key] == old.get(key))
    stated = {(key, canonical_json(value)) for item in statements for key, value in item.patch.items()}
    return frozenset(key for key in new if key in verified or key not in old or (key, new[key]) in stated)


def timestamp(moment: datetime) -> str:
    """Return a moment as text that sorts by time."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def value_key(value: object) -> str:
    """Return the identity of a value in the times of a field; texts that differ in case are one."""
    text = normalised("NFKC", " ".join(value.split())).casefold() if isinstance(value, str) else value
    return canonical_json(text)


def item_key(field_name: str, value: object) -> str:
    """Return the identity of a value of a field: an instruction is one with others about the same."""
    is_instruction = field_name == INSTRUCTIONS and isinstance(value, str)
    return value_key(instruction_topic(value)) if is_instruction and isinstance(value, str) else value_key(value)


def state(profile: TimedDocument, statements: Sequence[ProfileStatement], now: datetime) -> TimedDocument:
    """Return the profile after the statements, in any order of them; no argument changes.

    Args:
        profile: As it was, every field with a time.
        statements: Those of one time count in this order. Nothing is stated later than it arrives.
        now: The time of arrival; where the clock that wrote last was ahead, its time.
    """
    arrival = _arrival(profile, now)
    timed = [(timestamp(min(item.stated_at, now)) if item.stated_at else arrival, item) for item in statements]
    for at, statement in _joined(sorted(timed, key=lambda pair: pair[0])):
        for key, values in statement.withdrawn.items():
            profile = _withdraw_in_domains(_withdraw(profile, key, values, at), key, values, at)
        for key, value in statement.patch.items():
            profile = _take(profile, key, value, at)
    return profile


def revert(profile: TimedDocument, document: Mapping[str, Any], now: datetime) -> TimedDocument:
    """Return the profile with an earlier document; each difference counts as stated, or ended, now.

    Args:
        profile: As it was, every field with a time.
        document: As it was in an earlier version.
        now: The time of the call.
    """
    at = _arrival(profile, now)
    old, new = ({key: canonical_json(value) for key, value in item.items()} for item in (profile.document, document))
    changed = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    items = {key: (*_items(profile.document, key), *_items(document, key)) for key in changed}
    times = {key: FieldTimes(at, {item_key(key, item): at for item in items[key]}) for key in changed}
    return TimedDocument(document, {**profile.times, **times})


def until(profile: TimedDocument, moment: datetime) -> dict[str, Any]:
    """Return the fields that were stated by a moment; one that changed later is left out."""
    known: dict[str, Any] = {}
    for key, value in profile.document.items():
        times = profile.times.get(key, FieldTimes())
        match value:
            case list():
                kept: Any = [
                    item for item in value if times.values.get(item_key(key, item), times.whole) <= timestamp(moment)
                ]
            case dict() if key == DOMAINS:
                domains = {name: until(_domain(profile, name), moment) for name in value}
                kept = {name: fields for name, fields in domains.items() if fields}
            case _ if times.whole > timestamp(moment):
                continue
            case _:
                kept = value
        if kept or not isinstance(value, list | dict):
            known[key] = kept
    return known


def _items(document: Mapping[str, Any], key: str) -> Sequence[Any]:
    value = document.get(key)
    return value if isinstance(value, list) else ()


def _arrival(profile: TimedDocument, now: datetime) -> str:
    """Return the time of arrival; where the clock that wrote last was ahead, its time."""
    written = (at for times in profile.times.values() for at in (times.whole, *times.values.values()))
    return max([timestamp(now), *written])


def _joined(timed: Sequence[tuple[str, ProfileStatement]]) -> Iterator[tuple[str, ProfileStatement]]:
    """Yield the statements in their order, those that only add to the same list at the same time as one.

    Each is compared with all of its list: twenty thousand of one turn would take minutes.
    """
    for (at, key), group in groupby(timed, key=lambda pair: (pair[0], _list_added_to(pair[1]))):
        if key is None:
            yield from group
            continue
        first, *rest = (statement.patch[key] for _, statement in group)
        seen = {value_key(item) for item in first}
        items = list(first)
        for item in chain.from_iterable(rest):
            if (found := value_key(item)) not in seen:  # The first spelling of an item stays.
                seen.add(found)
                items.append(item)
        yield at, ProfileStatement({key: items})


def _list_added_to(statement: ProfileStatement) -> str | None:
    """Return the field to which a statement adds items, if it does nothing else."""
    if statement.withdrawn or len(statement.patch) != 1:
        return None
    ((key, value),) = statement.patch.items()
    return key if isinstance(value, list) else None


def _take(profile: TimedDocument, key: str, value: object, at: str) -> TimedDocument:
    match value:
        case list():
            return _add_items(profile, key, value, at)
        case dict() if key == DOMAINS and all(isinstance(fields, dict) for fields in value.values()):
            for domain, fields in value.items():
                profile = _take_in_domain(profile, domain, fields, at)
            return profile
        case _:
            return _assign(profile, key, value, at)


def _take_in_domain(profile: TimedDocument, domain: str, fields: Mapping[str, Any], at: str) -> TimedDocument:
    """Return the profile after a statement about fields of a domain, each of which has times of its own."""
    whole, inner = profile.times.get(DOMAINS, FieldTimes()), _domain(profile, domain)
    if at < whole.whole:  # All domains were deleted since, or written by a release that knew no times of theirs.
        return profile
    for key, value in fields.items():
        # A value may have been withdrawn that was said of no domain.
        ended = FieldTimes(values=profile.times.get(key, FieldTimes()).values)
        known = inner.times if key in inner.times else {**inner.times, key: ended}
        inner = _take(replace(inner, times=known), key, value, at)
    return _with_domain(profile, domain, inner)


def _withdraw_in_domains(profile: TimedDocument, key: str, values: Sequence[str], at: str) -> TimedDocument:
    for domain in _domains(profile):
        inner = _domain(profile, domain)
        if key in inner.document:
            profile = _with_domain(profile, domain, _withdraw(inner, key, values, at))
    return profile


def _domains(profile: TimedDocument) -> Mapping[str, Any]:
    domains = profile.document.get(DOMAINS)
    return domains if isinstance(domains, dict) else {}


def _domain(profile: TimedDocument, domain: str) -> TimedDocument:
    fields, prefix = _domains(profile).get(domain), _prefix(domain)
    times = {key.removeprefix(prefix): item for key, item in profile.times.items() if key.startswith(prefix)}
    return TimedDocument(fields if isinstance(fields, dict) else {}, times)


def _with_domain(profile: TimedDocument, domain: str, inner: TimedDocument) -> TimedDocument:
    domains = {name: item for name, item in {**_domains(profile), domain: dict(inner.document)}.items() if item}
    profile = _with_field(profile, DOMAINS, domains or None, profile.times.get(DOMAINS, FieldTimes()))
    times = {_prefix(domain) + key: item for key, item in inner.times.items()}
    return replace(profile, times={**profile.times, **times})


def _prefix(domain: str) -> str:
    return f"{DOMAINS}/{domain}/"


def _withdraw(profile: TimedDocument, key: str, values: Sequence[str], at: str) -> TimedDocument:
    times = profile.times.get(key, FieldTimes())
    ended = {found for value in values if times.values.get(found := item_key(key, value), "") <= at}
    if key == INSTRUCTIONS:
        ended |= {
            found
            for item in _items(profile.document, key)
            if any(isinstance(item, str) and is_ended_by(item, value) for value in values)
            and times.values.get(found := item_key(key, item), "") <= at
        }
    match profile.document.get(key):
        case list() as items:
            left: object = [item for item in items if item_key(key, item) not in ended] or None
        case value:
            left = None if item_key(key, value) in ended and times.whole <= at else value
    return _with_field(profile, key, left, replace(times, values={**times.values, **dict.fromkeys(sorted(ended), at)}))


def _add_items(profile: TimedDocument, key: str, items: list[Any], at: str) -> TimedDocument:
    times = profile.times.get(key, FieldTimes())
    old = profile.document.get(key)
    current = [item for item in items if times.values.get(item_key(key, item), "") <= at]
    if at < times.whole or (items and not current):
        return profile
    whole = times.whole if old is None or isinstance(old, list) else at
    values = {**times.values, **{item_key(key, item): at for item in current}}
    if key == INSTRUCTIONS:
        latest = {item_key(key, item): item for item in (*_items(profile.document, key), *current)}
        return _with_field(profile, key, list(latest.values()), FieldTimes(whole, values))
    held = {value_key(item) for item in old} if isinstance(old, list) else set[str]()
    added = [item for item in current if value_key(item) not in held]  # The first spelling of an item stays.
    return _with_field(profile, key, _merge_value(old, added), FieldTimes(whole, values))


def _assign(profile: TimedDocument, key: str, value: object, at: str) -> TimedDocument:
    times = profile.times.get(key, FieldTimes())
    old = profile.document.get(key)
    later = [item for item in old if times.values.get(item_key(key, item), "") > at] if isinstance(old, list) else []
    if at < times.whole or (later and value is not None):
        return profile
    has_ended = times.values.get(item_key(key, value), "") > at
    new = (later or None) if value is None or has_ended else _merge_value(old, value)
    return _with_field(profile, key, new, replace(times, whole=at))


def _with_field(profile: TimedDocument, key: str, value: object, times: FieldTimes) -> TimedDocument:
    """Return the profile with another value of a field, ``None`` for none."""
    document = {name: item for name, item in profile.document.items() if name != key or value is not None}
    if value is not None:
        document[key] = value
    return TimedDocument(document, {**profile.times, key: times})


def merge(document: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document after a patch; neither argument changes.

    Objects merge deeply, scalars are replaced, lists become an ordered union, ``null`` deletes.
    """
    merged = {key: value for key, value in document.items() if patch.get(key, value) is not None}
    for key, value in patch.items():
        if value is not None:
            merged[key] = _merge_value(merged.get(key), value)
    return merged


def layered(beneath: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return two profiles of a user as one: where both say something of a field, the upper one holds.

    Objects join deeply and lists unite, but of two instructions about the same the upper one stands.
    """
    stated = {item_key(INSTRUCTIONS, item) for item in _items(above, INSTRUCTIONS)}
    if not stated:
        return merge(beneath, above)
    left = [item for item in _items(beneath, INSTRUCTIONS) if item_key(INSTRUCTIONS, item) not in stated]
    return merge({**beneath, INSTRUCTIONS: left}, above)


def _merge_value(old: object, new: object) -> object:
    match old, new:
        case dict(), dict():
            return merge(old, new)
        case _, dict():
            return merge({}, new)
        case list(), list():
            return _ordered_union(old, new)
        case _, list():
            return _ordered_union([], new)
        case _:
            return new


def _ordered_union(old: list[Any], new: list[Any]) -> list[Any]:
    """Return each item once, where it came first; items are the same if their JSON is."""
    union = {canonical_json(item): item for item in reversed((*old, *new))}
    return [union.pop(key) for item in (*old, *new) if (key := canonical_json(item)) in union]
