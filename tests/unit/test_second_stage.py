import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest

from benchmarks.fit import RISING, newton
from lamina.core.conversations import PlacedMessages, Utterance
from lamina.core.queries import Candidate, Hit, Query, Ranking
from lamina.core.scope import Scope
from lamina.core.tiers import Source, Tier
from lamina.errors import Misconfigured
from lamina.models.hashing import HashingModel
from lamina.policies.ranking.conversation_signals import Figures, Flow, conversation_signals, signals_around
from lamina.policies.ranking.message_traits import MessageTraits, QuestionTraits, message_traits, question_traits
from lamina.policies.ranking.second_stage import (
    GATED,
    WEIGHTS_FILE,
    StageWeights,
    design,
    parse_weights,
    shipped_weights,
)
from lamina.search.fitted_conversation import FittedConversation, TraitsCache, placed_near
from lamina.text.stems import content_words, stem

NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)
MODEL = HashingModel(64)
FILLER = "well that was a rather quiet evening over here"


def traits(text: str, *, name: str | None = None, role: str = "user", minute: int = 0) -> MessageTraits:
    vectors = MODEL.encode([text]).astype(np.float16)
    return message_traits(Utterance(role, name, text, NOON + timedelta(minutes=minute), vectors))


def asked(text: str) -> QuestionTraits:
    return question_traits(text, MODEL.encode([text])[0])


def flow(*said: MessageTraits, session: Sequence[int] = (), position: Sequence[int] = ()) -> Flow:
    size = len(said)
    return Flow(
        said,
        np.array(session or [0] * size),
        np.array(position or range(size)),
        np.full(size, np.inf),
    )


def signals(
    question: str, *texts: str, session: Sequence[int] = (), position: Sequence[int] = ()
) -> dict[str, Figures]:
    said = [traits(text, minute=minute) for minute, text in enumerate(texts)]
    return dict(conversation_signals(asked(question), flow(*said, session=session, position=position)))


def test_a_message_has_the_words_of_the_one_before_it_in_its_windows_alone() -> None:
    found = signals("Where is the telescope?", "The telescope?", "In the attic.", FILLER, FILLER, FILLER, FILLER)

    assert found["bm25"][1] == 0 < found["bm25_1"][1]
    assert found["bm25_before"][1] > 0
    assert found["bm25_1"][2] == 0 < found["bm25_2"][2]
    assert found["bm25_2"][5] == 0


def test_a_message_after_one_that_nobody_may_see_has_no_neighbour_there() -> None:
    found = signals("Where is the telescope?", "The telescope?", "In the attic.", position=(4, 6))

    assert found["bm25_1"][1] == found["bm25_before"][1] == found["cos_before"][1] == 0


def test_the_first_message_of_a_session_has_no_neighbour_in_the_session_before() -> None:
    found = signals("Where is the telescope?", "The telescope?", "In the attic.", session=(0, 1), position=(0, 1))

    assert found["bm25_1"][1] == found["cos_before"][1] == 0


def test_smoothed_similarity_is_the_cosine_of_the_weighted_mean_of_the_vectors() -> None:
    texts = ["The telescope?", "In the attic.", "Thank you, I will look there."]
    vectors = MODEL.encode(texts).astype(np.float16).astype(float)
    mean = 0.6 * vectors[0] + vectors[1] + 0.6 * vectors[2]

    found = signals("Where is the telescope?", *texts)

    right = mean @ MODEL.encode(["Where is the telescope?"])[0] / np.linalg.norm(mean)
    assert found["cos_1"][1] == pytest.approx(right, abs=1e-3)


def test_a_long_message_is_as_near_as_its_nearest_chunk() -> None:
    chunks = MODEL.encode(["Where is the telescope?", FILLER]).astype(np.float16)
    long = message_traits(Utterance("user", None, "Where is the telescope? " + FILLER, NOON, chunks))

    found = conversation_signals(asked("Where is the telescope?"), flow(traits(FILLER), long))

    assert found["cos"][1] == pytest.approx(1, abs=1e-2)


def test_messages_without_vectors_and_questions_without_one_are_scored_by_words() -> None:
    bare = message_traits(Utterance("user", None, "The telescope is in the attic.", NOON, np.zeros((0, 0), np.float16)))
    without = question_traits("Where is the telescope?", None)

    scores = design(without, flow(traits(FILLER), bare)).scores(shipped_weights())

    assert np.isfinite(scores).all()
    assert scores[1] > scores[0]


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("谁的猫叫小黑", "小黑是我姐姐的猫", "今天天气很好"),
        ("猫はどこですか", "猫は庭にいます", "今日は寒いです"),
        ("แมวอยู่ที่ไหน", "แมวอยู่ในสวน", "วันนี้ฝนตก"),
        ("Где книги?", "Книга лежит на столе", "Сегодня холодно"),
        ("أين الكتاب؟", "الكتاب على الطاولة", "الجو بارد اليوم"),
        ("Wo sind die Schlüssel?", "Der Schlüssel liegt im Flur", "Es regnet heute"),
        ("Where is Zoes violin?", "Zoë's violin is at the school", "It is raining"),
    ],
)
def test_words_of_any_script_count(question: str, answer: str, other: str) -> None:
    found = signals(question, other, answer)

    assert found["bm25"][1] > found["bm25"][0]
    assert found["trigrams"][1] > found["trigrams"][0]


