from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lamina.core.memories import Chunk
from lamina.errors import InvalidInput, Unavailable
from lamina.extraction import extractive_summaries as condensing
from lamina.extraction.extractive_summaries import ExtractiveSummarizer, SourceText, Summarizer
from lamina.models.hashing import HashingModel
from lamina.policies.retention.clusters import covered
from lamina.text.numbers import figures
from lamina.text.words import estimated_tokens
from tests.support.embedders import Down

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)
WORDS = (
    "Ann",
    "likes",
    "tea",
    "900",
    "nuts.",
    "not\n",
    "2026-01-02",
    "5",
    "Graz",
    "yesterday.",
    "\U0001f44d",
    "成語",
    "a",
)
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=40), min_size=1, max_size=6)


class Hashing:
    """Embeds by hashed words, and counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked.append(len(texts))
        return HashingModel().encode(texts)

    async def embed_chunks(self, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        raise NotImplementedError


def said(text: str, moment: datetime = NOON, importance: float = 0.5) -> SourceText:
    return SourceText(text, moment, importance)


async def condensed(*sources: SourceText, most_tokens: int = 200) -> str:
    summarizer: Summarizer = ExtractiveSummarizer(Hashing())
    return await summarizer.summarize(sources, most_tokens=most_tokens)


async def test_a_summary_quotes_in_the_order_of_time_a_line_a_day() -> None:
    text = await condensed(
        said("Bob likes tea!\nHe lives in Linz", NOON + DAY), said("Ann moved to Graz. She pays 900 EUR.", NOON)
    )

    assert text == ("2026-11-20: Ann moved to Graz. She pays 900 EUR.\n2026-11-21: Bob likes tea! He lives in Linz.")


@pytest.mark.parametrize(
    ("speaker", "label"),
    [
        ("Ben and Carl", "Ben and Carl"),
        ("สมชาย", "สมชาย"),
        ("Ann: I hate Oslo. Ben", '"Ann: I hate Oslo. Ben"'),
        ("Ben\nAnn", '"Ben\\nAnn"'),
        ("B" * 120, "somebody"),
    ],
)
async def test_each_speaker_has_a_line_of_a_day_behind_a_name_that_forges_none(speaker: str, label: str) -> None:
    of_speaker = SourceText("I live in Linz. I work at Initech.", NOON, speaker=speaker)

    text = await condensed(of_speaker, said("I moved to Graz.", NOON), most_tokens=120)

    assert set(text.splitlines()) == {
        f"2026-11-20: {label}: I live in Linz. I work at Initech.",
        "2026-11-20: I moved to Graz.",
    }


@pytest.mark.parametrize("speaker", ["B" * 120, "ส" * 12, "Ben and Carl"])
async def test_a_summary_of_the_fewest_tokens_holds_words_of_a_speaker_with_any_name(speaker: str) -> None:
    text = await condensed(SourceText("I live in Linz by the river. " * 9, NOON, speaker=speaker), most_tokens=32)

    assert "I live in" in text
    assert estimated_tokens(text) <= 32


async def test_days_are_those_of_utc_and_earlier_summaries_keep_theirs() -> None:
    daily = "2026-11-02: Ann moved to Graz. She pays 900 EUR.\n2026-11-03: Bob likes tea."

    assert await condensed(said(daily)) == daily
    assert await condensed(said(await condensed(said(daily)), NOON + DAY)) == daily


async def test_a_line_that_begins_with_no_real_day_is_of_its_sources_day() -> None:
    assert await condensed(said("2026-13-45: broken clock here")) == "2026-11-20: 2026-13-45: broken clock here."


async def test_what_repeats_another_sentence_is_said_once() -> None:
    text = await condensed(
        said("I like the green tea from the small shop in Graz."),
        said("I really like the green tea from the small shop in Graz."),
        said("I like the green tea from the small shop in Graz!", NOON + DAY),
    )

    assert text.count("green tea") == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "The rent for the flat in the old town of Graz is 900 EUR",
            "The rent for the flat in the old town of Graz is 950 EUR",
        ),
        ("Ann does eat the nuts on the table", "Ann does not eat the nuts on the table"),
        ("Ann likes the green tea from Japan", "Bob likes the green tea from Japan"),
    ],
)
async def test_what_differs_in_a_number_a_negation_or_a_name_is_no_repetition(first: str, second: str) -> None:
    text = await condensed(said(first), said(second))

    assert first in text
    assert second in text


@pytest.mark.parametrize(
    "sentence", ["Ann met Bob yesterday.", "Gestern gab es einen Ausfall.", "Am Montag kommt Bob.", "明天开会。"]
)
async def test_the_same_yesterday_on_two_days_is_two_events(sentence: str) -> None:
    text = await condensed(said(sentence), said(sentence, NOON + DAY))

    assert text == f"2026-11-20: {sentence}\n2026-11-21: {sentence}"


async def test_figures_come_first_when_room_is_short() -> None:
    chat = [said(f"The weather is nice and everybody talks about {word}.") for word in ("tea", "dogs", "cats", "rain")]
    text = await condensed(*chat, said("Rent is 900 EUR."), said("The party is on 2026-12-24."), most_tokens=48)

    assert {"900", "2026-12-24"} <= figures(text)
    assert estimated_tokens(text) <= 48


async def test_every_figure_is_kept_where_there_is_room() -> None:
    sources = [
        said(f"Invoice {n} is over {n * 1000} EUR, due 2026-12-{n:02}. Fine weather again.") for n in range(1, 29)
    ]

    text = await condensed(*sources, most_tokens=1000)

    assert {figure for source in sources for figure in figures(source.text)} <= figures(text)


async def test_a_sentence_with_a_name_is_preferred_to_one_without() -> None:
    both = [
        said("a cat was sleeping on the living-room carpet all the long afternoon"),
        said("then Zoltan was sleeping on the living-room carpet all the afternoon"),
    ]

    assert "Zoltan" in await condensed(*both, most_tokens=32)


async def test_a_figure_that_is_quoted_already_buys_nothing() -> None:
    party = "The large party in the town hall of Graz takes place on day 24."
    text = await condensed(
        said("Rent of 900."), said("Here 900 again."), said("Then 900 EUR."), said(party), most_tokens=40
    )

    assert figures(text) == {"900", "24", "2026-11-20"}


async def test_the_central_is_preferred_to_the_odd_one_out_and_the_important_to_the_rest() -> None:
    theme = [
        said("the release of the new search was delayed"),
        said("the new search release was delayed by tests"),
        said("tests delayed the release of search"),
        said("somebody brought cake and coffee for everyone"),
    ]
    alike = ["the parrot sings loudly every single morning", "a tractor drives slowly across the field"]

    assert "search" in await condensed(*theme, most_tokens=32)
    for chosen in alike:
        sources = [said(text, importance=1.0 if text == chosen else 0.0) for text in alike]
        assert chosen in await condensed(*sources, most_tokens=32)


async def test_what_was_chosen_once_is_not_chosen_in_other_words_before_something_new() -> None:
    text = await condensed(
        said("the release of the search was delayed because of tests"),
        said("because of tests the search release was delayed again"),
        said("visit to the dentist is planned"),
        most_tokens=46,
    )

    assert "dentist" in text
    assert text.count("delayed") == 1


async def test_a_sentence_without_end_is_cut_and_never_exceeds_the_budget() -> None:
    text = await condensed(said("word " * 5_000 + "42"), most_tokens=64)
    unbroken = [await condensed(said(char * 5_000), most_tokens=64) for char in ("成", "🐘", "x")]

    assert "42" in text
    assert estimated_tokens(text) <= 64
    assert all(16 < estimated_tokens(one) <= 64 for one in unbroken)


async def test_single_words_are_left_out_unless_there_is_nothing_else() -> None:
    assert await condensed(said("ok\nthe parrot sings\n42")) == "2026-11-20: the parrot sings. 42."
    assert await condensed(said("ok")) == "2026-11-20: ok."


async def test_wide_stops_end_sentences_too() -> None:
    assert await condensed(said("安搬到格拉茨。她付租金!")) == "2026-11-20: 安搬到格拉茨。 她付租金!"


async def test_of_too_many_sentences_those_that_tell_most_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(condensing, "MAX_SENTENCES", 3)
    monkeypatch.setattr(condensing, "_EMBEDDED_AT_ONCE", 2)
    embedder = Hashing()
    sources = [
        said("the first one is plain", importance=0.9),
        said("the second has 2 numbers, 7"),
        said("a third is plain as well"),
        said("the fourth has 4"),
    ]

    text = await ExtractiveSummarizer(embedder).summarize(sources, most_tokens=200)

    assert embedder.asked == [2, 1]
    assert "third" not in text
    assert all(word in text for word in ("first", "second", "fourth"))


async def test_two_thousand_sentences_are_summarised() -> None:
    sources = [
        said(f"word{n % 37} met word{n % 101} near word{n % 13} at noon", NOON + n * DAY / 24) for n in range(2100)
    ]

    text = await condensed(*sources, most_tokens=2000)

    assert 1500 < estimated_tokens(text) <= 2000


@pytest.mark.parametrize("sources", [[], [said("")], [said(" \u200b\n")]])
async def test_nothing_to_summarise_is_refused(sources: list[SourceText]) -> None:
    with pytest.raises(InvalidInput, match="sources"):
        await condensed(*sources)


async def test_a_budget_that_holds_no_sentence_is_refused() -> None:
    with pytest.raises(InvalidInput, match="is 31; a summary needs at least 32"):
        await condensed(said("Ann moved to Graz."), most_tokens=31)


async def test_an_embedder_that_is_down_fails_the_summary() -> None:
    with pytest.raises(Unavailable):
        await ExtractiveSummarizer(Down()).summarize([said("Ann moved to Graz.")], most_tokens=100)


@given(TEXTS, st.integers(32, 300), st.randoms())
async def test_any_sources_give_the_same_text_within_the_budget_in_any_order(
    texts: list[list[str]], most_tokens: int, random: Random
) -> None:
    sources = [said(" ".join(words), NOON + place * DAY / 2) for place, words in enumerate(texts)]
    sources.append(said("Ann moved to Graz."))

    text = await condensed(*sources, most_tokens=most_tokens)
    random.shuffle(sources)

    assert await condensed(*sources, most_tokens=most_tokens) == text
    assert 0 < estimated_tokens(text) <= most_tokens


async def test_with_room_for_all_every_source_is_covered_by_the_summary() -> None:
    sources = [
        said("Ann moved to Graz. She pays 900 EUR rent.\n- she has a cat"),
        said("Ann met Bob yesterday (at 9:30)", NOON + DAY),
        said('"We do not eat nuts", Bob said', NOON + 2 * DAY),
    ]

    text = await condensed(*sources, most_tokens=500)

    assert all(covered(source.text, text, moment=source.moment) for source in sources)
