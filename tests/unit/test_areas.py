from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.areas import LEVELS, Area
from lamina.core.scope import Scope
from lamina.errors import InvalidInput

IDS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20).filter(str.isprintable)


@pytest.mark.parametrize(
    ("pairs", "area"),
    [
        ([], Area()),
        (["tenant=acme"], Area("acme")),
        (["tenant=acme", "workspace=docks"], Area("acme", "docks")),
        (["namespace=crew", "tenant=acme", "workspace=docks"], Area("acme", "docks", "crew")),
        (["tenant=a=b"], Area("a=b")),
    ],
)
def test_pairs_name_an_area_in_any_order(pairs: list[str], area: Area) -> None:
    assert {Area.parse(order) for order in permutations(pairs)} == {area}


@pytest.mark.parametrize(
    "pairs",
    [
        ["acme"],
        ["=acme"],
        ["user=ann"],
        ["Tenant=acme"],
        ["tenant=acme", "tenant=acme"],
        ["tenant:acme"],
    ],
)
def test_pairs_of_another_form_are_refused_with_the_right_one(pairs: list[str]) -> None:
    with pytest.raises(InvalidInput, match="write tenant=ID, workspace=ID and namespace=ID, each once"):
        Area.parse(pairs)


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ({"workspace": "docks"}, "names a workspace without its tenant"),
        ({"namespace": "crew"}, "names a namespace without its workspace"),
        ({"tenant": "acme", "namespace": "crew"}, "names a namespace without its workspace"),
        ({"tenant": ""}, "tenant"),
        ({"tenant": " "}, "tenant"),
        ({"tenant": "a\nb"}, "tenant"),
        ({"tenant": "a", "workspace": "x" * 129}, "workspace"),
    ],
)
def test_a_level_needs_those_above_it_and_an_id_that_can_be_one(ids: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        Area(**ids)


@given(st.lists(IDS, max_size=3))
def test_an_area_names_its_ids_from_the_widest_on(ids: list[str]) -> None:
    area = Area(*ids)

    assert area.named() == tuple(area.ids()[level] for level in LEVELS[: len(ids)])
    assert list(area.ids()) == list(LEVELS)
    assert Area.parse([f"{level}={id_}" for level, id_ in area.ids().items() if id_ is not None]) == area


def test_only_a_namespace_is_a_scope() -> None:
    assert Area("acme", "docks", "crew").scope() == Scope("acme", "docks", "crew")
    for wider in (Area(), Area("acme"), Area("acme", "docks")):
        with pytest.raises(ValueError, match="unpack"):
            wider.scope()


def test_an_area_reads_as_it_is_written_on_the_command_line() -> None:
    assert str(Area()) == "everything"
    assert str(Area("acme", "docks")) == "tenant=acme workspace=docks"