def test_a_misspelt_word_is_near_by_its_trigrams() -> None:
    found = signals("the telscope", "The telescope is in the attic.", FILLER)

    assert found["bm25"][0] == 0 < found["trigrams"][0]


def test_stems_join_the_forms_of_a_word() -> None:
    assert stem("planning") == stem("plans") == stem("planned")
    assert content_words("Won't you plan it?") == ["plan"]


def test_somebody_with_the_role_of_an_assistant_who_writes_as_briefly_as_the_other_is_a_person() -> None:
    people = flow(traits("See you at nine then"), traits("Fine, at nine then", role="assistant"))
    machine = flow(traits("See you at nine"), traits(" ".join([FILLER] * 20), role="assistant"))

    assert conversation_signals(asked("when?"), people)["assistant"][1] == 0
    assert conversation_signals(asked("when?"), machine)["assistant"][1] == 1


def test_a_named_month_and_day_count_where_something_was_said_then() -> None:
    found = signals("What happened on March 14?", FILLER)
    elsewhere = signals("What happened in May?", FILLER)

    assert (found["date"][0], elsewhere["date"][0]) == (2, 0)


def test_later_messages_count_for_a_question_about_now_and_for_no_other() -> None:
    now, ever = signals("Where does she live now?", FILLER, FILLER), signals("Where does she live?", FILLER, FILLER)

    assert list(now["at_end_x_now"]) == [0, 1]
    assert not ever["at_end_x_now"].any()


def test_the_gates_give_a_signal_another_weight_where_messages_are_long() -> None:
    weights = StageWeights({}, {}, {"bm25": 1.0}, {}, {})
    short = design(asked("telescope"), flow(traits("The telescope"), traits("Fine")))
    long = design(asked("telescope"), flow(traits("The telescope " + FILLER * 9), traits(FILLER * 9)))

    assert short.scores(weights)[0] > 10 * long.scores(weights)[0] > 0


def test_scores_around_a_message_end_at_its_session_and_where_nobody_may_see_one() -> None:
    said = flow(*(traits(FILLER) for _ in range(5)), session=(0, 0, 0, 1, 1), position=(0, 1, 3, 0, 1))

    around = signals_around(said, np.array([0.0, -20, -20, -20, -2]))

    assert np.round(around["score_before"], 3).tolist() == [0, 1, 0, 0, 0]
    assert np.round(around["score_after"], 3).tolist() == [0, 0, 0, 0.368, 0]
    assert np.round(around["score_of_session"], 3).tolist() == [1, 1, 1, 0.368, 0.368]


def test_a_message_that_stands_beside_a_better_one_gets_less_for_it() -> None:
    weights = StageWeights({"bm25": 8.0}, {}, {}, {"score_after": -1.0}, {})
    stage = design(asked("telescope"), flow(traits(FILLER), traits("The telescope"), traits(FILLER)))

    before, best, after = stage.scores(weights)

    assert best > after > before
    assert (stage.own_scores(weights)[[0, 2]] == after).all()


def test_the_very_text_that_is_asked_for_comes_first() -> None:
    said = [traits(text) for text in (FILLER, "axolotl", "Axolotls and other pets are what we talk about")]

    scores = design(asked("axolotl"), flow(*said)).scores(shipped_weights())

    assert np.argmax(scores) == 1


def test_the_strongest_signals_explain_the_difference_to_the_others() -> None:
    stage = design(
        asked("Where is the telescope?"), flow(traits("The telescope?"), traits("In the attic."), traits(FILLER))
    )
    weights = shipped_weights()

    (strongest,) = stage.strongest(weights, [0], len(stage.names))

    scores = stage.scores(weights)
    assert sum(strongest.values()) == pytest.approx(scores[0] - scores.mean())
    assert sorted(map(abs, strongest.values()), reverse=True) == list(map(abs, strongest.values()))
    assert all(name.startswith("signal_") for name in strongest)


# -- weights -----------------------------------------------------------------------------------------------------------


