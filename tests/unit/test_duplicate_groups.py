import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.policies.retention import duplicate_groups
from lamina.policies.retention.duplicate_groups import Merge, MergeCandidate, decide_merges
from lamina.text.paraphrase import is_same_statement
from lamina.text.words import words

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
THINGS = " ".join(f"thing{letter}" for letter in "abcdefghijklmnopqr")
LONG = "Ann likes to drink green tea with honey in the morning at home"
LONGER = "Ann really likes to drink green tea with honey in the morning at home"


def note(number: int, content: str, days_ago: float = 0, *, user: str | None = "ann") -> MergeCandidate:
    moment = NOW - timedelta(days=days_ago)
    return MergeCandidate(UUID(int=number), user, content, moment, 1, 0.5, 1.0, moment)


def groups(notes: Iterable[MergeCandidate]) -> list[list[int]]:
    return [[merge.survivor_id.int, *(id_.int for id_ in merge.absorbed_ids)] for merge in decide_merges(notes)]


def notes_of(*contents: str) -> list[MergeCandidate]:
    return [note(number, content, days_ago=number) for number, content in enumerate(contents)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I like green tea.", "I like green tea"),
        ("I like green tea.", "i LIKE  green tea!"),
        (LONG, LONGER),
        ("我每天早上在家里喝绿茶加蜂蜜然后去公司上班", "我每天早上在家里喝绿茶加蜂蜜然后去公司上班。"),
    ],
)
def test_texts_of_nearly_the_same_words_are_merged(first: str, second: str) -> None:
    assert groups(notes_of(first, second)) == [[0, 1]]
    assert groups(notes_of(second, first)) == [[0, 1]]


@pytest.mark.parametrize(
    "contents",
    [
        ("vegetarian, plays basketball", "vegetarian", "plays basketball on Tuesdays"),
        ("Budget is 1,500 EUR", "Budget is 15,000 EUR"),
        ("eats nuts", "does not eat nuts"),
        ("lives in Graz", "lives in Linz"),
        ("Ann", "Annapolis"),
        ("Ann manages Bob", "Bob manages Ann"),
        ("我喜欢绿茶", "我喜欢红茶"),
        ("👍", "👎", "!!!"),
    ],
)
def test_texts_that_say_something_else_are_kept(contents: Sequence[str]) -> None:
    assert groups(notes_of(*contents)) == []


@pytest.mark.parametrize(
    ("template", "first", "second"),
    [
        (f"The budget of {{}} EUR is for {THINGS}", "1,500", "15,000"),
        ("He {} all kinds of nuts and fruit at home and at work on every single day", "eats", "never eats"),
        ("lives in {} with two cats and a dog near the old bridge over the river today", "Graz", "Linz"),
        ("{} went to the harbour to see the ships that came in from the sea that day", "Ann", "Annapolis"),
        ("{} and a few words that stand in both texts so that most of them are the same", "Ann led Bob", "Bob led Ann"),
    ],
)
def test_long_texts_that_say_something_else_in_one_place_are_kept(template: str, first: str, second: str) -> None:
    contents = (template.format(first), template.format(second))
    one, other = (set(words(content)) for content in contents)
    assert len(one & other) / len(one | other) >= 0.85

    assert groups(notes_of(*contents)) == []


def test_long_texts_that_differ_in_a_word_are_merged() -> None:
    long = " ".join(f"clause{letter}{other} holds" for letter in "abcdefghij" for other in "abcdefghij")

    assert groups(notes_of(f"{long} indeed", f"{long} surely")) == [[0, 1]]


def test_equal_texts_without_words_are_merged() -> None:
    assert groups(notes_of("👍", "👍")) == [[0, 1]]


def test_notes_of_other_users_are_kept() -> None:
    assert groups([note(0, LONG), note(1, LONG, user="bob"), note(2, LONG, user=None)]) == []
    assert groups([note(0, LONG, user=None), note(1, LONG, user=None)]) == [[1, 0]]


@pytest.mark.parametrize("older", [LONG, LONGER])
def test_notes_are_merged_up_to_30_days_apart(older: str) -> None:
    assert groups([note(0, LONG), note(1, older, days_ago=30)]) == [[0, 1]]
    assert groups([note(0, LONG), note(1, older, days_ago=30 + 1e-9)]) == []


