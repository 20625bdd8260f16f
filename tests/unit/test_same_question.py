"""Which near questions want the same answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.lifecycle.same_question import is_same_question

SAME = [
    ("How do I get into Harvard?", "How can I get into Harvard?"),
    ("where does the green heron nest", "Where does the green heron nest?"),
    ("What is the best laptop under INR 30,000?", "What is the best laptop under INR 30k?"),
    ("How does one learn Japanese?", "How do you learn Japanese?"),
    ("What do Pakistanis think of India?", "What do the Pakistanis think about the Indians?"),
    ("What is Bernoullis equation?", "What is Bernoulli's equation?"),
    ("How can I open a bank account in two days?", "How can I open a bank account in 2 days?"),
    ("What are the ways to learn Python?", "which are ways to learn python"),
    ("5. Is it raining?", "Is it raining?"),
    ("What happened at the harbour?", "what happened at the harbour"),
]
OTHER = [
    ("Can I make 30,000 a month?", "Can I make 50,000 a month?"),
    ("How do I prepare for tier 2?", "How do I prepare for tiers 1 and 2?"),
    ("What is the routine of a boy of age 24?", "What is the routine of a boy of age 23?"),
    ("Is there a clinic in Mercer County?", "Is there a clinic in Macoupin County?"),
    ("What is the capital of Austria?", "What is the capital of Australia?"),
    ("Where can I buy an Echo in India?", "Where can I buy an Echo in Delhi, India?"),
    ("Is the MacBook good for hacking?", "Is the MacBook Pro good for hacking?"),
    ("What was ported from Java to .NET?", "What was ported from .NET to Java?"),
    ("What is the best gift you have ever given?", "What is the best gift you have ever received?"),
    ("Why should I invest in gold?", "Why shouldn't I invest in gold?"),
    ("How do I find the hotels in Bhopal?", "Where do I find the hotels in Bhopal?"),
    ("How does the M605x print?", "How does the M605n print?"),
    ("Why do cats purr?", "When do cats purr?"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_what_differs_in_words_alone_is_the_same_question(first: str, second: str) -> None:
    assert is_same_question(first, second)
    assert is_same_question(second, first)


@pytest.mark.parametrize(("first", "second"), OTHER)
def test_what_names_counts_denies_or_asks_otherwise_is_another_question(first: str, second: str) -> None:
    assert not is_same_question(first, second)
    assert not is_same_question(second, first)


@given(st.text(max_size=80), st.text(max_size=80))
def test_the_order_does_not_matter_and_every_question_is_its_own(first: str, second: str) -> None:
    assert is_same_question(first, second) == is_same_question(second, first)
    assert is_same_question(first, first)
    assert is_same_question(first, first.upper()) or first.upper().lower() != first.lower()
