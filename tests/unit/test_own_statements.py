from typing import Any

import pytest

from lamina.core.memories import Message, Role, new_id
from lamina.extraction.edges import Speaker, extract_graph, user_name
from lamina.extraction.rules import extract_by_rules


def stated(text: str, speaker: str | Speaker = "Ann") -> list[tuple[str, str]]:
    return sorted((edge.type, edge.object) for edge in extract_graph([text], [speaker]).edges)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I work as a nurse.", [("works_as", "nurse")]),
        ("I drive a Volvo.", [("drives", "Volvo")]),
        ("I just turned 35.", [("has_age", "35")]),
        ("My favourite colour is green now.", [("favourite_colour_is", "green")]),
        ("My rent is 900 and my flat is small.", [("rent_is", "900")]),
        ("My dentist appointment moved to Friday.", [("dentist_appointment_is", "Friday")]),
        ("I prefer coffee over tea these days.", [("prefers", "coffee"), ("prefers_no_longer", "tea")]),
        ("Ich wohne in Paris.", [("lives_in", "Paris")]),
        ("Seit Mai wohne ich in Berlin.", [("lives_in", "Berlin")]),
        ("Ich bin letzten Monat nach Berlin gezogen.", [("moved_to", "Berlin")]),
        ("Ich wohne nicht mehr in Paris.", [("moved_away_from", "Paris")]),
        ("Ich nutze Helix statt Vim.", [("stopped_using", "Vim"), ("uses", "Helix")]),
        ("Mein Editor ist jetzt Helix.", [("editor_is", "Helix")]),
        ("Me he mudado a Berlín.", [("moved_to", "Berlín")]),
        ("Ahora trabajo en Indra.", [("works_at", "Indra")]),
        ("Mi color favorito es el azul.", [("color_favorito_is", "azul")]),
        ("J'ai déménagé à Berlin.", [("moved_to", "Berlin")]),
        ("Je travaille chez Renault.", [("works_at", "Renault")]),
        ("我已经搬到柏林了。", [("moved_to", "柏林")]),
        ("我现在在腾讯上班。", [("works_at", "腾讯")]),
        ("我的编辑器换成了Helix。", [("编辑器_is", "Helix")]),
        ("ベルリンに引っ越しました。", [("moved_to", "ベルリン")]),
        ("VimからHelixに乗り換えました。", [("stopped_using", "Vim"), ("uses", "Helix")]),
        ("私の好きな色は青です。", [("好きな色_is", "青")]),
    ],
)
def test_a_speaker_states_what_is_so(text: str, expected: list[tuple[str, str]]) -> None:
    assert stated(text) == expected
    assert stated(text, Speaker("mia", "message:1")) == expected


@pytest.mark.parametrize(
    "text",
    [
        "My goal is Berlin.",
        "My hobby is Chess.",
        "My car is broken.",
        "Is my editor Vim?",
        "If my editor is Vim, what then?",
        "Wenn ich in Rom wohne, bin ich froh.",
        "Wohne ich in Rom?",
        "Mi hermana vive en Lima.",
        "Si vivo en Lima, ¿qué cambia?",
        "Quand j'habite à Lyon, je suis heureux.",
        "我想搬到柏林。",
        "我住在柏林吗？",
        "ベルリンに住みたいです。",
        "彼がパリに住んでいると聞いた。",
    ],
)
def test_what_is_asked_supposed_or_of_others_is_stated_of_no_speaker(text: str) -> None:
    assert stated(text) == []


@pytest.mark.parametrize(
    ("text", "patch", "withdrawn"),
    [
        ("Ich bin nach Berlin gezogen.", {"location": "Berlin"}, {}),
        ("Ich arbeite nicht mehr bei Bosch.", {}, {"employer": ["Bosch"]}),
        ("Vivo en París.", {"location": "París"}, {}),
        ("Je m'appelle Zoé.", {"name": "Zoé"}, {}),
        ("我搬到柏林了。", {"location": "柏林"}, {}),
        ("ソニーに転職しました。", {"employer": "ソニー"}, {}),
    ],
)
def test_the_profile_follows_in_other_languages(text: str, patch: Any, withdrawn: Any) -> None:
    (found,) = extract_by_rules([Message(Role.USER, text)], [new_id()]).statements

    assert (found.patch, found.withdrawn) == (patch, withdrawn)


@pytest.mark.parametrize(
    ("user", "name"),
    [("ann", "ann"), ("u-17", "u-17"), ("42", "user 42"), ("paris", "user paris"), ("user", "user user")],
)
def test_a_user_is_an_entity_of_the_id_unless_the_id_means_something_else(user: str, name: str) -> None:
    assert user_name(user) == name


def test_a_speaker_without_a_name_is_an_entity_only_with_a_statement() -> None:
    silent = extract_graph(["Thanks a lot!"], [Speaker("mia", "message:1")])
    stating = extract_graph(["I live in Paris."], [Speaker("mia", "message:1")])

    assert silent.entities == ()
    assert {(entity.name, entity.type) for entity in stating.entities} == {("mia", "person"), ("Paris", "place")}
    assert [edge.told_by for edge in stating.edges] == ["message:1"]