def test_the_newest_survives_and_of_one_time_the_greater_id() -> None:
    assert groups([note(1, LONG, 3), note(2, LONG, 2), note(3, LONG, 5)]) == [[2, 1, 3]]
    assert groups([note(1, LONG), note(3, LONGER), note(2, LONG)]) == [[3, 2, 1]]


def test_what_is_near_to_an_absorbed_note_alone_is_kept() -> None:
    assert groups([note(0, LONG), note(1, LONG, 20), note(2, LONG, 40)]) == [[0, 1]]


def test_what_is_kept_for_its_time_survives_a_group_of_its_own() -> None:
    days = (0, 20, 40, 60, 80)

    assert groups([note(number, LONG, days_ago) for number, days_ago in enumerate(days)]) == [[0, 1], [2, 3]]


def test_a_survivor_takes_in_an_old_note_of_a_text_whose_newer_one_survived() -> None:
    notes = [note(0, LONG, 0), note(1, LONGER, 40), note(2, LONG, 60)]

    assert groups(notes) == [[1, 2]]


def test_a_survivor_has_the_values_of_all_together() -> None:
    newest = replace(note(0, LONG), hits=3, importance=0.4, confidence=0.5, tags=("b", "a"))
    middle = replace(note(1, LONGER, 1), hits=2, importance=0.9, confidence=0.7, tags=("c", "a"))
    oldest = replace(note(2, LONG, 2), last_hit_at=NOW + timedelta(hours=1), tags=("d", "b"))

    merges = decide_merges([oldest, newest, middle])

    ids = (middle.id, oldest.id)
    assert merges == [Merge(newest.id, ids, 6, 0.9, NOW + timedelta(hours=1), 1.0, ("b", "a", "c", "d"))]


def test_a_survivor_has_at_most_64_tags_its_own_first() -> None:
    own, others = tuple(f"own {number}" for number in range(60)), tuple(f"other {number}" for number in range(9))

    (merge,) = decide_merges([replace(note(0, LONG), tags=own), replace(note(1, LONG, 1), tags=others)])

    assert merge.tags == own + others[:4]


def test_no_notes_have_no_merges() -> None:
    assert decide_merges([]) == []


# Against comparing all with all.

CHANGES = ("", "Currently ", "Bob: ", "not ", "7 ", "indeed ")
ENDINGS = ("", ".", " now", " on Monday", " and in the evening", " !", " 茶茶")


@st.composite
def told_notes(draw: st.DrawFn) -> list[MergeCandidate]:
    texts = st.builds(
        lambda change, base, ending, small: (change + base + ending).lower() if small else change + base + ending,
        st.sampled_from(CHANGES),
        st.sampled_from([LONG, LONGER, "tea", "", "Bob likes Ann", "Ann likes Bob"]),
        st.sampled_from(ENDINGS),
        st.booleans(),
    )
    rows = draw(st.lists(st.tuples(texts, st.integers(0, 80), st.sampled_from(["ann", None])), max_size=14))
    notes = [note(number, text, days_ago, user=user) for number, (text, days_ago, user) in enumerate(rows)]
    return [replace(note, hits=draw(st.integers(1, 5)), importance=draw(st.floats(0, 1))) for note in notes]


def are_near(newer: MergeCandidate, older: MergeCandidate) -> bool:
    one, other = set(words(newer.content)), set(words(older.content))
    is_alike = newer.content == older.content or (one and other and len(one & other) / len(one | other) >= 0.85)
    return (
        newer.user == older.user
        and newer.created_at - older.created_at <= timedelta(days=30)
        and bool(is_alike)
        and is_same_statement(newer.content, older.content)
    )


def one_by_one(notes: Iterable[MergeCandidate]) -> list[list[int]]:
    left = sorted(notes, key=lambda note: (note.created_at, note.id), reverse=True)
    found = []
    while left:
        survivor, *others = left
        absorbed = [note for note in others if are_near(survivor, note)]
        left = [note for note in others if note not in absorbed]
        if absorbed:
            found.append([survivor.id.int, *(note.id.int for note in absorbed)])
    return found


