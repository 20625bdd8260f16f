import time
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lamina.core.profiles import ProfileStatement, TimedDocument, layered, merge, state, taken_back

NOW = datetime(2026, 11, 1, tzinfo=UTC)
DAY = timedelta(days=1)

VALUES = st.sampled_from(["tea", "Tea", "coffee"])
STATEMENTS = st.one_of(
    st.builds(lambda value: {"patch": {"home": value}}, VALUES),
    st.builds(lambda value: {"patch": {"likes": [value]}}, VALUES),
    st.builds(lambda key, value: {"withdrawn": {key: [value]}}, st.sampled_from(["home", "likes"]), VALUES),
    st.just({"patch": {"likes": None}}),
    st.just({"patch": {"home": None}}),
)


def said(days_ago: int | None, **change: Any) -> ProfileStatement:
    return ProfileStatement(**change, stated_at=None if days_ago is None else NOW - days_ago * DAY)


def after(*statements: ProfileStatement, document: dict[str, Any] | None = None) -> dict[str, Any]:
    profile = TimedDocument(document or {}).since(NOW - 10 * DAY)
    for statement in statements:
        profile = state(profile, [statement], NOW)
    return dict(profile.document)


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        pytest.param([said(2, patch={"a": "x"}), said(5, patch={"a": "y"})], {"a": "x"}, id="an import of the past"),
        pytest.param([said(5, patch={"a": "x"}), said(2, patch={"a": "y"})], {"a": "y"}, id="in the order of time"),
        pytest.param([said(2, patch={"a": "x"}), said(2, patch={"a": "y"})], {"a": "y"}, id="the same time"),
        pytest.param([said(None, patch={"a": "x"}), said(1, patch={"a": "y"})], {"a": "x"}, id="no time is arrival"),
        pytest.param([said(-9, patch={"a": "x"}), said(None, patch={"a": "y"})], {"a": "y"}, id="a time to come"),
        pytest.param([said(1, withdrawn={"a": ["X"]}), said(2, patch={"a": "x"})], {}, id="withdrawn since"),
        pytest.param([said(2, withdrawn={"a": ["x"]}), said(1, patch={"a": "x"})], {"a": "x"}, id="stated again"),
        pytest.param([said(2, patch={"a": "x"}), said(1, withdrawn={"a": ["y"]})], {"a": "x"}, id="another value"),
        pytest.param([said(1, patch={"a": None}), said(2, patch={"a": "x"})], {}, id="deleted since"),
        pytest.param([said(2, patch={"a": ["x"]}), said(5, patch={"a": ["y"]})], {"a": ["x", "y"]}, id="both items"),
        pytest.param(
            [said(2, patch={"a": ["Tea"]}), said(1, patch={"a": ["tea", "x", "X"]})],
            {"a": ["Tea", "x", "X"]},
            id="case",
        ),
        pytest.param([said(2, withdrawn={"a": ["x"]}), said(5, patch={"a": ["x", "y"]})], {"a": ["y"]}, id="one item"),
        pytest.param([said(2, patch={"a": ["x"]}), said(1, withdrawn={"a": ["x"]})], {}, id="the last item"),
        pytest.param([said(1, patch={"a": ["x"]}), said(2, patch={"a": None})], {"a": ["x"]}, id="items said since"),
    ],
)
def test_the_later_statement_holds(statements: list[ProfileStatement], expected: dict[str, Any]) -> None:
    assert after(*statements) == expected


def test_a_value_that_an_older_release_stored_has_the_time_of_its_profile() -> None:
    assert after(said(11, patch={"a": "y"}), document={"a": "x"}) == {"a": "x"}
    assert after(said(9, patch={"a": "y"}), document={"a": "x"}) == {"a": "y"}
    assert after(said(11, withdrawn={"a": ["x"]}), document={"a": ["x"]}) == {"a": ["x"]}
    assert after(said(11, patch={"a": ["y"]}), document={"a": ["x"]}) == {"a": ["x", "y"]}


def test_a_statement_of_now_holds_over_a_writer_whose_clock_was_ahead() -> None:
    ahead = state(TimedDocument({}), [said(None, patch={"a": "x"})], NOW + DAY)

    assert state(ahead, [said(None, patch={"a": None})], NOW).document == {}


def test_a_value_that_is_stated_again_outlives_an_import_from_between() -> None:
    assert after(*(said(days, patch={"a": value}) for days, value in [(9, "x"), (1, "x"), (5, "y")])) == {"a": "x"}


