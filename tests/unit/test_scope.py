import dataclasses
import pickle

import pytest

from lamina.core.scope import Scope
from lamina.errors import InvalidInput

IDS = ("tenant", "workspace", "namespace", "user", "agent", "session", "swarm")


def test_a_scope_names_its_tenant_and_the_default_project() -> None:
    scope = Scope("acme")

    assert (scope.workspace, scope.namespace) == ("default", "default")
    assert (scope.user, scope.agent, scope.session, scope.swarm) == (None, None, None, None)


@pytest.mark.parametrize("name", IDS)
def test_no_id_of_a_scope_can_be_set(name: str) -> None:
    scope = Scope("acme")

    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(scope, name, "other")

    assert scope == Scope("acme")


@pytest.mark.parametrize("name", IDS)
def test_an_id_has_128_characters_at_most(name: str) -> None:
    longest = {"tenant": "acme", name: "x" * 128}

    assert getattr(Scope(**longest), name) == "x" * 128
    with pytest.raises(InvalidInput, match="128") as refused:
        Scope(**{**longest, name: "x" * 129})

    assert refused.value.field == name


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("value", ["", " ", "\u200b", "a\x00b", "a\nb", "\ud800"])
def test_an_id_that_cannot_be_seen_is_refused_naming_it(name: str, value: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Scope(**{"tenant": "acme", name: value})

    assert refused.value.field == name


def test_ids_that_look_alike_to_a_pattern_or_a_joined_key_are_distinct() -> None:
    ids = ["_", "%", "a", "a&agent=b", "a:b", "a/b", "Ünïcode", "ünïcode", "Unicode", "a ", "A"]

    scopes = {Scope("acme", user=value) for value in ids}

    assert {scope.user for scope in scopes} == set(ids)


def test_an_id_never_moves_into_its_neighbour() -> None:
    scopes = {
        Scope("a", "b", "c"),
        Scope("a", "b:c"),
        Scope("a:b", "c"),
        Scope("a", "b", user="c"),
        Scope("a", "b", agent="c"),
        Scope("a", "b", session="c"),
        Scope("a", "b", swarm="c"),
    }

    assert len(scopes) == 7


def test_both_spellings_of_an_accent_are_one_id() -> None:
    assert Scope("acme", user="Zoe\u0308") == Scope("acme", user="Zo\u00eb")


def test_narrowing_replaces_ids_and_leaves_the_scope_it_came_from() -> None:
    wide = Scope("acme", "project", user="ann", agent="helper")

    narrow = wide.narrowed(session="s1", agent=None)

    assert narrow == Scope("acme", "project", user="ann", session="s1")
    assert wide == Scope("acme", "project", user="ann", agent="helper")


def test_narrowing_cannot_change_the_tenant() -> None:
    scope = Scope("acme").narrowed(tenant="rival", workspace="project")

    assert scope == Scope("acme", "project")


def test_narrowing_checks_the_new_ids() -> None:
    with pytest.raises(InvalidInput) as refused:
        Scope("acme").narrowed(session="x" * 129)

    assert refused.value.field == "session"


def test_narrowing_by_an_unknown_id_is_an_error() -> None:
    with pytest.raises(TypeError, match="project"):
        Scope("acme").narrowed(project="x")


def test_a_scope_survives_the_way_to_another_process() -> None:
    scope = Scope("acme", "Ünïcode", user="%", session="a&agent=b")

    assert pickle.loads(pickle.dumps(scope)) == scope  # noqa: S301 - our own bytes
