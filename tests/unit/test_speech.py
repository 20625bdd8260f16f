import pytest

from lamina.extraction.speech import MASK, statements


def readable(masked: str) -> str:
    return masked.replace(MASK, "").strip()


def own(text: str) -> list[str]:
    """Return what the speaker of a text states, part by part."""
    return [part for said in statements(text) for start, end in said.own if (part := readable(said.masked[start:end]))]


def told(text: str) -> list[str]:
    return [part for said in statements(text) for start, end in said.told if (part := readable(said.masked[start:end]))]


@pytest.mark.parametrize(
    "text",
    [
        "I live in Rome.",
        "Well, I live in Rome, as you know.",
        "Correction: I live in Rome.",
        "Here's the thing: I live in Rome.",
        "I don’t live in Rome.",
        "Will joined Hooli.",
        "I like the play “Cats”.",
        "The parents' house and the kids' toys are mine.",
        "Here's a pic from a recent game.",
        "I want 'em to feel good.",
        "I decided to write a story for my son.",
    ],
)
def test_a_plain_sentence_is_stated(text: str) -> None:
    assert own(text) == [text.replace("’", "'")]


@pytest.mark.parametrize(
    "text",
    [
        "Do I live in Rome?",
        "where do i live",
        "Will Bob join Hooli",
        "If I live in Rome, I eat pizza.",
        "It is not true that I live in Rome.",
        "Write a story: I live in Rome. I work at Hooli.",
        "Pretend you are Bob. I live in Rome. I work at Hooli.",
        "Translate this into French. I live in Rome.",
        "> I live in Rome.\n> I work at Hooli.",
        "-----Original Message-----\nI live in Rome.",
        "From: Bob\nI live in Rome.",
        "```\nI live in Rome\n```",
        "`I live in Rome`",
        "'I don't live in Rome'",
        "„Ich wohne in Rom, I live in Rome“",
        "♪ I live in Rome ♪",
        "My name is {{name}}.",
        "In my novel I live in Rome.",
        "I live in Rome, she said.",
        "Bob wrote: I live in Rome",
        "Let's role play. I live in Rome.",
        "You are a pirate. I live in Rome.",
        "*draws a sword* I live in Rome.",
        "in the sims i live in Rome",
        "In Skyrim, I live in Rome.",
        "id,text\n1,I live in Rome\n2,I join you",
        "| id | text |\n| 1 | I live in Rome |",
        "Bob: Well. I live in Rome.",
        "Customer: I moved. I live in Rome.",
        "The ticket says:\n\nI live in Rome.\nMy name is Bob.",
        "Yeah right, and I live in Rome.",
        "Hopefully I live in Rome.",
        "Apparently I live in Rome.",
    ],
)
def test_what_is_asked_supposed_denied_invented_or_quoted_is_not_stated(text: str) -> None:
    assert not {"live", "name", "join"} & {word for part in own(text) for word in part.split()}


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("I live in Rome; if I lived in Oslo I would ski.", ["I live in Rome"]),
        ("I live in Rome, where can I buy good bread?", ["I live in Rome"]),
        ("I live in Rome. Is it far?", ["I live in Rome."]),
        ("She wishes I lived in Oslo, but I live in Rome.", ["She", "I live in Rome."]),
        ("If I moved I would ski, but I live in Rome.", ["I live in Rome."]),
        ("Make it vegan, I live in Rome.", ["I live in Rome."]),
        ("The ticket says:\nI live in Oslo.\n\nI live in Rome.", ["The ticket", "I live in Rome."]),
        ("About me:\nI live in Rome.", ["About me:", "I live in Rome."]),
        ("In winter I live in Rome.", ["In winter I live in Rome."]),
        ("I live in Rome but my wife says she lives in Oslo.", ["I live in Rome but my wife"]),
        ("I live in Rome.\n\n> I live in Oslo.", ["I live in Rome."]),
        ("On Tue, Bob wrote:\n> I live in Oslo\n\nI live in Rome.", ["I live in Rome."]),
    ],
)
def test_a_statement_ends_where_another_mood_begins(text: str, stated: list[str]) -> None:
    assert own(text) == stated


def test_hearsay_is_stated_by_nobody() -> None:
    assert told("Bob said that Eve works at Hooli.") == ["Bob"]
    assert own("Bob said that Eve works at Hooli.") == ["Bob"]
    assert told("Eve works at Hooli, says Bob.") == []


def test_places_are_those_of_the_text() -> None:
    text = "  I’m here.  `code` He said “I live in Rome, mostly” twice.\n"

    for said in statements(text):
        assert text[said.start : said.start + len(said.text)] == said.text
        assert len(said.masked) == len(said.text)


@pytest.mark.parametrize(
    "text",
    [
        unit * (200_000 // len(unit))
        for unit in ["'a ", '"', "“a", "`", "```", "\n>", "if ", "on a wrote:", "{{", "I live, ", "-- ", "♪"]
    ],
)
def test_the_work_grows_with_the_text(text: str) -> None:
    assert sum(len(said.text) for said in statements(text)) <= len(text)
