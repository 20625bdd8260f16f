from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lamina.core.memories import Message, Role, new_id
from lamina.core.profiles import ProfileStatement, TimedDocument, state
from lamina.extraction.instructions import instructions_of
from lamina.extraction.rules import extract_by_rules
from lamina.extraction.speech import statements

MORNING = datetime(2026, 3, 1, 9, tzinfo=UTC)


def given(text: str) -> list[str]:
    return [item for said in statements(text) for fact in instructions_of(said) for item in fact.patch["instructions"]]


def told(*texts: str) -> Any:
    """Return the instructions that hold after messages of one day after another."""
    said = [
        ProfileStatement(fact.patch, fact.withdrawn, MORNING + timedelta(days=day))
        for day, text in enumerate(texts)
        for sentence in statements(text)
        for fact in instructions_of(sentence)
    ]
    return state(TimedDocument({}), said, MORNING + timedelta(days=99)).document.get("instructions")


@pytest.mark.parametrize(
    "text",
    [
        "Always answer in German.",
        "Please always reply in French, even if I write English.",
        "From now on, answer in Spanish.",
        "Answer me in Dutch from now on.",
        "Never use emojis.",
        "never apologise",
        "Going forward, always cite your sources.",
        "Keep your answers short.",
        "please keep all your replies under five lines",
        "Don't use exclamation marks.",
        "No more emojis, please.",
        "I want you to always use metric units.",
        "I'd like you to always be blunt.",
        "Your answers should be short.",
        "I want my answers in Polish.",
        "Stop calling me sir.",
        "Never call me Bob.",
        "Never mention my ex-wife.",
        "You should always address me formally.",
        "Ab jetzt antworte bitte auf Deutsch.",
        "Antworte mir immer auf Englisch.",
        "Responde siempre en español, por favor.",
        "Réponds toujours en français.",
        "以后请用中文回答。",
        "これからは日本語で答えてください。",
    ],
)
def test_an_instruction_that_is_to_last_is_read_as_it_was_written(text: str) -> None:
    assert given(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "Never deploy on a Friday.",
        "Always run the linter before a merge.",
        "We should always ask legal before we publish.",
        "Answer in German.",
        "Can you always answer in German?",
        "Do you always answer in German?",
        "My boss said: always answer in German.",
        "If you could always answer in German, I would stay.",
        "Never ask me that again.",
        "Don't call me Bob.",
        "never mind",
        "Drop tables before the migration.",
        "Never give me up.",
        "From now on, we deploy on Mondays.",
        "She always answers in German.",
        "I always answer the phone in German.",
        "Always answer the phone.",
        "He told me to keep my answers short.",
        "Write a story in which the king says: always answer in rhyme.",
        'She wrote "always answer in German" on the wall.',
        "The answers were short.",
        "I never use emojis.",
        "Er antwortet immer auf Deutsch.",
    ],
)
def test_rules_of_work_single_requests_questions_and_the_words_of_others_are_none(text: str) -> None:
    assert given(text) == []


@pytest.mark.parametrize(
    "ending",
    [
        "You can answer in English again.",
        "You can now reply in English again, thanks.",
        "Stop answering in German.",
        "Back to English, please.",
        "Forget that I asked you to answer in German.",
        "You don't have to answer in German any more.",
        "Du kannst wieder auf Englisch antworten.",
    ],
)
def test_an_instruction_is_revoked_by_its_subject(ending: str) -> None:
    assert told("Always answer in German.", "Keep your answers short.", ending) == ["Keep your answers short."]


ENDINGS = [
    ("Keep your answers short.", "Your answers can be long again."),
    ("Keep your answers short.", "You no longer need to keep it brief."),
    ("Keep your answers short.", "Long answers are fine again."),
    ("Never use emojis.", "You can use emojis again."),
    ("Never use emojis.", "Forget the rule about emojis."),
    ("Never use emojis.", "Please drop my instruction on emojis."),
    ("Never use emojis.", "Emojis are welcome again!"),
    ("Always call me Doc.", "Don't call me Doc any more."),
    ("Always call me Doc.", "You needn't call me Doc any longer."),
    ("Always cite your sources.", "There is no need to cite sources any longer."),
    ("Always cite your sources.", "You don't have to cite your sources anymore."),
    ("Always answer in German.", "No need to answer in German any longer."),
    ("Always answer in German.", "German is no longer needed."),
    ("Always use metric units.", "You don't need metric units any more."),
    ("Never mention my ex-wife.", "You may mention my ex-wife again."),
    ("Bitte benutze keine Emojis.", "Du darfst wieder Emojis benutzen."),
    ("Halte deine Antworten kurz.", "Deine Antworten dürfen wieder länger sein."),
    ("Nenn mich immer Doc.", "Nenn mich nicht mehr Doc."),
    ("No uses emojis.", "Puedes usar emojis otra vez."),
    ("Mantén tus respuestas cortas.", "Tus respuestas pueden ser largas de nuevo."),
    ("Llámame siempre Doc.", "Ya no me llames Doc."),
    ("N'utilise jamais d'émojis.", "Tu peux à nouveau utiliser des émojis."),
    ("Garde tes réponses courtes.", "Tes réponses peuvent être longues à nouveau."),
    ("Appelle-moi toujours Doc.", "Ne m'appelle plus Doc."),
    ("请不要用表情。", "你可以再用表情了。"),
    ("以后请用中文回答。", "不用再用中文回答了。"),
    ("回答请简短。", "回答不用再简短了。"),
    ("絵文字は使わないでください。", "また絵文字を使ってもいいです。"),
    ("これからは日本語で答えてください。", "もう日本語で答えなくていいです。"),
]


