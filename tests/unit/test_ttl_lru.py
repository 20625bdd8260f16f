from dataclasses import dataclass, field
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.policies.caching.ttl_lru import TtlLru

NOON = 1000.0
LONG_S = 60.0


def lru(*, max_entries: int = 3, max_bytes: int | None = None) -> TtlLru[str, int]:
    return TtlLru(max_entries=max_entries, max_bytes=max_bytes)


def keep(cache: TtlLru[str, int], keys: str, *, ttl_s: float = LONG_S, size_bytes: int = 0) -> None:
    """Put each key with its place as its value."""
    for place, key in enumerate(keys):
        cache.put(key, place, now=NOON, ttl_s=ttl_s, size_bytes=size_bytes)


def kept(cache: TtlLru[str, int], keys: str, now: float = NOON) -> str:
    """Return those of the keys that have a value."""
    return "".join(key for key in keys if cache.get(key, now) is not None)


def test_a_value_is_found_again_and_another_is_not() -> None:
    cache = lru()
    keep(cache, "ab")

    assert (cache.get("a", NOON), cache.get("b", NOON), cache.get("c", NOON)) == (0, 1, None)


def test_a_full_one_gives_up_what_was_used_least_recently() -> None:
    cache = lru()
    keep(cache, "abc")
    cache.get("a", NOON)

    keep(cache, "d")

    assert kept(cache, "abcd") == "acd"
    assert cache.evictions == 1


def test_putting_a_key_again_replaces_its_value_and_counts_as_a_use() -> None:
    cache = lru()
    keep(cache, "abc")

    cache.put("a", 7, now=NOON, ttl_s=LONG_S)
    keep(cache, "d")

    assert cache.get("a", NOON) == 7
    assert kept(cache, "bcd") == "cd"


@pytest.mark.parametrize(("later_s", "value"), [(0.0, 0), (9.999, 0), (10.0, None), (11.0, None)])
def test_a_value_lives_until_its_time_is_over(later_s: float, value: int | None) -> None:
    cache = lru()
    keep(cache, "a", ttl_s=10.0, size_bytes=5)

    assert cache.get("a", NOON + later_s) == value

    assert (len(cache), cache.size_bytes) == ((0, 0) if value is None else (1, 5))


def test_a_use_does_not_make_a_value_live_longer() -> None:
    cache = lru()
    keep(cache, "a", ttl_s=10.0)

    cache.get("a", NOON + 9)

    assert cache.get("a", NOON + 10) is None


def test_what_expired_is_no_eviction() -> None:
    cache = lru(max_entries=1)
    keep(cache, "a", ttl_s=10.0)

    cache.put("b", 1, now=NOON + 10, ttl_s=LONG_S)

    assert (len(cache), cache.evictions) == (1, 0)


def test_bytes_are_bounded_by_giving_up_as_many_entries_as_it_takes() -> None:
    cache = lru(max_entries=10, max_bytes=30)
    keep(cache, "abc", size_bytes=10)

    cache.put("d", 3, now=NOON, ttl_s=LONG_S, size_bytes=15)

    assert kept(cache, "abcd") == "cd"
    assert (cache.size_bytes, cache.evictions) == (25, 2)


def test_a_replaced_value_gives_its_bytes_back_before_others_have_to() -> None:
    cache = lru(max_entries=10, max_bytes=30)
    keep(cache, "abc", size_bytes=10)

    cache.put("a", 9, now=NOON, ttl_s=LONG_S, size_bytes=10)

    assert (kept(cache, "abc"), cache.size_bytes, cache.evictions) == ("abc", 30, 0)


def test_a_value_that_is_too_large_is_not_kept_evicts_nothing_and_leaves_no_older_value() -> None:
    cache = lru(max_bytes=30)
    keep(cache, "abc", size_bytes=10)

    cache.put("a", 9, now=NOON, ttl_s=LONG_S, size_bytes=31)

    assert (kept(cache, "abc"), cache.size_bytes, cache.evictions) == ("bc", 20, 0)


def test_a_value_of_just_the_bound_is_kept() -> None:
    cache = lru(max_bytes=30)

    keep(cache, "a", size_bytes=30)

    assert kept(cache, "a") == "a"


