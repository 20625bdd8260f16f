import pytest

from lamina.extraction.edges import BY_OTHERS, CONFIDENCE, extract_graph


def edges_of(text: str, speaker: str | None = "Ann") -> list[tuple[str, str, str]]:
    return [(edge.subject, edge.type, edge.object) for edge in extract_graph([text], [speaker]).edges]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I now use Helix instead of Vim.", [("uses", "Helix"), ("stopped_using", "Vim")]),
        ("I use Zed rather than Emacs these days.", [("uses", "Zed"), ("stopped_using", "Emacs")]),
        ("I switched from Vim over to Helix.", [("stopped_using", "Vim"), ("uses", "Helix")]),
        ("I no longer use Slack.", [("stopped_using", "Slack")]),
        ("I moved from Paris to Berlin.", [("moved_away_from", "Paris"), ("moved_to", "Berlin")]),
        ("I no longer live in Paris.", [("moved_away_from", "Paris")]),
        ("I no longer work for Initech.", [("left", "Initech")]),
        ("I don't work at Initech any more.", [("left", "Initech")]),
        ("I don't use Slack any more.", [("stopped_using", "Slack")]),
        ("I use Helix now instead of Vim.", [("uses", "Helix"), ("stopped_using", "Vim")]),
        ("I replaced Vim with Helix.", [("uses", "Helix"), ("stopped_using", "Vim")]),
        ("We dropped Redis in favour of Valkey.", [("uses", "Valkey"), ("stopped_using", "Redis")]),
        ("I relocated to Tallinn.", [("moved_to", "Tallinn")]),
        ("We live in Porto now.", [("lives_in", "Porto")]),
        ("I work part-time at Initech.", [("works_at", "Initech")]),
        ("Forget that I live in Paris.", [("moved_away_from", "Paris")]),
        ("My boss is now Petra Vogel.", [("has_boss", "Petra Vogel")]),
        ("Petra Vogel is my new boss.", [("has_boss", "Petra Vogel")]),
        ("My wife Jo's car is old.", [("has_wife", "Jo")]),
        ("I'm engaged to Jo Brand.", [("engaged_to", "Jo Brand")]),
        ("I divorced Jo Brand.", [("divorced", "Jo Brand")]),
        ("I joined the Rowing Club.", [("member_of", "Rowing Club")]),
        ("I left the Rowing Club.", [("left", "Rowing Club"), ("left_group", "Rowing Club")]),
        ("I work at Initech and I also work at Hooli.", [("works_at", "Initech"), ("also_works_at", "Hooli")]),
        (
            "I moved from Paris to Berlin and joined Hooli.",
            [("moved_away_from", "Paris"), ("moved_to", "Berlin"), ("joined", "Hooli")],
        ),
    ],
)
def test_a_change_states_what_ended_and_what_began(text: str, expected: list[tuple[str, str]]) -> None:
    assert sorted(edges_of(text)) == sorted(("Ann", *edge) for edge in expected)


@pytest.mark.parametrize(
    "text",
    [
        "If I switched from Vim to Helix, would it help?",
        "Should I use Helix instead of Vim?",
        "I might use Helix instead of Vim.",
        "I dreamt that I moved from Paris to Berlin.",
        "I've moved to Windows 12.",
        "Some days I live in Excel.",
        "I joined Ben for a walk.",
        "I joined Hooli on a call.",
        "My boss was Petra Vogel.",
        "My boss is German.",
        "My husband is Tim's brother.",
        "My boss's Petra Vogel fan club.",
        "Kim is my boss's wife.",
        "I cancelled Monday.",
    ],
)
def test_what_is_only_thought_of_changes_nothing(text: str) -> None:
    assert edges_of(text) == []


def test_who_holds_an_office_is_stated_of_what_has_it() -> None:
    assert edges_of("The CEO of Initech is Kim Lee.", None) == [
        ("Kim Lee", "ceo_of", "Initech"),
        ("Initech", "has_ceo", "Kim Lee"),
    ]
    assert edges_of("Kim Lee became CEO of Initech.", None) == edges_of("The CEO of Initech is Kim Lee.", None)
    assert edges_of("Kim Lee is the new CEO of Initech.", None) == edges_of("The CEO of Initech is Kim Lee.", None)
    assert edges_of("Dana Weiss is the owner of Billing.", None)[1:] == [("Billing", "owned_by", "Dana Weiss")]
    assert edges_of("Kim Lee was CEO of Initech.", None) == [("Kim Lee", "ceo_of", "Initech")]
    assert edges_of("Kim Lee is the former CEO of Initech.", None) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Falcon is on version 2.3 now.", [("Falcon", "has_version", "2.3")]),
        ("We upgraded Postgres from 15 to 17.", [("Postgres", "has_version", "17")]),
        ("The Falcon project is cancelled.", [("Falcon", "has_status", "cancelled")]),
        ("The Lyon Conference was postponed from 3 May to 10 May.", [("Lyon Conference", "has_date", "10 May")]),
        ("The Lyon Conference takes place on 3 May.", [("Lyon Conference", "has_date", "3 May")]),
        ("The Falcon team is now led by Dana Weiss.", [("Falcon", "led_by", "Dana Weiss")]),
        ("We updated Ben to 17 new rules.", []),
        ("Falcon is closed on Mondays.", []),
        ("Falcon is not cancelled.", []),
        ("Is Falcon cancelled?", []),
        ("Falcon might be moved to Friday.", []),
        ("My tour of Falcon is cancelled.", []),
        ("The Falcon team was led by Dana Weiss.", []),
    ],
)
def test_a_thing_with_a_name_has_one_version_status_date_and_lead(
    text: str, expected: list[tuple[str, str, str]]
) -> None:
    assert edges_of(text) == expected
    assert all(edge.confidence == CONFIDENCE for edge in extract_graph([text], ["Ann"]).edges)


def test_of_somebody_else_the_same_is_read() -> None:
    assert edges_of("Ben no longer works at Initech.", None) == [("Ben", "left", "Initech")]
    assert edges_of("Ben left Initech to join Hooli.", None) == [("Ben", "left", "Initech"), ("Ben", "joined", "Hooli")]
    assert edges_of("Ben has lived in Graz since 2010.", None) == [("Ben", "lives_in", "Graz")]
    assert edges_of("Ben has worked at Hooli for six years.", None) == [("Ben", "works_at", "Hooli")]
    assert edges_of("Ben has lived in Graz.", None) == [("Ben", "lived_in", "Graz")]


@pytest.mark.parametrize(
    "text", ["Ben moved to Berlin.", "Ben left Initech.", "Ben stopped using Vim.", "Ben works at Hooli."]
)
def test_what_others_say_of_somebody_is_less_sure(text: str) -> None:
    assert [edge.confidence for edge in extract_graph([text], ["Ann"]).edges] == [BY_OTHERS]
    assert [edge.confidence for edge in extract_graph([text], ["Ben"]).edges] == [CONFIDENCE]
