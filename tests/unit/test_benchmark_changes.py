from benchmarks.changes import Question, is_ordered, is_right_in_block


def question(*answers: str, wrong: str | None = "Leeds", current: tuple[str, ...] = ("m5",)) -> Question:
    return Question("Where does Wren live?", None, answers, wrong, current, frozenset({"m1"}))


def test_results_are_ordered_if_a_current_message_comes_before_every_outdated_one() -> None:
    asked = question("Bristol", current=("m5", "m6"))

    assert is_ordered(asked, ["m9", "m6", "m1"])
    assert not is_ordered(asked, ["m9", "m1", "m5"])
    assert not is_ordered(asked, ["m9"])


def test_several_answers_need_the_message_of_each() -> None:
    asked = question("cello", "pipes", wrong=None, current=("m5", "m6"))

    assert is_ordered(asked, ["m6", "m9", "m5"])
    assert not is_ordered(asked, ["m5", "m9"])


def test_the_block_is_right_if_each_answer_stands_before_the_wrong_value() -> None:
    assert is_right_in_block(question("Bristol"), "BRISTOL, before that Leeds")
    assert not is_right_in_block(question("Bristol"), "from Leeds to Bristol")
    assert not is_right_in_block(question("Bristol"), "")
    assert not is_right_in_block(question("cello", "pipes", wrong=None), "She plays the cello")
