import time
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest

from lamina.text.times import Interval, TimeKind, asked_time, named_times

SUNDAY = datetime(2026, 11, 29, 19, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


def days(question: str, *, now: datetime = SUNDAY, zone: tzinfo = UTC) -> str | None:
    """Return the intervals of a question as ISO days in its own zone; ``..`` where one is open."""
    asked = asked_time(question, now, zone)
    if asked is None:
        return None
    assert asked.kind is TimeKind.INTERVAL
    return " ".join(f"{_day(one.start, zone)}/{_day(one.end, zone)}" for one in asked.intervals)


def interval(question: str, now: datetime, zone: tzinfo) -> Interval:
    """Return the one interval of a question."""
    asked = asked_time(question, now, zone)
    assert asked is not None
    (one,) = asked.intervals
    return one


def length(one: Interval) -> timedelta:
    assert one.start is not None
    assert one.end is not None
    return one.end - one.start


def _day(moment: datetime | None, zone: tzinfo) -> str:
    if moment is None:
        return ".."
    local = moment.astimezone(zone)
    assert (local.hour, local.minute, local.second) == (0, 0, 0)
    return local.date().isoformat()


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What happened last week?", "2026-11-16/2026-11-23"),
        ("What happened this week?", "2026-11-23/2026-11-30"),
        ("What is planned for next week?", "2026-11-30/2026-12-07"),
        ("What did we do yesterday?", "2026-11-28/2026-11-29"),
        ("what did we do the day before yesterday", "2026-11-27/2026-11-28"),
        ("what did I eat today", "2026-11-29/2026-11-30"),
        ("What did we do in March?", "2026-03-01/2026-04-01"),
        ("in march we did what?", "2026-03-01/2026-04-01"),
        ("What did she do last December?", "2025-12-01/2026-01-01"),
        ("what is planned for March?", "2027-03-01/2027-04-01"),
        ("What happened on 3 May?", "2026-05-03/2026-05-04"),
        ("what happened on 3 may?", "2026-05-03/2026-05-04"),
        ("What happened on December 24?", "2025-12-24/2025-12-25"),
        ("What happened on May 3rd, 2024?", "2024-05-03/2024-05-04"),
        ("What happened on the 3rd of May 2024?", "2024-05-03/2024-05-04"),
        ("What happened on 2026-03-12?", "2026-03-12/2026-03-13"),
        ("What happened in 2026-03?", "2026-03-01/2026-04-01"),
        ("What did Ann do in 2023?", "2023-01-01/2024-01-01"),
        ("What did Ann do last year?", "2025-01-01/2026-01-01"),
        ("What was sold in Q3 2024?", "2024-07-01/2024-10-01"),
        ("What did we do three days ago?", "2026-11-26/2026-11-27"),
        ("What did we do 2 months ago?", "2026-09-01/2026-10-01"),
        ("What did we do a couple of years ago?", "2024-01-01/2025-01-01"),
        ("What did Bob say last Friday?", "2026-11-27/2026-11-28"),
        ("What did Bob say on Sunday?", "2026-11-22/2026-11-23"),
        ("What will Bob do on Sunday?", "2026-12-06/2026-12-07"),
        ("What will Bob do next Monday?", "2026-11-30/2026-12-01"),
        ("What did we do this summer?", "2026-06-01/2026-09-01"),
        ("What did we do last winter?", "2025-12-01/2026-03-01"),
        ("What did we do in the summer of 2023?", "2023-06-01/2023-09-01"),
        ("What happened last weekend?", "2026-11-21/2026-11-23"),
        ("What happened in the last 7 days?", "2026-11-23/2026-11-30"),
        ("What happened in the past week?", "2026-11-23/2026-11-30"),
        ("What happened between March and May 2023?", "2023-03-01/2023-06-01"),
        ("What happened between 3 and 7 May?", "2026-05-03/2026-05-08"),
        ("What happened from November 2023 to February?", "2023-11-01/2024-03-01"),
        ("What happened between 2019 and 2021?", "2019-01-01/2022-01-01"),
        ("What happened between Christmas and 3 January?", "2026-01-03/2026-01-04"),
        ("What happened before 2020?", "../2020-01-01"),
        ("What happened before 3 May 2024?", "../2024-05-03"),
        ("What happened until May 2024?", "../2024-06-01"),
        ("What happened after March 2024?", "2024-04-01/.."),
        ("What happened since March?", "2026-03-01/.."),
        ("What did she do in August and in October?", "2026-08-01/2026-09-01 2026-10-01/2026-11-01"),
    ],
)
def test_english_times_are_resolved_to_days(question: str, expected: str) -> None:
    assert days(question) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Was haben wir vorgestern gemacht?", "2026-11-27/2026-11-28"),
        ("Was war letzte Woche?", "2026-11-16/2026-11-23"),
        ("Was war letzten März?", "2026-03-01/2026-04-01"),
        ("Was geschah im März?", "2026-03-01/2026-04-01"),
        ("Was geschah am 3. Mai 2024?", "2024-05-03/2024-05-04"),
        ("Was ist morgen?", "2026-11-30/2026-12-01"),
        ("Was war vor drei Tagen?", "2026-11-26/2026-11-27"),
        ("Was war vor dem 3. Mai?", "../2026-05-03"),
        ("Was war im Sommer 2023?", "2023-06-01/2023-09-01"),
        ("Was war zwischen März und Mai 2023?", "2023-03-01/2023-06-01"),
        ("Was war am Freitag?", "2026-11-27/2026-11-28"),
        ("¿Qué hicimos ayer?", "2026-11-28/2026-11-29"),
        ("¿Qué hicimos la semana pasada?", "2026-11-16/2026-11-23"),
        ("¿Qué pasó el 3 de mayo de 2024?", "2024-05-03/2024-05-04"),
        ("¿Qué pasó hace tres días?", "2026-11-26/2026-11-27"),
        ("¿Qué pasó el lunes pasado?", "2026-11-23/2026-11-24"),
        ("¿Qué pasó en marzo?", "2026-03-01/2026-04-01"),
        ("Qu'avons-nous fait hier ?", "2026-11-28/2026-11-29"),
        ("Qu'avons-nous fait l'année dernière ?", "2025-01-01/2026-01-01"),
        ("Qu'avons-nous fait il y a trois jours ?", "2026-11-26/2026-11-27"),
        ("Que s'est-il passé en mars ?", "2026-03-01/2026-04-01"),
        ("Que s'est-il passé le 3 mai 2024 ?", "2024-05-03/2024-05-04"),
        ("Que s'est-il passé entre mars et mai 2023 ?", "2023-03-01/2023-06-01"),
        ("Cosa abbiamo fatto la settimana scorsa?", "2026-11-16/2026-11-23"),
        ("Cosa abbiamo fatto tre giorni fa?", "2026-11-26/2026-11-27"),
        ("Cosa è successo a maggio 2024?", "2024-05-01/2024-06-01"),
        ("O que fizemos na semana passada?", "2026-11-16/2026-11-23"),
        ("O que fizemos há três dias?", "2026-11-26/2026-11-27"),
        ("O que aconteceu em março?", "2026-03-01/2026-04-01"),
        ("Что было на прошлой неделе?", "2026-11-16/2026-11-23"),
        ("Что было три дня назад?", "2026-11-26/2026-11-27"),
        ("Что было в марте?", "2026-03-01/2026-04-01"),
        ("Что было 3 мая 2024 года?", "2024-05-03/2024-05-04"),
        ("上周我们做了什么？", "2026-11-16/2026-11-23"),  # noqa: RUF001
        ("上周五做了什么", "2026-11-20/2026-11-21"),
        ("三天前做了什么", "2026-11-26/2026-11-27"),
        ("2024年3月5日发生了什么", "2024-03-05/2024-03-06"),
        ("去年夏天做了什么", "2025-06-01/2025-09-01"),
        ("十二月发生了什么", "2025-12-01/2026-01-01"),
        ("2020年之前发生了什么", "../2020-01-01"),
        ("先週の金曜日に何をした", "2026-11-20/2026-11-21"),
        ("3日前に何をした", "2026-11-26/2026-11-27"),
        ("昨日は何をした", "2026-11-28/2026-11-29"),
        ("3月から5月まで何をした", "2026-03-01/2026-06-01"),
        ("지난주 금요일에 뭐 했어", "2026-11-20/2026-11-21"),
        ("어제 뭐 했어", "2026-11-28/2026-11-29"),
        ("3월 5일에 뭐 했어", "2026-03-05/2026-03-06"),
        ("작년 여름에 뭐 했어", "2025-06-01/2025-09-01"),
    ],
)
def test_times_of_other_languages_are_resolved_to_days(question: str, expected: str) -> None:
    assert days(question) == expected


