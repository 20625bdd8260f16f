from typing import Any

import pytest

from lamina.extraction.facts import facts_of
from lamina.extraction.speech import statements


def facts(text: str) -> list[tuple[dict[str, Any], dict[str, list[str]]]]:
    found = (fact for said in statements(text) for fact in facts_of(said))
    return [(dict(fact.patch), {key: list(values) for key, values in fact.withdrawn.items()}) for fact in found]


def stated(**patch: Any) -> tuple[dict[str, Any], dict[str, list[str]]]:
    return patch, {}


def ended(**withdrawn: list[str]) -> tuple[dict[str, Any], dict[str, list[str]]]:
    return {}, withdrawn


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("I live in Rio de Janeiro.", "Rio de Janeiro"),
        ("I live in St. Louis.", "St. Louis"),
        ("I live in the Hague.", "the Hague"),
        ("I live in Stratford-upon-Avon with my dog.", "Stratford-upon-Avon"),
        ("I live in Frankfurt am Main", "Frankfurt am Main"),
        ("I live in Washington D.C. now", "Washington D.C."),
        ("I live in Berlin Monday to Friday.", "Berlin"),
        ("I live in Berlin I like it", "Berlin"),
        ("I’m currently based in Łódź.", "Łódź"),
        ("My husband and I live in Graz.", "Graz"),
        ("i live in lisbon, lol", "lisbon"),
        ("I have lived in Rome since 2010.", "Rome"),
        ("I've just moved from Rome to Turin.", "Turin"),
        ("I relocated to Los Angeles for work.", "Los Angeles"),
    ],
)
def test_a_place_is_read_whole(text: str, value: str) -> None:
    assert facts(text) == [stated(location=value)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("I work at Procter & Gamble.", "Procter & Gamble"),
        ("I work for L'Oréal.", "L'Oréal"),
        ("I work at McDonald's.", "McDonald's"),
        ("I work for the University of Vienna", "University of Vienna"),
        ("I work as a nurse at St. Mary's Hospital.", "St. Mary's Hospital"),
        ("I work in sales at eBay.", "eBay"),
        ("I work for 3M", "3M"),
        ("I got a new job at Hooli!", "Hooli"),
        ("I was hired by Hooli last week.", "Hooli"),
        ("I joined Hooli as a data engineer.", "Hooli"),
        ("I left Initech for Hooli.", "Hooli"),
        ("My employer is Hooli.", "Hooli"),
        ("I've been at Hooli for six years.", "Hooli"),
        ("I'm a nurse at Hooli and mostly on nights.", "Hooli"),
        ("Since January I work for 3M.", "3M"),
        ("i work 4 days a week at ikea", "ikea"),
    ],
)
def test_an_employer_is_read_whole(text: str, value: str) -> None:
    assert facts(text) == [stated(employer=value)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("My name is Ludwig van Beethoven.", "Ludwig van Beethoven"),
        ("My name is Jean-Luc Picard", "Jean-Luc Picard"),
        ("My name’s Siobhán O’Connor.", "Siobhán O’Connor"),
        ("My name is J.R.R. Tolkien.", "J.R.R. Tolkien"),
        ("my name is joão and i am here", "joão"),
        ("You can call me Al.", "Al"),
        ("Everyone calls me Al.", "Al"),
        ("I go by Al.", "Al"),
        ("Hi all, I'm Al from billing.", "Al"),
        ("Call me Dr. Smith, please.", "Dr. Smith"),
    ],
)
def test_a_name_is_read_whole(text: str, value: str) -> None:
    assert facts(text) == [stated(name=value)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("I prefer oat milk and my wife hates coffee.", "oat milk"),
        ("I prefer salt and vinegar crisps.", "salt and vinegar crisps"),
        ("I prefer Python and Go.", "Python and Go"),
        ("I prefer Python and Ann hates it.", "Python"),
        ("I prefer rye bread and the kids won't touch it.", "rye bread"),
        ("I prefer the sofa and our cat gets the chair.", "the sofa"),
        ("I prefer cash and cards are fine too.", "cash"),
        ("For long trips I prefer the train.", "the train"),
        ("My preference is aisle seats.", "aisle seats"),
        ("I prefer trains because planes make me ill.", "trains"),
        ("I prefer short answers – long ones tire me.", "short answers"),
        ("I prefer to be called Sam, thanks", "to be called Sam"),
    ],
)
def test_a_preference_ends_with_its_clause(text: str, value: str) -> None:
    assert facts(text) == [stated(preferences=[value])]


