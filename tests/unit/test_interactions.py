import time
from datetime import UTC, datetime

import pytest

from lamina.core.memories import Category, Message, Note, Role, new_id
from lamina.extraction.interactions import MAX_REQUEST_CHARS
from lamina.extraction.rules import extract_by_rules

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)


def interactions(*messages: Message | str) -> list[Note]:
    said = [Message(Role.USER, item) if isinstance(item, str) else item for item in messages]
    notes = extract_by_rules(said, [new_id() for _ in said]).notes
    return [note for note in notes if note.category is Category.INTERACTION]


@pytest.mark.parametrize(
    "sentence",
    [
        "We met with Acme on Tuesday about the renewal.",
        "I had a call with Priya about the rollout.",
        "Ann spoke with the landlord yesterday.",
        "I was in a meeting with the board.",
        "I handed the payments migration over to Ben.",
        "The ticket was reassigned to Mira.",
        "Ben took over the on-call shift from Ann.",
        "I escalated the incident to the database team.",
        "Wir haben uns gestern mit Acme getroffen.",
        "Ich hatte eine Besprechung mit Jana über das Budget.",
        "Ich habe mit dem Vermieter telefoniert.",
        "Ich habe das Ticket an Mira übergeben.",
        "Jana hat das Projekt von Tom übernommen.",
        "J'ai rencontré le client mardi.",
        "Nous avons eu une réunion avec Acme.",
        "J'ai confié le dossier à Marie.",
        "Me reuní con el cliente el martes.",
        "Tuvimos una reunión con Acme.",
        "El equipo se reunió con Acme el lunes.",
        "Si sono incontrati con il cliente ieri.",
        "Le asigné el ticket a Mira.",
        "Pasamos el proyecto a Juan.",
        "Ho incontrato il cliente martedì.",
        "Abbiamo avuto una riunione con Acme.",
        "Ho affidato il progetto a Marco.",
        "Tivemos uma reunião com a Acme.",
        "Falei com o cliente ontem.",
        "Passei o chamado para a Ana.",
        "Ik heb gisteren met de klant gesproken.",
        "Ik heb het project aan Jan overgedragen.",
        "Spotkałam się z klientem we wtorek.",
        "Przekazałem zgłoszenie Annie.",
        "Вчера мы встретились с заказчиком.",
        "Я передал задачу Мире.",
        "Müşteri ile dün görüştük.",
        "Projeyi Ayşe'ye devrettim.",
        "我昨天和客户开了会。",
        "我把这个任务交给了小王。",
        "昨日、田中さんと打ち合わせをしました。",
        "この案件は佐藤さんに引き継ぎました。",
        "어제 고객과 회의를 했습니다.",
        "이 작업을 민수에게 넘겼습니다.",
        "اجتمعنا مع العميل أمس.",
        "मैंने कल ग्राहक के साथ बैठक की।",
    ],
)
def test_a_meeting_or_a_task_that_is_handed_over_is_an_interaction(sentence: str) -> None:
    assert [note.content for note in interactions(sentence)] == [sentence]


@pytest.mark.parametrize(
    "sentence",
    [
        "Should we meet with Acme on Tuesday?",
        "We never met with Acme.",
        "I want to meet with Acme.",
        "If I had a call with Priya, I would know.",
        "Let's meet with Ben tomorrow.",
        "I met a nice dog today.",
        "We'll hand it over to Ben next week.",
        "I handed her a coffee.",
        "The plane took over an hour to land.",
        "Wir haben uns nicht mit Acme getroffen.",
        "Hast du mit Jana telefoniert?",
        "Wenn wir uns mit Acme getroffen haben, sage ich es dir.",
        "Je n'ai pas rencontré le client.",
        "Nous aurons une réunion avec Acme demain.",
        "No me reuní con el cliente.",
        "Si me reuní con Acme, no lo recuerdo.",
        "Mañana tengo una reunión con Acme.",
        "Non ho incontrato il cliente.",
        "Não falei com o cliente.",
        "Ik heb niet met de klant gesproken.",
        "Мы не встретились с заказчиком.",
        "我没有和客户开会。",
        "客户开了会吗？",
        "田中さんと打ち合わせをしますか？",
        "昨日は田中さんと会いませんでした。",
        "회의는 내일입니다.",
        "Thanks, that's great!",
        "What a day.",
        "I gave my mom a hug.",
        "He passed the ball to Tom.",
        "The weather turned over the weekend.",
        "I spoke too soon.",
        "Their support really spoke to me.",
        "The story: she met with a wizard.",
        "Someone told me she met with the mayor.",
        "I love meeting people.",
    ],
)
def test_what_is_planned_asked_denied_or_said_in_passing_is_none(sentence: str) -> None:
    assert interactions(sentence) == []


def test_a_sentence_of_another_category_keeps_it() -> None:
    said = [Message(Role.USER, "We decided to move, and I had a call with Priya about it.")]

    assert [note.category for note in extract_by_rules(said, [new_id()]).notes] == [Category.DECISION]


def test_a_turn_with_tool_calls_is_one_interaction_for_each_request() -> None:
    notes = interactions(
        Message(Role.USER, "Buche mir einen Flug nach Oslo.", name="Jana", occurred_at=NOON),
        Message(Role.TOOL, "[]", name="search_flights"),
        Message(Role.TOOL, "{}", name="book"),
        Message(Role.TOOL, "{}", name="book"),
        Message(Role.ASSISTANT, "Done."),
        Message(Role.USER, "天気は？"),
        Message(Role.TOOL, "sunny", name="weather"),
        Message(Role.USER, "Thanks!"),
    )

    assert [note.content for note in notes] == [
        "Buche mir einen Flug nach Oslo. (tools: search_flights, book)",
        "天気は？ (tools: weather)",
    ]
    assert notes[0].event_at == NOON
    assert notes[0].metadata == {"speaker": "Jana"}


def test_a_tool_without_a_request_is_noted_by_its_name_and_never_by_its_output() -> None:
    assert [note.content for note in interactions(Message(Role.TOOL, "output", name="ls"))] == ["(tools: ls)"]
    assert [note.content for note in interactions("List.", Message(Role.TOOL, "output"))] == ["List. (tools: tool)"]
    assert interactions(Message(Role.TOOL, "output")) == []


def test_a_long_request_and_many_tools_are_cut() -> None:
    tools = [Message(Role.TOOL, "", name=f"tool_{number}") for number in range(12)]
    (note,) = interactions(Message(Role.USER, "word " * 1000), *tools)

    assert len(note.content) < MAX_REQUEST_CHARS + 150
    assert note.content.endswith("tool_7 and 4 more)")


def test_a_turn_without_tools_meetings_and_tasks_has_none() -> None:
    assert interactions("Good morning!", Message(Role.ASSISTANT, "How can I help?"), "What is the weather?") == []


@pytest.mark.parametrize(
    "text", ["handed ", "met with ", "an übergebe übergeben ", "把交给", "ont remis ", "had a call "]
)
def test_no_repetition_takes_more_than_a_moment(text: str) -> None:
    began = time.process_time()

    interactions(text * 2_000)

    assert time.process_time() - began < 20