def test_the_shipped_weights_name_every_signal_their_data_and_their_command() -> None:
    weights, stage = shipped_weights(), design(asked("who?"), flow(traits(FILLER)))

    assert tuple(weights.plain) == stage.names
    assert tuple(weights.short) == tuple(weights.usual) == GATED
    assert tuple(weights.around) == tuple(signals_around(stage.flow, np.zeros(1)))
    assert weights.origin["command"].startswith("python -m benchmarks fit")
    assert len(weights.origin["data_sha256"]) == 64
    assert "CC0" in weights.origin["data"]


def test_weights_read_again_are_written_the_same() -> None:
    assert shipped_weights().to_json() == WEIGHTS_FILE.read_text()


def test_weights_for_other_signals_are_refused_with_the_command_that_fits_them() -> None:
    stored = json.loads(WEIGHTS_FILE.read_text()) | {"traits_version": 0}

    with pytest.raises(Misconfigured, match="python -m benchmarks fit"):
        parse_weights(json.dumps(stored))


def test_no_rising_signal_is_worth_less_than_nothing_however_long_messages_are() -> None:
    weights = shipped_weights()

    worth = [
        weights.plain[name] + short * weights.short.get(name, 0) + usual * weights.usual.get(name, 0)
        for name in RISING
        for short in (0, 1)
        for usual in (0, 1)
    ]

    assert min(worth) > -1e-4


def test_a_fit_gives_a_rising_signal_no_weight_below_nothing() -> None:
    groups = [(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.0, 1.0]))]

    free = newton(groups, l2=0.1, is_rising=np.array([False, False]))
    rising = newton(groups, l2=0.1, is_rising=np.array([True, True]))

    assert free[0] < 0 < free[1]
    assert rising[0] == 0 < rising[1]


def test_a_fit_finds_the_least_loss_whatever_the_order_of_the_questions() -> None:
    random = np.random.default_rng(5)
    groups = [(random.normal(size=(6, 3)), np.eye(6)[at % 6]) for at in range(20)]

    free = np.zeros(3, bool)

    weights, backwards = (newton(order, l2=0.1, is_rising=free) for order in (groups, groups[::-1]))

    def slope(of: Figures) -> Figures:
        total = 0.2 * of
        for values, target in groups:
            powers = np.exp(values @ of)
            total = total + values.T @ (powers / powers.sum() - target) / len(groups)
        return total

    assert np.abs(slope(weights)).max() < 1e-8
    assert weights == pytest.approx(backwards, abs=1e-9)


# -- ranking -----------------------------------------------------------------------------------------------------------


class Talk:
    """A conversation of one session in memory, which counts how often texts are read."""

    def __init__(self, *texts: str) -> None:
        self.texts = dict(enumerate(texts, start=1))
        self.version = 0
        self.read: list[int] = []

    def placed(self) -> PlacedMessages:
        places = sorted(self.texts)
        ids, nothing = [UUID(int=at).bytes for at in places], np.zeros(len(places), int)
        return PlacedMessages(ids, nothing, np.array(places, int), nothing + self.version)

    async def utterances(self, query: Query, ids: Sequence[UUID]) -> Mapping[UUID, Utterance]:
        self.read += [id_.int for id_ in ids]
        return {
            id_: Utterance("user", None, text, NOON, MODEL.encode([text]).astype(np.float16))
            for id_ in ids
            if (text := self.texts.get(id_.int)) is not None
        }


def memory(at: int) -> Candidate:
    return Candidate(UUID(int=at), Tier.SESSIONS, NOON)


def found(*places: int, scale: float = 1.0) -> Ranking:
    return tuple(Hit(memory(at), 0.5, {"bm25": scale * (9 - rank)}) for rank, at in enumerate(places))


def ranker(talk: Talk) -> FittedConversation:
    return FittedConversation(talk, shipped_weights(), candidates=50)


def query(text: str = "Where is the telescope?", limit: int = 10, generation: int = 0) -> Query:
    return Query(text, (), Scope("acme"), limit, embedding=MODEL.encode([text])[0].tobytes(), generation=generation)


TALK = ("The telescope?", "In the attic.", FILLER, FILLER, FILLER, FILLER, FILLER)


async def test_figures_of_an_engine_that_are_a_hundred_times_as_large_change_nothing() -> None:
    rank, placed = ranker(Talk(*TALK)).rank, Talk(*TALK).placed()

    small = await rank(query(), {Source.SESSION_WORDS: found(1, 3)}, placed)
    large = await rank(query(), {Source.SESSION_WORDS: found(1, 3, scale=100)}, placed)

    assert small == large