@pytest.mark.parametrize("words", ["over", "rather than", "instead of"])
def test_a_preference_over_another_ends_that_one(words: str) -> None:
    (found,) = facts(f"I prefer tea {words} coffee these days.")

    assert found == ({"preferences": [f"tea {words} coffee"]}, {"preferences": ["coffee"]})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I left Initech and joined Hooli.", [ended(employer=["Initech"]), stated(employer="Hooli")]),
        ("I quit Initech and started at Hooli", [ended(employer=["Initech"]), stated(employer="Hooli")]),
        ("I no longer work at Initech.", [ended(employer=["Initech"])]),
        ("I quit my job at Initech.", [ended(employer=["Initech"])]),
        ("I lost my job.", [stated(employer=None)]),
        ("I don't live in Porto, I live in Braga.", [ended(location=["Porto"]), stated(location="Braga")]),
        ("I used to live in Rome.", [ended(location=["Rome"])]),
        ("I moved away from Rome.", [ended(location=["Rome"])]),
        ("I don’t prefer tea any more, only coffee", [({"preferences": ["coffee"]}, {"preferences": ["tea"]})]),
        ("I no longer prefer tea but coffee.", [({"preferences": ["coffee"]}, {"preferences": ["tea"]})]),
        ("I don't like sushi any more.", [ended(preferences=["sushi"])]),
    ],
)
def test_a_change_ends_the_old_and_states_the_new(text: str, expected: list[Any]) -> None:
    assert facts(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Please call me Monday about the invoice.",
        "Call me Tomorrow, not today.",
        "Call me Maybe",
        "Call me Ishmael is a famous first line.",
        "Don't call me Bob.",
        "They call me Bob.",
        "my name is mud",
        "My name is not Bob.",
        "My name is pronounced Zo-ee.",
        "I live in fear.",
        "I live in a yellow house in Oslo.",
        "I live in Rome's suburbs.",
        "I will live in Rome.",
        "I live in Oslo next year.",
        "I am moving to Berlin.",
        "I moved to Linux.",
        "I lived in Rome.",
        "The town where I live in Italy is small.",
        "My brother lives in Berlin.",
        "I work at night.",
        "I work at Ann's bakery.",
        "I left Google at 6pm.",
        "I left Slack open all night.",
        "I left Anna a voicemail.",
        "I've been at Heathrow for six hours.",
        "I'm a customer at Hooli.",
        "My former employer is Enron.",
        "My friends call me every day.",
        "Hi, I'm Dutch.",
        "My preference doesn't matter.",
        "I left Google for lunch.",
        "I joined Bob for lunch.",
        "I joined the Labour Party.",
        "I know people who left Google and joined Hooli.",
        "I worked at Nokia.",
        "I prefer that.",
        "I prefer the second option.",
        "I prefer not to say.",
        "I'd prefer a window seat.",
        "I don't like sushi.",
        "My timezone is wrong.",
        "I was told I live in Kansas.",
        "People think I work at Apple.",
    ],
)
def test_it_states_nothing_of_the_profile(text: str) -> None:
    assert facts(text) == []


@pytest.mark.parametrize(
    ("text", "domain", "value"),
    [
        ("When it comes to cooking, I prefer olive oil.", "cooking", "olive oil"),
        ("As for travel, I prefer aisle seats.", "travel", "aisle seats"),
        ("Regarding data science, I really prefer notebooks.", "data_science", "notebooks"),
        ("For coding, I prefer short answers.", "coding", "short answers"),
        ("At work, I prefer email.", "work", "email"),
    ],
)
def test_a_preference_belongs_to_the_domain_that_its_sentence_begins_with(text: str, domain: str, value: str) -> None:
    assert facts(text) == [stated(domains={domain: {"preferences": [value]}})]


@pytest.mark.parametrize(
    "start", ["In general", "For now", "In winter", "In my opinion", "For the most part", "At last"]
)
def test_a_phrase_that_names_no_domain_leaves_a_preference_general(start: str) -> None:
    assert facts(f"{start}, I prefer tea.") == [stated(preferences=["tea"])]


def test_the_tools_of_a_stack_belong_to_engineering() -> None:
    assert facts("My tech stack is Node.js, Go and C++.") == [
        stated(domains={"engineering": {"stack": ["Node.js", "Go", "C++"]}})
    ]
    assert facts("My stack is growing, and I like it.") == []
    assert facts("My stack is a mess of Python.") == []