def test_keys_are_dropped_one_by_one_or_by_what_they_are() -> None:
    cache = lru(max_entries=9)
    keep(cache, "abcdef", size_bytes=1)

    assert (cache.drop("a"), cache.drop("a")) == (True, False)
    assert cache.drop_where(lambda key: key in "bcx") == 2
    assert (kept(cache, "abcdef"), cache.size_bytes, cache.evictions) == ("def", 3, 0)


def test_a_sweep_forgets_what_expired_and_nothing_else() -> None:
    cache = lru(max_entries=9)
    keep(cache, "ab", ttl_s=10.0, size_bytes=1)
    keep(cache, "c", ttl_s=20.0, size_bytes=1)

    assert cache.expire(NOON + 10) == 2
    assert (len(cache), cache.size_bytes, kept(cache, "abc")) == (1, 1, "c")


@dataclass(frozen=True)
class Line:
    """An entry of the model."""

    key: str
    value: int
    ends_at: float
    size_bytes: int


@dataclass
class Model:
    """What the LRU ought to do, on a list with the least recently used entry first."""

    max_entries: int
    max_bytes: int | None
    lines: list[Line] = field(default_factory=list)
    evictions: int = 0

    def get(self, key: str, now: float) -> int | None:
        line = next((line for line in self.lines if line.key == key), None)
        self.lines = [line for line in self.lines if line.key != key]
        if line is None or line.ends_at <= now:
            return None
        self.lines.append(line)
        return line.value

    def put(self, line: Line, now: float) -> None:
        self.lines = [other for other in self.lines if other.key != line.key]
        if self.max_bytes is not None and line.size_bytes > self.max_bytes:
            return
        self.lines.append(line)
        while len(self.lines) > self.max_entries or self.size_bytes > (self.max_bytes or self.size_bytes):
            self.evictions += self.lines.pop(0).ends_at > now

    @property
    def size_bytes(self) -> int:
        return sum(line.size_bytes for line in self.lines)


@dataclass(frozen=True)
class Step:
    """Something to do with the LRU and its model, after some time."""

    KINDS: ClassVar = ("get", "get", "put", "put", "put", "drop", "expire", "drop_where")

    kind: str
    key: str
    value: int
    wait_s: int
    ttl_s: int
    size_bytes: int


steps = st.builds(
    Step,
    kind=st.sampled_from(Step.KINDS),
    key=st.sampled_from("abcdef"),
    value=st.integers(0, 999),
    wait_s=st.integers(0, 3),
    ttl_s=st.integers(0, 12),
    size_bytes=st.integers(0, 12),
)


def act(cache: TtlLru[str, int], model: Model, step: Step, now: float) -> None:
    before = list(model.lines)
    match step.kind:
        case "get":
            assert cache.get(step.key, now) == model.get(step.key, now)
        case "put":
            cache.put(step.key, step.value, now=now, ttl_s=step.ttl_s, size_bytes=step.size_bytes)
            model.put(Line(step.key, step.value, now + step.ttl_s, step.size_bytes), now)
        case "drop":
            model.lines = [line for line in before if line.key != step.key]
            assert cache.drop(step.key) == (len(model.lines) < len(before))
        case "expire":
            model.lines = [line for line in before if line.ends_at > now]
            assert cache.expire(now) == len(before) - len(model.lines)
        case "drop_where":
            model.lines = [line for line in before if line.key <= step.key]
            assert cache.drop_where(lambda key: key > step.key) == len(before) - len(model.lines)


@given(st.integers(1, 5), st.none() | st.integers(1, 25), st.integers(-9, 9), st.lists(steps, max_size=40))
def test_it_does_what_a_list_of_entries_would(
    max_entries: int, max_bytes: int | None, begin: int, todo: list[Step]
) -> None:
    cache = lru(max_entries=max_entries, max_bytes=max_bytes)
    model = Model(max_entries, max_bytes)
    now = begin

    for step in todo:
        now += step.wait_s
        act(cache, model, step, now)

        assert (len(cache), cache.size_bytes, cache.evictions) == (len(model.lines), model.size_bytes, model.evictions)
        assert [(key, *entry) for key, entry in cache._entries.items()] == [
            (line.key, line.value, line.ends_at, line.size_bytes) for line in model.lines
        ]