@pytest.mark.parametrize("many", [0, 64])
@given(told_notes())
def test_the_groups_are_those_of_comparing_one_by_one(many: int, notes: list[MergeCandidate]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duplicate_groups, "MANY_CANDIDATES", many)
        patch.setattr(duplicate_groups, "CLASSES_AT_ONCE", 2)

        assert groups(notes) == one_by_one(notes)


def after_merges(notes: Iterable[MergeCandidate], merges: Iterable[Merge]) -> list[MergeCandidate]:
    by_survivor = {merge.survivor_id: merge for merge in merges}
    absorbed = {id_ for merge in by_survivor.values() for id_ in merge.absorbed_ids}
    left = [note for note in notes if note.id not in absorbed]
    names = ("hits", "importance", "last_hit_at", "confidence", "tags")
    return [
        replace(note, **{name: getattr(merge, name) for name in names}) if (merge := by_survivor.get(note.id)) else note
        for note in left
    ]


@given(told_notes())
def test_a_second_run_finds_nothing(notes: list[MergeCandidate]) -> None:
    merges = decide_merges(notes)

    after = after_merges(notes, merges)

    assert decide_merges(after) == []
    assert sum(note.hits for note in after) == sum(note.hits for note in notes)


@given(told_notes())
def test_every_note_survives_once_or_is_absorbed_once(notes: list[MergeCandidate]) -> None:
    ids = [id_ for merge in decide_merges(notes) for id_ in (merge.survivor_id, *merge.absorbed_ids)]

    assert len(ids) == len(set(ids))


@given(told_notes(), st.randoms(use_true_random=False))
def test_the_order_of_the_notes_does_not_matter(notes: list[MergeCandidate], generator: random.Random) -> None:
    shuffled = generator.sample(notes, len(notes))

    assert groups(shuffled) == groups(notes)


# Many notes.


def told_many(contents: Iterable[str]) -> list[MergeCandidate]:
    return [note(number, content, days_ago=number % 900 / 10) for number, content in enumerate(contents)]


def comparisons(notes: Sequence[MergeCandidate], patch: pytest.MonkeyPatch) -> int:
    """Return how many pairs of texts are compared one by one."""
    compared = 0

    def counted(first: str, second: str) -> bool:
        nonlocal compared
        compared += 1
        return is_same_statement(first, second)

    patch.setattr(duplicate_groups, "is_same_statement", counted)
    decide_merges(notes)
    return compared


def test_many_equal_texts_are_not_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    assert comparisons(told_many(["I like green tea."] * 50_000), monkeypatch) == 0


def test_many_equal_texts_that_all_survive_cost_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = [note(number, "I like green tea.", days_ago=31 * number) for number in range(10_000)]

    assert decide_merges(notes) == []
    assert comparisons(notes, monkeypatch) == 0


def test_many_texts_that_differ_in_a_number_are_not_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    template = "Task {} finished on node alpha with exit code zero after some retries in the queue of the night"

    assert comparisons(told_many(template.format(number) for number in range(5_000)), monkeypatch) == 0


def test_many_texts_that_differ_in_a_name_are_not_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    template = "the customer {} said that the order came and that all of it was fine and gave thanks to us for help"
    notes = told_many(template.format("".join(chr(97 + int(digit)) for digit in str(n))) for n in range(5_000))

    assert comparisons(notes, monkeypatch) == 0


def test_many_texts_that_one_survivor_takes_in_are_compared_with_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        "the",
        "customer",
        "said",
        "that",
        "the",
        "order",
        "came",
        "and",
        "that",
        "all",
        "of",
        "it",
        "was",
        "fine",
        "and",
        "gave",
        "thanks",
    ]
    spelled = (
        " ".join(word.upper() if n >> place & 1 else word for place, word in enumerate(found)) for n in range(5_000)
    )
    notes = told_many(spelled)

    assert 0 < comparisons(notes, monkeypatch) < 2 * len(notes)


def test_words_of_different_speakers_are_never_merged() -> None:
    said = [
        replace(item, speakers=speakers)
        for item, speakers in zip(
            notes_of("I like green tea.", "I like green tea", "I LIKE green tea."),
            [("Ben",), (), ("Ben",)],
            strict=True,
        )
    ]

    assert groups(said) == [[0, 2]]