@pytest.mark.parametrize(
    "question",
    [
        "Where does Ann live?",
        "May I ask you something?",
        "it may rain, and 3 may fail",
        "Who is March?",
        "What did March say?",
        "What did May's brother buy?",
        "Who came second?",
        "the second ordinal, a second opinion, seconds later",
        "How much did I run in two weeks?",
        "What happened in 2000 steps?",
        "Who ran 2024 files?",
        "The march of the penguins marches on",
        "When is Mars visible?",
        "Where did I put the spring of the fall arrester?",
        "What is the last day of the trip?",
        "Guten Morgen",
        "Ich bin hier und das ist gut",
        "por la mañana tomo café",
        "上周一起吃饭吗".replace("上周", "我们"),
        "",
        "   ",
        "?",
        "👩‍👩‍👧 12:30 03/04/2026",
    ],
)
def test_words_that_only_look_like_times_change_nothing(question: str) -> None:
    assert asked_time(question, SUNDAY, UTC) is None


@pytest.mark.parametrize(
    ("question", "kind", "event"),
    [
        ("What did she say most recently?", TimeKind.LATEST, ""),
        ("What is the latest on the boat?", TimeKind.LATEST, ""),
        ("Was hat sie zuletzt gesagt?", TimeKind.LATEST, ""),
        ("最近一次见面是什么时候", TimeKind.LATEST, ""),
        ("When did Ann first mention the boat?", TimeKind.EARLIEST, ""),
        ("Wann war sie zum ersten Mal da?", TimeKind.EARLIEST, ""),
        ("¿Cuándo vino por primera vez?", TimeKind.EARLIEST, ""),
        ("第一次见面是什么时候", TimeKind.EARLIEST, ""),
        ("What did we decide before the launch?", TimeKind.BEFORE_EVENT, "the launch"),
        ("What did I own before we moved to Berlin?", TimeKind.BEFORE_EVENT, "we moved to Berlin"),
        ("What came after Vectis left?", TimeKind.AFTER_EVENT, "Vectis left"),
        ("Was war nach dem Umzug?", TimeKind.AFTER_EVENT, "dem Umzug"),
        ("¿Qué hizo antes de la boda?", TimeKind.BEFORE_EVENT, "la boda"),
        ("Qu'a-t-il fait après le mariage ?", TimeKind.AFTER_EVENT, "mariage"),
    ],
)
def test_first_and_last_things_and_events_have_kinds_of_their_own(question: str, kind: TimeKind, event: str) -> None:
    asked = asked_time(question, SUNDAY, UTC)
    assert asked is not None
    assert (asked.kind, asked.event, asked.intervals) == (kind, event, ())


