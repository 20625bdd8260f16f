import pytest

from lamina.policies.limits.company import ENOUGH, HAIR_S, Company


def after(*passes: int) -> Company:
    company = Company()
    for callers in passes:
        company.add(callers)
    return company


@pytest.mark.parametrize("passes", [(), (1,), (1,) * 50, (2, 1, 1, 1), (16, *[1] * 20), (3, 1, 1, 1, 1, 1)])
def test_who_asks_alone_does_not_wait(passes: tuple[int, ...]) -> None:
    assert after(*passes).wait_s(1, 0.0) == 0


@pytest.mark.parametrize("passes", [(16,), (1, 15), (2,) * 10, (3, 3), (1, 2, 4, 2, 1, 3)])
def test_where_others_asked_at_the_same_time_a_pass_waits_a_hair_for_more(passes: tuple[int, ...]) -> None:
    assert after(*passes).wait_s(1, 0.0) == HAIR_S
    assert after(*passes).wait_s(ENOUGH - 1, HAIR_S / 2) == HAIR_S / 2


def test_a_pass_waits_no_longer_once_it_has_enough_or_its_first_has_waited() -> None:
    company = after(16, 16)

    assert company.wait_s(ENOUGH, 0.0) == 0
    assert company.wait_s(1, HAIR_S) == 0
    assert company.wait_s(1, 1.0) == 0
    assert company.wait_s(0, 0.0) == 0


def test_waiting_ends_by_itself_where_nobody_comes() -> None:
    company = after(*[16] * 100)

    waits = 0
    while company.wait_s(1, 0.0):
        waits += 1
        company.add(1)

    assert waits < 20
