import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.text.near_duplicates import are_near_duplicates, raised_importance

FRACTIONS = st.floats(0, 1)


def same(first: str, second: str, cosine: float = 0.99) -> bool:
    found = are_near_duplicates(first, second, cosine, min_cosine=0.92)
    assert are_near_duplicates(second, first, cosine, min_cosine=0.92) == found
    return found


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I like green tea.", "I like green tea"),
        ("I like green tea.", "I really like green tea."),
        ("I like green tea.", "I enjoy green tea."),
        ("The user likes green tea", "User loves green tea"),
        ("We decided to use Postgres", "We have decided to use Postgres"),
        ("The deploy failed because of DNS", "The deployment failed because of DNS"),
        ("I'm allergic to peanuts", "I am allergic to peanuts"),
        ("Budget is 1,500 EUR", "The budget is 1500 EUR"),
        ("Ann prefers window seats on flights", "Ann prefers window seats when flying"),
        ("I moved to Graz", "i moved to graz"),
        ("Ann bought a car", "Ann purchased a car"),
    ],
)
def test_the_same_in_other_words_is_a_near_duplicate(first: str, second: str) -> None:
    assert same(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Budget is 1,500 EUR", "Budget is 15,000 EUR"),
        ("I have lived here for 5 years", "I have lived here for 6 years"),
        ("five years of experience", "six years of experience"),
        ("30-minute meeting every day", "45-minute meeting every day"),
        ("from 5 to 6", "from 6 to 5"),
        ("version v1 is out", "version v2 is out"),
    ],
)
def test_other_numbers_are_another_statement(first: str, second: str) -> None:
    assert not same(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("eats nuts", "does not eat nuts"),
        ("I can swim", "I can't swim"),
        ("I drink coffee with milk", "I drink coffee without milk"),
        ("I like cats", "I hate cats"),
        ("Meet before lunch", "Meet after lunch"),
        ("The flag enables caching", "The flag disables caching"),
        ("I always run", "I never run"),
        ("The door is open at night", "The door is closed at night"),
        ("I like red wine", "I like white wine"),
    ],
)
def test_the_contrary_is_another_statement(first: str, second: str) -> None:
    assert not same(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("lives in Graz", "lives in Linz"),
        ("Ann likes tea", "Bob likes tea"),
        ("Ann manages Bob", "Bob manages Ann"),
        ("We met on Monday", "We met on Tuesday"),
        ("works at Initech", "left Initech, joined Hooli"),
        ("ask Zoë's boss", "ask Zoltan's boss"),
        ("жил в Москве", "жил в Минске"),
    ],
)
def test_other_names_or_their_other_order_are_another_statement(first: str, second: str) -> None:
    assert not same(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("vegetarian, plays basketball", "vegetarian"),
        ("vegetarian, plays basketball", "plays basketball on Tuesdays"),
        ("plays basketball", "plays basketball on Tuesdays"),
        ("Ann prefers window seats", "Ann prefers window seats near the wing"),
        ("the cat chased the dog", "the dog chased the cat"),
    ],
)
def test_one_that_says_more_or_turns_the_order_round_is_another_statement(first: str, second: str) -> None:
    assert not same(first, second)


def test_nothing_below_the_cosine_is_a_near_duplicate() -> None:
    assert same("I like green tea.", "I like green tea", 0.92)
    assert not same("I like green tea.", "I like green tea", 0.9199)


@given(st.text(max_size=60))
def test_a_text_is_its_own_near_duplicate(text: str) -> None:
    assert same(text, text)


@given(st.text(max_size=40), st.text(max_size=40))
def test_the_order_of_the_two_does_not_matter(first: str, second: str) -> None:
    same(first, second)


@given(FRACTIONS, FRACTIONS)
def test_what_is_told_again_matters_more_and_never_above_1(importance: float, other: float) -> None:
    raised = raised_importance(importance, other)

    assert max(importance, other) <= raised <= 1
    assert raised > importance or importance > 0.999999