@pytest.mark.parametrize(
    ("now", "question", "expected"),
    [
        ("2026-01-01", "What happened yesterday?", "2025-12-31/2026-01-01"),
        ("2026-01-01", "What happened last week?", "2025-12-22/2025-12-29"),
        ("2026-01-01", "What happened last month?", "2025-12-01/2026-01-01"),
        ("2026-01-15", "What happened in December?", "2025-12-01/2026-01-01"),
        ("2026-01-15", "What happened this winter?", "2025-12-01/2026-03-01"),
        ("2026-12-31", "What will happen tomorrow?", "2027-01-01/2027-01-02"),
        ("2026-12-31", "What will we do next month?", "2027-01-01/2027-02-01"),
        ("2024-03-01", "What happened yesterday?", "2024-02-29/2024-03-01"),
        ("2026-03-01", "What happened on Feb 29?", "2024-02-29/2024-03-01"),
        ("2026-03-01", "What happened in February 2024?", "2024-02-01/2024-03-01"),
        ("2026-11-30", "What happened last week?", "2026-11-23/2026-11-30"),
        ("2026-11-30", "What happened on Monday?", "2026-11-23/2026-11-24"),
        ("2024-03-31", "What happened one month ago?", "2024-02-01/2024-03-01"),
        ("2026-05-31", "What happened in the last three months?", "2026-02-28/2026-06-01"),
    ],
)
def test_ends_of_years_leap_days_and_starts_of_weeks_are_kept(now: str, question: str, expected: str) -> None:
    assert days(question, now=datetime.fromisoformat(now).replace(hour=12, tzinfo=UTC)) == expected


@pytest.mark.parametrize(
    "text", ["la\u017ft night", "thi\u017f morning", "in Augu\u017ft 2025", "il y a troi\u017f jour\u017f"]
)
def test_letters_that_only_a_pattern_takes_for_others_name_no_time(text: str) -> None:
    now = datetime(2026, 11, 29, tzinfo=UTC)

    assert asked_time(text, now, UTC) is None
    assert named_times(text, now, UTC) == ()


def test_no_day_is_made_of_a_date_that_does_not_exist() -> None:
    # The month and its year are there.
    assert days("What happened on 31 February 2024?") == "2024-02-01/2024-03-01"
    assert days("What happened on 2024-13-45?") is None