async def test_an_answer_is_found_by_the_words_of_its_neighbour_and_the_far_ones_are_not() -> None:
    ranking = await ranker(Talk(*TALK)).rank(query(), {Source.SESSION_WORDS: found(1)}, Talk(*TALK).placed())

    assert [hit.memory.id.int for hit in ranking[:2]] in ([1, 2], [2, 1])
    assert {hit.memory.id.int for hit in ranking} == {1, 2, 3}
    assert all(0 <= hit.score <= 1 for hit in ranking)


@pytest.mark.parametrize("looked_up", ["telescope", "The telescope!", "望远", "🔭", "👨‍👩‍👧", "?!"])
async def test_no_neighbour_answers_a_word_or_a_symbol_that_is_looked_up(looked_up: str) -> None:
    ranking = await ranker(Talk(*TALK)).rank(query(looked_up), {Source.SESSION_WORDS: found(1)}, Talk(*TALK).placed())

    assert [hit.memory.id.int for hit in ranking] == [1]


async def test_texts_are_read_once_and_again_for_another_generation_of_vectors() -> None:
    talk = Talk(*TALK)
    rank = ranker(talk).rank
    rankings = {Source.SESSION_WORDS: found(1)}

    await rank(query(), rankings, talk.placed())
    await rank(query(), rankings, talk.placed())
    assert sorted(talk.read) == [1, 2, 3, 4]
    await rank(query(generation=1), rankings, talk.placed())

    assert len(talk.read) == 8


async def test_a_message_that_is_gone_is_neither_counted_nor_returned_though_its_traits_are_known() -> None:
    talk = Talk(*TALK)
    rank = ranker(talk).rank
    before = await rank(query(), {Source.SESSION_WORDS: found(1)}, talk.placed())
    del talk.texts[2]

    after = await rank(query(), {Source.SESSION_WORDS: found(1)}, talk.placed())

    assert 2 in {hit.memory.id.int for hit in before}
    assert 2 not in {hit.memory.id.int for hit in after}


async def test_a_message_that_changed_is_weighed_by_its_new_text() -> None:
    talk = Talk(*TALK)
    rank = ranker(talk).rank
    await rank(query(), {Source.SESSION_WORDS: found(1)}, talk.placed())
    talk.texts[1], talk.version = "The spare key hangs behind the barometer.", 1
    asked = query("Where does the spare key hang?")

    after = await rank(asked, {Source.SESSION_WORDS: found(1)}, talk.placed())

    assert after == await ranker(talk).rank(asked, {Source.SESSION_WORDS: found(1)}, talk.placed())


async def test_no_ranking_is_an_empty_one() -> None:
    assert await ranker(Talk(*TALK)).rank(query(), {Source.SESSION_WORDS: ()}, Talk(*TALK).placed()) == ()


def test_the_cache_of_traits_is_bounded_and_keeps_what_was_used_last() -> None:
    one = traits("The telescope is in the attic.")
    cache = TraitsCache(limit_bytes=3 * one.size_bytes)
    versions = dict.fromkeys([b"a", b"b", b"c", b"d"], 1)
    cache.put(0, versions, {b"a": one, b"b": one, b"c": one})
    cache.get(0, {b"a": 1})

    cache.put(0, versions, {b"d": one})

    assert cache.get(0, versions).keys() == {b"a", b"c", b"d"}


def test_the_cache_keeps_no_message_that_may_still_get_its_vectors() -> None:
    cache = TraitsCache()

    lacking = message_traits(Utterance("user", None, FILLER, NOON, np.zeros((0, 0), np.float16)))

    cache.put(0, {b"a": 1}, {b"a": lacking})

    assert not cache.get(0, {b"a": 1})


def test_what_stands_near_a_found_message_is_chosen_whatever_else_was_placed() -> None:
    places = [(0, 1), (0, 4), (0, 8), (0, 9), (0, 9), (1, 1), (1, 7), (2, -5), (2, 2), (3, 2**40), (3, 2**40 + 3)]
    ids = [UUID(int=at).bytes for at in range(len(places))]
    session, position = (np.array(column, np.int64) for column in zip(*places, strict=True))
    placed = PlacedMessages(ids, session, position, np.arange(len(ids)))

    for found_at in ([1], [0, 6], [7], [9], [2, 5, 10], list(range(len(ids)))):
        near = placed_near(placed, {ids[at] for at in found_at}, 3)

        expected = [
            at
            for at, (where, number) in enumerate(places)
            if any(places[one][0] == where and abs(places[one][1] - number) <= 3 for one in found_at)
        ]
        assert near.ids == [ids[at] for at in expected]
        assert near.position.tolist() == [places[at][1] for at in expected]
        assert near.version.tolist() == expected
    assert not placed_near(placed, {UUID(int=99).bytes}, 3).ids
    assert not placed_near(placed_near(placed, (), 3), {ids[0]}, 3).ids
