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
    "text",
    [
        "I'm 2.5 hours away.",
        "I'm 1,000 miles from home.",
        "I'm 5 and a half minutes late.",
        "I'm 5, maybe 6 minutes late.",
        "I turned 3 knobs.",
        "I just turned 90 degrees to the left.",
        "Tengo 3 años de experiencia.",
        "Tengo 3 años trabajando aquí.",
        "J'ai 5 ans d'expérience.",
        "Ich bin 2,5 Stunden entfernt.",
        "Ich bin 1.000 Kilometer entfernt.",
        "我3岁的女儿会唱歌。",
        "I work as hard as I can.",
        "I work as part of a team.",
        "I work as a team with Tom.",
        "I became angry.",
        "I became a bit tired.",
        "I became a father.",
        "I've become better.",
        "I have become tired of this.",
        "I weigh 3 options.",
        "Ich wiege 3 Optionen ab.",
        "Je pèse 3 options.",
        "I'm studying the crash dump.",
        "I study logs every night.",
        "Estudio el informe.",
        "J'étudie le rapport.",
        "I drive a hard bargain.",
        "I drive a hard bargain with Tom.",
        "Manejo una empresa.",
        "Je conduis une étude.",
        "我开会。",
        "我开始工作。",
        "我开门。",
        "我进了厨房。",
        "我进不去账号。",
        "我加入牛奶搅拌。",
        "我加入了游泳俱乐部。",
        "我加入了公司的群。",
        "我加入了WeChat群。",
        "我学会了做饭。",
        "我学校在北京。",
        "我学他说话。",
        "我学语文老师说话。",
        "I prefer walking to work.",
        "I prefer to go to work.",
        "My stack is overflowing.",
        "My job is hard.",
        "My job is a nightmare.",
        "My budget is exhausted.",
        "My commute is killing me.",
    ],
)
def test_what_only_looks_like_a_statement_of_oneself_states_nothing(text: str) -> None:
    assert stated(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I'm 35.", ("has_age", "35")),
        ("I'm 35 and happy.", ("has_age", "35")),
        ("I am 35 years old.", ("has_age", "35")),
        ("I turned 35 last week.", ("has_age", "35")),
        ("Ich bin 35 Jahre alt.", ("has_age", "35")),
        ("Tengo 35 años.", ("has_age", "35")),
        ("J'ai 35 ans.", ("has_age", "35")),
        ("我35岁了。", ("has_age", "35")),
        ("I work as an architect.", ("works_as", "architect")),
        ("I work as head of design.", ("works_as", "head of design")),
        ("I work as the head of design.", ("works_as", "head of design")),
        ("I work as CTO.", ("works_as", "CTO")),
        ("I became a teacher.", ("works_as", "teacher")),
        ("I've become a software engineer.", ("works_as", "software engineer")),
        ("I became a nurse last year.", ("works_as", "nurse last year")),
        ("I was promoted to team lead.", ("works_as", "team lead")),
        ("I weigh 82 kg.", ("has_weight", "82 kg")),
        ("I weigh 82.5 kilos now.", ("has_weight", "82.5 kilos")),
        ("I weigh 170.", ("has_weight", "170")),
        ("Ich wiege 82 kg.", ("has_weight", "82 kg")),
        ("Peso 70 kilos.", ("has_weight", "70 kilos")),
        ("I'm studying medicine.", ("studies", "medicine")),
        ("I study marine biology.", ("studies", "marine biology")),
        ("I'm studying Japanese.", ("studies", "Japanese")),
        ("J'étudie le droit.", ("studies", "droit")),
        ("Estudio medicina.", ("studies", "medicina")),
        ("I drive a small red car.", ("drives", "small red car")),
        ("I drive an old Volvo.", ("drives", "old Volvo")),
        ("Je conduis une Renault.", ("drives", "Renault")),
        ("我开一辆特斯拉。", ("drives", "特斯拉")),
        ("我开特斯拉。", ("drives", "特斯拉")),
        ("我上周入职了字节跳动。", ("joined", "字节跳动")),
        ("我加入了华星科技。", ("joined", "华星科技")),
        ("我去年加入了Stripe。", ("joined", "Stripe")),
        ("我进了人民医院工作。", ("joined", "人民医院")),
        ("我进了一家银行。", ("joined", "一家银行")),
        ("我在学法语。", ("studies", "法语")),
        ("我学的是计算机。", ("studies", "计算机")),
        ("我主修历史。", ("studies", "历史")),
        ("I prefer walking to driving.", ("prefers", "walking")),
        ("I prefer coffee to tea.", ("prefers", "coffee")),
        ("My tech stack is Python.", ("tech_stack_is", "Python")),
        ("My job is a nurse.", ("job_is", "nurse")),
        ("My occupation is accountant.", ("occupation_is", "accountant")),
        ("My favourite sport is swimming.", ("favourite_sport_is", "swimming")),
    ],
)
def test_what_is_stated_of_oneself_in_such_words_is_still_read(text: str, expected: tuple[str, str]) -> None:
    assert expected in stated(text)


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
