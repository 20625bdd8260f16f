import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from lamina.errors import Unavailable
from lamina.stores.index.cold import open_pool
from lamina.stores.index.cold.open_pool import OpenPool


class Thing:
    """Knows whether it is open."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.is_open = True


class Shelf:
    """Opens and closes things and keeps account."""

    def __init__(self, most: int) -> None:
        self.opened: list[str] = []
        self.closed: list[str] = []
        self.peak = 0
        self.broken: set[str] = set()
        self.ones: OpenPool[str, Thing] = OpenPool(self.open, self.close, most=most, part="things")

    def open(self, key: str) -> Thing:
        if key in self.broken:
            raise OSError(key)
        self.opened.append(key)
        self.peak = max(self.peak, len(self.opened) - len(self.closed))
        return Thing(key)

    def close(self, key: str, thing: Thing) -> None:
        thing.is_open = False
        self.closed.append(key)

    def use(self, *keys: str) -> None:
        for key in keys:
            with self.ones.borrow(key) as thing:
                assert thing.is_open
                assert thing.key == key


def test_a_thing_is_opened_at_its_first_use_and_stays_open() -> None:
    shelf = Shelf(2)

    shelf.use("a", "a", "b", "a")

    assert (shelf.opened, shelf.closed) == (["a", "b"], [])


def test_the_one_that_nobody_used_for_the_longest_time_makes_room() -> None:
    shelf = Shelf(2)

    shelf.use("a", "b", "a", "c")

    assert shelf.closed == ["b"]
    assert len(shelf.ones) == 2


def test_what_was_closed_opens_again() -> None:
    shelf = Shelf(1)

    shelf.use("a", "b", "a")

    assert shelf.opened == ["a", "b", "a"]


def test_what_is_in_use_is_not_closed() -> None:
    shelf = Shelf(2)

    with shelf.ones.borrow("a") as first:
        shelf.use("b", "c")
        assert first.is_open

    assert shelf.closed == ["b"]


def test_while_all_are_in_use_others_wait_and_then_give_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_pool, "DEADLINE_S", 0.05)
    shelf = Shelf(1)

    with ExitStack() as stack:
        stack.enter_context(shelf.ones.borrow("a"))
        with pytest.raises(Unavailable, match="things is not available: all 1"):
            stack.enter_context(shelf.ones.borrow("b"))

    shelf.use("b")


def test_one_that_does_not_open_takes_no_room_and_is_tried_again() -> None:
    shelf = Shelf(1)
    shelf.broken = {"a"}
    with pytest.raises(OSError, match="a"):
        shelf.use("a")

    shelf.use("b")
    shelf.broken = set()
    shelf.use("a")

    assert shelf.opened == ["b", "a"]


def test_closing_closes_everything() -> None:
    shelf = Shelf(3)
    shelf.use("a", "b", "c")

    shelf.ones.close()

    assert sorted(shelf.closed) == ["a", "b", "c"]


def test_many_threads_get_open_things_and_never_more_than_allowed() -> None:
    shelf = Shelf(3)
    start = threading.Barrier(8)

    def work(number: int) -> None:
        start.wait()
        shelf.use(*(str((number * step) % 7) for step in range(1, 200)))

    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(work, number) for number in range(1, 9)]:
            done.result()
    shelf.ones.close()

    assert shelf.peak <= 3
    assert sorted(shelf.opened) == sorted(shelf.closed)


def test_while_one_is_closed_only_those_wait_who_want_it() -> None:
    class SlowShelf(Shelf):
        def close(self, key: str, thing: Thing) -> None:
            closing.set()
            assert may_close.wait(10)
            super().close(key, thing)

    closing, may_close = threading.Event(), threading.Event()
    shelf = SlowShelf(2)
    shelf.use("a", "b")

    with ThreadPoolExecutor(2) as threads:
        third = threads.submit(shelf.use, "c")
        assert closing.wait(10)
        shelf.use("b")
        same = threads.submit(shelf.use, "a")
        may_close.set()
        third.result(10)
        same.result(10)

    assert shelf.closed[0] == "a"
    assert shelf.opened[:3] == ["a", "b", "c"] or shelf.opened[:3] == ["a", "b", "a"]
    assert shelf.peak <= 2