def test_the_day_is_that_of_the_person_who_asks() -> None:
    just_after_midnight_in_berlin = datetime(2026, 6, 30, 22, 30, tzinfo=UTC)
    there = interval("What did I do yesterday?", just_after_midnight_in_berlin, BERLIN)
    assert there == Interval(datetime(2026, 6, 29, 22, tzinfo=UTC), datetime(2026, 6, 30, 22, tzinfo=UTC))
    assert days("What did I do yesterday?", now=just_after_midnight_in_berlin) == "2026-06-29/2026-06-30"


def test_an_offset_shifts_the_day() -> None:
    today = interval("What did I do today?", SUNDAY, timezone(timedelta(hours=9)))
    assert today.start == datetime(2026, 11, 29, 15, tzinfo=UTC)


def test_a_day_on_which_clocks_change_has_its_own_length() -> None:
    spring, autumn = (
        length(interval(f"What happened on {day}?", SUNDAY, BERLIN)) for day in ("2026-03-29", "2026-10-25")
    )
    assert (spring, autumn) == (timedelta(hours=23), timedelta(hours=25))


def test_a_day_without_midnight_begins_where_the_day_before_it_ends() -> None:
    cairo = ZoneInfo("Africa/Cairo")
    day, before = (interval(f"What happened on 2024-04-{number}?", SUNDAY, cairo) for number in (26, 25))
    assert day.start == before.end


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I met Bob yesterday", "2024-05-03/2024-05-04"),
        ("we flew home last Tuesday", "2024-04-30/2024-05-01"),
        ("the exam is tomorrow", "2024-05-05/2024-05-06"),
        ("in two weeks we move", "2024-05-18/2024-05-18"),
        ("gestern war ich beim Arzt", "2024-05-03/2024-05-04"),
        ("morgen fahre ich nach Bremen", "2024-05-05/2024-05-06"),
        ("ayer fui al médico", "2024-05-03/2024-05-04"),
        ("昨天我去看医生了", "2024-05-03/2024-05-04"),
        ("昨日、医者に行った", "2024-05-03/2024-05-04"),
        ("어제 병원에 갔어", "2024-05-03/2024-05-04"),
        ("вчера я ходил к врачу", "2024-05-03/2024-05-04"),
        ("we moved last year", "2023-01-01/2024-01-01"),
        ("on 3 January we met", "2024-01-03/2024-01-04"),
        ("on 20 December we met", "2023-12-20/2023-12-21"),
        ("see you on Monday, or in March", ""),
        ("nothing of the kind", ""),
    ],
)
def test_a_message_names_times_seen_from_its_own_day(text: str, expected: str) -> None:
    said_at = datetime(2024, 5, 4, 10, tzinfo=UTC)  # a Saturday
    shown = " ".join(f"{_day(one.start, UTC)}/{_day(one.end, UTC)}" for one in named_times(text, said_at, UTC))
    if text.startswith("in two weeks"):
        (one,) = named_times(text, said_at, UTC)
        assert one.start is not None
        assert one.end is not None
        assert one.start <= datetime(2024, 5, 18, tzinfo=UTC) < one.end
    else:
        assert shown == expected


@pytest.mark.parametrize(
    "text",
    [
        " " * 1_000_000,
        "last may " * 1_100_000,
        "2023 " * 2_000_000,
        "三月" * 500_000,
        "de a " * 100_000,
        "between may and " * 10_000,
        "1 may " * 1_000,
        "before the " * 10_000,
        "when did " * 10_000 + "first",
        "之" * 2_000,
        "vor " * 1_000 + "may",
        "\u0301" * 100_000 + " may",
        "a" * 1_000_000 + " in may",
    ],
)
def test_hostile_texts_take_little_time(text: str) -> None:
    def seconds() -> float:
        began = time.process_time()
        asked_time(text, SUNDAY, UTC)
        named_times(text, SUNDAY, UTC)
        return time.process_time() - began

    assert seconds() < 10  # Work that goes back over what it read takes minutes.


def test_the_edges_of_the_calendar_raise_nothing() -> None:
    for year in (1, 9999):
        now = datetime(year, 1 if year == 1 else 12, 1 if year == 1 else 31, tzinfo=UTC)
        for question in (
            "last week",
            "next year",
            "9999 years ago",
            "in 9999 years we will",
            "this winter",
            "yesterday",
        ):
            for zone in (UTC, BERLIN, timezone(timedelta(hours=14)), timezone(timedelta(hours=-14))):
                asked_time(question, now, zone)
                named_times(question, now, zone)