@pytest.mark.parametrize(("instruction", "ending"), ENDINGS)
def test_an_instruction_ends_in_many_words(instruction: str, ending: str) -> None:
    assert told(instruction) == [instruction]
    assert told(instruction, "Never bring up my old job.", ending) == ["Never bring up my old job."]


HELD = ["Never use emojis.", "Keep your answers short.", "Always answer in German."]


@pytest.mark.parametrize(
    "text",
    [
        "Ignore all eslint rules in this file.",
        "Ignore all rules in this file.",
        "Drop all iptables rules first.",
        "Drop all rules first.",
        "Cancel all pending instructions.",
        "Never ignore any of my instructions.",
        "Never, ever, ignore any of my instructions.",
        "Don't forget all my rules.",
        "Please don't ever ignore my rule about emojis.",
        "If I am tired, ignore all my rules.",
        "Forget all the rules of chess.",
        "Ignoriere alle ESLint-Regeln.",
        "Vergiss nicht alle meine Regeln.",
        "No olvides todas mis reglas.",
        "Ignora todas las reglas del cortafuegos.",
        "N'oublie pas toutes mes règles.",
        "不要忘掉所有规则。",
        "取消所有防火墙规则。",
        "すべてのルールを守ってください。",
        "全てのルールを忘れないでください。",
        "You're using emojis again.",
        "You are using emojis again!",
        "Du benutzt wieder Emojis.",
        "Estás usando emojis otra vez.",
        "Tu utilises à nouveau des émojis.",
        "Your answers are no longer short.",
        "Your answers aren't short any more.",
        "You no longer answer in German.",
        "Deine Antworten sind nicht mehr kurz.",
        "Tus respuestas ya no son cortas.",
        "Tes réponses ne sont plus courtes.",
        "You're back to using emojis.",
        "Antworte wieder kurz.",
        "请不用表情。",
        "また短く答えてください。",
    ],
)
def test_a_rule_of_work_a_refusal_to_end_and_a_complaint_end_no_instruction(text: str) -> None:
    assert told(*HELD, text) == told(*HELD)


@pytest.mark.parametrize(
    ("text", "instruction"),
    [
        ("Please keep your answers short again.", "Keep your answers short."),
        ("もう絵文字を使わないでください。", "絵文字は使わないでください。"),
        ("Bitte benutze keine Emojis mehr.", "Bitte benutze keine Emojis."),
    ],
)
def test_an_instruction_that_is_given_again_holds(text: str, instruction: str) -> None:
    assert text in told(instruction, text)


@pytest.mark.parametrize(
    "ending",
    [
        "Forget all my instructions.",
        "Please ignore all of my previous instructions.",
        "Thanks, but forget all the rules I gave you.",
        "You can drop all my rules now.",
        "Vergiss alle meine Regeln.",
        "Olvida todas mis reglas.",
        "Oublie toutes mes règles.",
        "忘掉所有规则吧。",
        "すべての指示を忘れてください。",
    ],
)
def test_all_instructions_end_in_many_words(ending: str) -> None:
    assert told(*HELD, ending) is None


@pytest.mark.parametrize("instruction", ["Never use emojis.", "Keep your answers short."])
def test_all_instructions_end_together(instruction: str) -> None:
    assert told(instruction, "Always answer in German.", "Forget all my instructions.") is None


@pytest.mark.parametrize(
    "text",
    [
        "You can use emojis in the report, but keep answers short.",
        "You can use emojis again in the report.",
        "Your report was too long again.",
        "I no longer use emojis.",
        "My phone battery is short again.",
        "She no longer answers in German.",
        "You no longer need to water the plants.",
        "Ich benutze keine Emojis mehr.",
        "Ya no uso emojis.",
        "Je n'utilise plus d'émojis.",
        "我不用表情了。",
        "Emojis are no longer in the standard.",
        "Did I say no emojis any more?",
    ],
)
def test_what_ends_something_else_or_only_in_part_ends_no_instruction(text: str) -> None:
    before = told("Never use emojis.", "Keep your answers short.", "Always answer in German.")

    assert told("Never use emojis.", "Keep your answers short.", "Always answer in German.", text) == before


def test_of_two_instructions_about_the_same_the_later_one_holds() -> None:
    assert told("Always answer in German.", "Never use emojis.", "Please always reply in French.") == [
        "Please always reply in French.",
        "Never use emojis.",
    ]


def test_instructions_about_different_things_add_up() -> None:
    assert told("Always answer in German.", "Never mention my ex-wife.", "Never mention my old job.") == [
        "Always answer in German.",
        "Never mention my ex-wife.",
        "Never mention my old job.",
    ]


def test_what_was_revoked_is_not_brought_back_by_an_older_message_that_arrives_late() -> None:
    later = ProfileStatement({}, {"instructions": ["answer in English"]}, MORNING + timedelta(days=9))
    older = ProfileStatement({"instructions": ["Always answer in German."]}, {}, MORNING)
    now = MORNING + timedelta(days=20)

    profile = state(state(TimedDocument({}), [later], now), [older], now)

    assert "instructions" not in profile.document


@pytest.mark.parametrize(
    "text",
    [
        "Always answer in German.",
        "From now on, answer in Spanish.",
        "never use emojis",
        "You no longer need to answer in German.",
    ],
)
def test_an_instruction_and_its_revocation_leave_no_note_that_survives_them(text: str) -> None:
    assert extract_by_rules([Message(Role.USER, text)], [new_id()]).notes == ()


def test_a_rule_of_work_beside_an_instruction_is_noted() -> None:
    text = "Always answer in German. Always run the linter first."

    (note,) = extract_by_rules([Message(Role.USER, text)], [new_id()]).notes

    assert note.content == "Always run the linter first."