@given(st.lists(STATEMENTS, min_size=1, max_size=4))
@example([{"patch": {"likes": ["tea"]}}, {"patch": {"likes": ["Tea"]}}])
def test_the_order_of_arrival_does_not_count(changes: list[dict[str, Any]]) -> None:
    statements = [said(place, **change) for place, change in enumerate(changes)]
    outcomes = [after(*order) for order in permutations(statements)]
    as_sets = [
        # Items that differ in case are one; it is spelled as the first that arrived.
        {key: sorted(map(str.casefold, value)) if isinstance(value, list) else value for key, value in document.items()}
        for document in (*outcomes, dict(state(TimedDocument({}), statements, NOW).document))
    ]

    assert all(document == as_sets[0] for document in as_sets)


@given(
    st.lists(
        st.dictionaries(st.sampled_from("abc"), st.sampled_from([None, 1, True, "x", ["x"], ["y"], {"k": 1}])),
        max_size=5,
    )
)
def test_statements_in_the_order_of_arrival_are_patches(patches: list[dict[str, Any]]) -> None:
    document: dict[str, Any] = {}
    for patch in patches:
        document = merge(document, patch)

    assert after(*(said(None, patch=patch) for patch in patches)) == document


def test_twenty_thousand_statements_take_a_moment() -> None:
    statements = [said(1, patch={"likes": [f"tea{number}"]}) for number in range(20_000)]

    begin = time.process_time()
    profile = state(TimedDocument({"likes": ["Tea1"]}).since(NOW - DAY), [*statements, *statements], NOW)
    seconds = time.process_time() - begin

    assert profile.document["likes"][:3] == ["Tea1", "tea0", "tea2"]
    assert len(profile.document["likes"]) == 20_000
    assert seconds < 30


def test_statements_of_one_time_count_together_as_they_do_one_by_one() -> None:
    statements = [
        said(2, patch={"likes": ["tea", "Tea"]}),
        said(2, patch={"likes": ["TEA", "x"]}),
        said(2, withdrawn={"likes": ["x"]}),
        said(2, patch={"likes": ["y"]}),
        said(2, patch={"likes": ["X", "y"]}),
        said(2, patch={"home": "z"}),
    ]

    assert dict(state(TimedDocument({}), statements, NOW).document) == after(*statements)


def of_domain(domain: str, **fields: Any) -> dict[str, Any]:
    return {"domains": {domain: fields}}


def test_fields_of_domains_have_times_of_their_own() -> None:
    assert after(
        said(2, patch=of_domain("cooking", oil="olive")),
        said(3, patch=of_domain("engineering", stack=["Go"])),
        said(5, patch=of_domain("cooking", oil="rape", style="slow")),
    ) == {"domains": {"cooking": {"oil": "olive", "style": "slow"}, "engineering": {"stack": ["Go"]}}}


def test_a_value_that_holds_no_longer_leaves_every_domain_in_either_order() -> None:
    stated, withdrawn = said(3, patch=of_domain("cooking", likes=["oil"])), said(2, withdrawn={"likes": ["oil"]})

    assert after(stated, withdrawn) == {}
    assert after(said(1, patch=of_domain("cooking", likes=["oil"])), withdrawn) == of_domain("cooking", likes=["oil"])


def test_what_is_taken_back_leaves_its_domain() -> None:
    told = said(3, patch={**of_domain("engineering", stack=["Go", "Redis"], editor="Vim"), "name": "Ann"})
    other = said(2, patch=of_domain("engineering", stack=["Redis", "Rust"]))

    ended = taken_back([told], NOW - 3 * DAY, "message:1")

    assert after(told, other, *ended) == of_domain("engineering", stack=["Redis", "Rust"])


def test_domains_that_were_deleted_stay_away_from_an_import_of_before() -> None:
    deleted = [said(9, patch=of_domain("a", x=1)), said(5, patch={"domains": None})]

    assert after(*deleted, said(6, patch=of_domain("a", x=1, y=2))) == {}
    assert after(*deleted, said(4, patch=of_domain("a", y=2))) == of_domain("a", y=2)
    assert after(said(11, patch=of_domain("a", x=None)), document=of_domain("a", x=1)) == of_domain("a", x=1)
    assert after(said(9, patch=of_domain("a", x=None)), document=of_domain("a", x=1)) == {}


def test_the_upper_of_two_profiles_holds() -> None:
    beneath = {"name": "Ann", "city": "Graz", "likes": ["tea"], "domains": {"a": {"x": 1, "y": 1}}}
    above = {"city": "Rome", "likes": ["rain"], "domains": {"a": {"x": 2}}}

    assert layered(beneath, above) == {
        "name": "Ann",
        "city": "Rome",
        "likes": ["tea", "rain"],
        "domains": {"a": {"x": 2, "y": 1}},
    }
    assert layered(
        {"instructions": ["Always answer in German.", "Be brief."]}, {"instructions": ["Always answer in French."]}
    ) == {"instructions": ["Be brief.", "Always answer in French."]}
