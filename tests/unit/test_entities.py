from itertools import pairwise

import pytest

from lamina.core.memories import MAX_ENTITIES, Edge, Entity
from lamina.extraction.edges import CONFIDENCE, extract_graph
from lamina.extraction.entities import as_entity, find_mentions, merge_equal_entities


def entities(*texts: str, speakers: tuple[str, ...] = ()) -> tuple[Entity, ...]:
    people = [Entity(speaker, "person", confidence=1.0) for speaker in speakers]
    return merge_equal_entities([*people, *(as_entity(mention) for found in find_mentions(texts) for mention in found)])


def names(*texts: str, speakers: tuple[str, ...] = ()) -> list[str]:
    return [entity.name for entity in entities(*texts, speakers=speakers)]


def types(text: str) -> dict[str, str]:
    return {entity.name: entity.type for entity in extract_graph([text]).entities}


def stated(text: str, speaker: str | None = None) -> list[tuple[str, str, str]]:
    return [(edge.subject, edge.type, edge.object) for edge in extract_graph([text], [speaker]).edges]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("We asked Ann about it.", ["Ann"]),
        ("It was Ermengarde of Tours who married Lothair II.", ["Ermengarde of Tours", "Lothair II"]),
        ("He is called Boso the Elder.", ["Boso the Elder"]),
        ("She met Ludwig van Beethoven, then Ursula von der Leyen.", ["Ludwig van Beethoven", "Ursula von der Leyen"]),
        ("They live in Rio de Janeiro.", ["Rio de Janeiro"]),
        ("I read The Lord of the Rings.", ["Lord of the Rings"]),
        ("They flew with Apollo 11 to the moon.", ["Apollo 11"]),
        ("We saw George W. Bush and J. R. R. Tolkien.", ["George W. Bush", "J. R. R. Tolkien"]),
        ("I called Dr. Smith in St. Louis.", ["Smith", "St. Louis"]),
        ("It's Ann's bike.", ["Ann"]),
        ("The car is Ann’s Berlin car.", ["Ann", "Berlin"]),
        ("My name is O'Brien.", ["O'Brien"]),
        ("We use Node.js and iPhone apps at AT&T.", ["Node.js", "iPhone", "AT&T"]),
        ("We met Anna-Lena.", ["Anna-Lena"]),
        ("Then we met Ann and Bob.", ["Ann", "Bob"]),
        ("Они живут в городе Москва.", ["Москва"]),
        ("Then Αθήνα was near.", ["Αθήνα"]),
    ],
)
def test_capitalised_runs_are_names_with_their_particles_and_numerals(text: str, found: list[str]) -> None:
    assert names(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('I loved "The Old Guard" and “Charlotte’s Web”.', ["Old Guard", "Charlotte’s Web"]),
        ('She said "Let us go home." and left.', []),
        ('She said "go home" and left.', []),
        ("Ask @ann_lee or ann.lee@acme.com, not a@b.", ["@ann_lee", "ann.lee@acme.com"]),
        ("See https://Example.com/Foo and www.Bar.org or `Baz`.", []),
        ("Install @scope/Package now.", ["Package"]),
    ],
)
def test_titles_handles_and_addresses_are_names_and_links_are_not(text: str, found: list[str]) -> None:
    assert names(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "The weather is nice. Yesterday it rained. Thanks! What a day.",
        "Do I like it? I think I'm fine. I've seen it. OK.",
        "On Monday, in March, we start.",
        "Painting is fun. Running helped me. Pets bring joy. Quickly done.",
        "THIS IS ALL VERY LOUD.",
        "How've you been? That'll do. Let's go.",
        "- Buy milk\n- Call home\n* Sleep",
        "It is plan B. I see.",
        "the quick brown fox",
        "",
        "?!…",
    ],
)
def test_what_only_opens_a_sentence_or_names_a_day_is_no_name(text: str) -> None:
    assert names(text) == []


@pytest.mark.parametrize(
    "text", ["今日は東京タワーに行った", "ذهبت سارة إلى القاهرة", "שרה גרה בתל אביב", "राम दिल्ली गया"]
)
def test_scripts_without_capitals_show_no_names(text: str) -> None:
    assert names(text) == []


@pytest.mark.parametrize("text", ["Zoë works here.", "Zoë's here.", "Zoë and Bob left.", "Zoë called."])
def test_a_subject_at_the_start_of_a_sentence_is_a_name(text: str) -> None:
    assert names(text)[0] == "Zoë"


def test_a_word_that_is_a_name_inside_a_sentence_is_one_at_the_start_of_another() -> None:
    assert names("Hope!", "I met Hope.") == ["Hope"]
    assert names("Hope!") == []


def test_a_common_word_before_a_name_at_the_start_of_a_sentence_is_not_part_of_it() -> None:
    assert names("Yesterday Ann came. Thanks Bob! When Eve sleeps, we work. The Beatles sang.") == [
        "Ann",
        "Bob",
        "Eve",
        "Beatles",
    ]


def test_three_spellings_of_a_name_in_one_batch_are_one_entity_in_its_first_spelling() -> None:
    found = entities("We met Zoë.", "We met Zoe\u0308.", "We met ZOË.")

    assert [entity.name for entity in found] == ["Zoë"]


def test_a_name_inside_a_longer_word_is_another_name() -> None:
    assert names("We met Ann in Annapolis.") == ["Ann", "Annapolis"]


