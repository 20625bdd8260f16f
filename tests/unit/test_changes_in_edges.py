import pytest

from lamina.extraction.edges import extract_graph


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
    ],
)
def test_what_is_only_thought_of_changes_nothing(text: str) -> None:
    assert edges_of(text) == []
