import pytest

from lamina.core.memories import Message, Role
from lamina.policies.importance import message_importance, passage_importance


@pytest.mark.parametrize("text", ["ok", "Thanks a lot!", "谢谢", "¡Gracias!", "спасибо большое", "👍", "", "haha yes"])
def test_a_few_words_matter_little(text: str) -> None:
    assert message_importance(Message(Role.USER, text), (), states_facts=False) == 0.3
    assert passage_importance(1, text) == 0.3


@pytest.mark.parametrize(
    "text",
    ["at 7 pm", "ask Ann", "The ferry was repaired in May.", "渡船已经在五月份修好了我们明天早上出发去岛上", "E2045"],
)
def test_a_number_a_name_or_a_sentence_matters_as_usual(text: str) -> None:
    assert message_importance(Message(Role.USER, text), (), states_facts=False) == 0.5


def test_a_message_matters_as_much_as_what_was_drawn_from_it() -> None:
    message = Message(Role.USER, "ok")

    assert message_importance(message, [0.4], states_facts=False) == 0.5
    assert message_importance(message, [0.4, 0.9], states_facts=True) == 0.9
    assert message_importance(message, (), states_facts=True) == 0.7


def test_the_output_of_a_tool_matters_little_and_the_first_passage_much() -> None:
    long = "the quick brown fox jumps over the lazy dog"

    assert message_importance(Message(Role.TOOL, long), (), states_facts=False) == 0.3
    assert [passage_importance(place, long) for place in (1, 2)] == [0.7, 0.5]