def test_speakers_are_persons_whether_mentioned_or_not() -> None:
    found = entities("We met ann and Bob.", speakers=("Ann", "Eve"))

    assert [(entity.name, entity.type) for entity in found] == [("Ann", "person"), ("Eve", "person"), ("Bob", "thing")]


@pytest.mark.parametrize(
    ("text", "name", "type_"),
    [
        ("We met Mrs. Jones.", "Jones", "person"),
        ("We met Queen Elizabeth.", "Queen Elizabeth", "person"),
        ("This is my friend Ann.", "Ann", "person"),
        ("We bought Acme Inc. last year.", "Acme Inc", "organisation"),
        ("He studied at the University of Graz.", "University of Graz", "organisation"),
        ("He moved to Graz.", "Graz", "place"),
        ("We swam in Lake Constance.", "Lake Constance", "place"),
        ("He works at Initech, Eve works at Hooli.", "Hooli", "organisation"),
        ("We read Faust.", "Faust", "thing"),
    ],
)
def test_the_words_around_a_name_tell_what_it_is(text: str, name: str, type_: str) -> None:
    assert types(text)[name] == type_


def test_a_name_only_guessed_from_a_sentence_start_is_less_sure() -> None:
    guessed, told = entities("Zoë called Ann.")

    assert guessed.confidence < told.confidence


def test_mentions_stand_where_they_say_and_never_overlap() -> None:
    text = 'Then "The Old Guard" by Gina Prince-Bythewood pleased Ann\'s boss in St. Louis.'
    (found,) = find_mentions([text])

    assert [text[mention.start : mention.end] for mention in found] == [mention.name for mention in found]
    assert all(left.end <= right.start for left, right in pairwise(found))


def test_a_text_of_very_many_names_yields_a_bounded_number() -> None:
    assert len(names(" ".join(f"we met Ann{number}x." for number in range(1_000)))) == MAX_ENTITIES


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("Ann works at Initech.", [("Ann", "works_at", "Initech")]),
        ("Ann is working for the Initech group.", [("Ann", "works_at", "Initech")]),
        ("Ann left Initech and joined Hooli.", [("Ann", "left", "Initech"), ("Ann", "joined", "Hooli")]),
        ("Ann left Initech, then moved to Graz.", [("Ann", "left", "Initech"), ("Ann", "moved_to", "Graz")]),
        ("Ann is married to Bob.", [("Ann", "married_to", "Bob")]),
        ("Ann's wife Eve works with Carol.", [("Ann", "has_wife", "Eve"), ("Eve", "works_with", "Carol")]),
        ("Ann's mother is Eve.", [("Ann", "has_mother", "Eve")]),
        ("Eve is Ann's mother.", [("Ann", "has_mother", "Eve")]),
        ("Boso was the father of Ermengarde.", [("Ermengarde", "has_father", "Boso")]),
        ("Ann lives in Graz.", [("Ann", "lives_in", "Graz")]),
        ("Ann founded Acme.", [("Ann", "founded", "Acme")]),
        ("We know Acme was founded by Ann.", [("Ann", "founded", "Acme")]),
        ("Ann is the director of Alien.", [("Ann", "director_of", "Alien")]),
        ('"Alien" was directed by Ann.', [("Ann", "director_of", "Alien")]),
        ("Ann reports to Bob.", [("Ann", "reports_to", "Bob")]),
        ("Ann uses Postgres.", [("Ann", "uses", "Postgres")]),
        ("Ann met Bob.", [("Ann", "met", "Bob")]),
        ("Ann does not work at Initech.", []),
        ("Ann never met Bob.", []),
        ("Does Ann work with Bob? Ann works with Bob?", []),
        ("Ann works at home. Bob lives in a tent.", []),
        ("Ann slept. Bob works at Initech.", [("Bob", "works_at", "Initech")]),
    ],
)
def test_what_stands_between_two_names_states_how_they_stand(text: str, edges: list[tuple[str, str, str]]) -> None:
    assert stated(text) == edges


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("I work at Initech.", [("Ann", "works_at", "Initech")]),
        ("I left Initech, joined Hooli.", [("Ann", "left", "Initech"), ("Ann", "joined", "Hooli")]),
        ("left Initech, joined Hooli", [("Ann", "left", "Initech"), ("Ann", "joined", "Hooli")]),
        ("I'm married to Bob.", [("Ann", "married_to", "Bob")]),
        ("My boss is Bob.", [("Ann", "has_boss", "Bob")]),
        ("I use Postgres and moved to Graz.", [("Ann", "uses", "Postgres"), ("Ann", "moved_to", "Graz")]),
    ],
)
def test_the_speaker_is_who_says_i(text: str, edges: list[tuple[str, str, str]]) -> None:
    assert stated(text, "Ann") == edges
    assert stated(text) == []


@pytest.mark.parametrize("nobody", ["user", "Assistant"])
def test_a_role_is_no_speaker(nobody: str) -> None:
    found = extract_graph(["I work at Initech."], [nobody])

    assert [entity.name for entity in found.entities] == ["Initech"]
    assert found.edges == ()


def test_both_directions_of_a_statement_are_two() -> None:
    assert stated("Ann works with Bob. Bob works with Ann.") == [
        ("Ann", "works_with", "Bob"),
        ("Bob", "works_with", "Ann"),
    ]


def test_a_statement_made_twice_is_one_and_says_how_sure_it_is() -> None:
    assert extract_graph(["Ann met Bob.", "ANN met Bob."]).edges == (Edge("ANN", "met", "Bob", confidence=CONFIDENCE),)
