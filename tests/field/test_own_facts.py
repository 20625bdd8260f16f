"""Facts that users state of themselves without giving their name, in several languages."""

import httpx

from tests.support.application import Application

DAY = "2026-05-{day:02}T10:{minute:02}:00Z"


async def say(client: httpx.AsyncClient, text: str, on: str, user: str = "mia", session: str = "s-1") -> None:
    message = {"role": "user", "content": text, "occurred_at": on}
    sent = await client.post("/v1/turns", json={"session": session, "user": user, "messages": [message]})
    assert sent.status_code == 200, sent.text


CHANGES = [
    ("I live in Paris.", "I moved to Berlin.", "Where do I live?", "Paris", "Berlin"),
    ("I live in Paris.", "I moved to Berlin.", "Where does the user live?", "Paris", "Berlin"),
    ("I work at Initech.", "I joined Hooli.", "Where do I work?", "Initech", "Hooli"),
    ("My editor is Emacs.", "My editor is Zed now.", "Which editor is mine?", "Emacs", "Zed"),
    (
        "My favourite colour is blue.",
        "My favourite colour is green now.",
        "What is my favourite colour?",
        "blue",
        "green",
    ),
    (
        "My phone number is 555-0192.",
        "My phone number changed to 555-0777.",
        "What is my phone number?",
        "0192",
        "0777",
    ),
    ("I'm vegetarian.", "I'm vegan now.", "Am I vegetarian?", "vegetarian", "vegan"),
    ("Ich wohne in Paris.", "Ich bin nach Berlin gezogen.", "Wo wohne ich?", "Paris", "Berlin"),
    ("Ich arbeite bei Siemens.", "Seit Mai arbeite ich bei Bosch.", "Wo arbeite ich?", "Siemens", "Bosch"),
    ("Vivo en París.", "Me he mudado a Berlín.", "¿Dónde vivo?", "París", "Berlín"),
    ("J'habite à Paris.", "J'ai déménagé à Berlin.", "Où est-ce que j'habite ?", "Paris", "Berlin"),
    ("我住在巴黎。", "我搬到柏林了。", "我住在哪里？", "巴黎", "柏林"),
    ("パリに住んでいます。", "ベルリンに引っ越しました。", "私はどこに住んでいますか？", "パリ", "ベルリン"),
]


async def test_of_two_statements_of_a_user_without_a_name_the_later_one_holds(application: Application) -> None:
    client = application.client()
    for place, (before, now, *_) in enumerate(CHANGES):
        await say(client, before, DAY.format(day=1, minute=0), user=f"mia-{place}", session=f"s-{place}")
        later = f"s-{place}" if place % 2 else f"t-{place}"
        await say(client, now, DAY.format(day=1, minute=7), user=f"mia-{place}", session=later)
    await application.indexed()

    wrong = [case for place, case in enumerate(CHANGES) if not await _is_told_right(client, f"mia-{place}", *case[2:])]

    assert wrong == []


async def _is_told_right(client: httpx.AsyncClient, user: str, question: str, old: str, new: str) -> bool:
    fields = {"query": question, "user": user}
    found = (await client.post("/v1/search", json=fields)).json()["results"]
    block = (await client.post("/v1/context", json=fields)).json()["text"]
    said = [hit for hit in found if hit["tier"] in {"sessions", "notes"}]
    replaced = [hit for hit in said if old in hit["content"] and new not in hit["content"]]
    return (
        bool(replaced)
        and new in said[0]["content"]
        and all(new in " ".join(hit["later"]) for hit in replaced)
        and all(hit["later"] == [] for hit in said if new in hit["content"])
        and "related: later:" not in block
        and 0 <= block.find(new) < block.find(old)
    )


async def test_what_a_user_states_is_of_that_user_alone(application: Application) -> None:
    client = application.client()
    await say(client, "I live in Paris.", DAY.format(day=1, minute=0), user="mia")
    await say(client, "I moved to Berlin.", DAY.format(day=2, minute=0), user="leo")
    await application.indexed()

    found = (await client.post("/v1/search", json={"query": "Where do I live?", "user": "mia"})).json()["results"]
    listed = (await client.get("/v1/facts", params={"subject": "mia", "user": "mia"})).json()["facts"]
    foreign = await client.get("/v1/facts", params={"subject": "mia", "user": "leo"})

    assert "Paris" in found[0]["content"]
    assert all(hit["later"] == [] for hit in found)
    assert [(fact["relation"], fact["object"], fact["valid_to"]) for fact in listed] == [("lives_in", "Paris", None)]
    assert foreign.status_code == 404


async def test_a_user_who_is_erased_leaves_no_entity_of_that_name(unshared: Application) -> None:
    await say(unshared.client(), "I live in Paris.", DAY.format(day=1, minute=0), user="zora")
    admin = unshared.admin()

    erased = (await admin.delete("/v1/users", params={"user": "zora"})).json()

    assert erased["complete"] is True
    async with unshared.pool.connection() as connection:
        cursor = await connection.execute("SELECT name FROM entities")
        assert "zora" not in [row["name"] for row in await cursor.fetchall()]


PAST = [
    ("I moved to Lyon in 2018.", "It was 2019, not 2018, that I moved.", "When did I move to Lyon?", "in 2018"),
    ("I met Tom in Oslo.", "It wasn't Oslo, it was Bergen where I met Tom.", "Where did I meet Tom?", "in Oslo"),
    (
        "Ich bin 2018 nach Lyon gezogen.",
        "Es war 2019, nicht 2018, dass ich umzog.",
        "Wann zog ich nach Lyon?",
        "bin 2018",
    ),
]


async def test_a_past_fact_that_was_put_right_stands_behind_its_correction(application: Application) -> None:
    client = application.client()
    for place, (before, right, *_) in enumerate(PAST):
        for minute, text in ((0, before), (9, right)):
            await say(client, text, DAY.format(day=3, minute=minute), user=f"ida-{place}", session=f"p-{place}")
    await application.indexed()

    for place, (_, right, question, wrong) in enumerate(PAST):
        fields = {"query": question, "user": f"ida-{place}"}
        found = (await client.post("/v1/search", json=fields)).json()["results"]
        said = [hit for hit in found if hit["tier"] == "sessions"]
        assert [hit["content"] for hit in said][:1] == [right]
        assert [hit["later"] for hit in said if wrong in hit["content"]] == [[right]]


TALK = [
    (1, "The ledger sits on Postgres, so please use skip locked."),
    (1, "I was about to invent a queue for the ledger."),
    (3, "Welcome to life after the cutover. The ledger reads and writes against Cockroach now."),
    (3, "Retry storm this morning, is that ours?"),
    (5, "May the analytics people read from our replica of the ledger database?"),
    (7, "Postgres was easier to back up than any other database, I have to say."),
    (9, "The soup was good today."),
]


async def test_a_least_score_takes_the_last_memories_away_and_changes_no_order(application: Application) -> None:
    client = application.client()
    for day, text in TALK:
        await say(client, text, DAY.format(day=day, minute=0), user="eli", session=f"e-{day}")
    await application.indexed()

    for question in ("Which database is the ledger on?", "Is the ledger on Postgres?"):
        fields = {"query": question, "user": "eli", "limit": 10}
        every = (await client.post("/v1/search", json=fields)).json()["results"]
        for place in (2, 3, 4):
            least = {"min_score": every[place]["score"]}
            left = (await client.post("/v1/search", json={**fields, **least})).json()["results"]
            assert [hit["id"] for hit in left] == [hit["id"] for hit in every][: len(left)]
            assert len(left) > place


async def test_what_another_speaker_says_of_himself_is_his_and_no_part_of_the_users_profile(
    application: Application,
) -> None:
    client = application.client()
    said = [
        {"role": "user", "name": "Ann", "content": "I work at Hooli."},
        {"role": "user", "name": "Ben", "content": "I live in Graz. Always answer in German."},
    ]
    sent = await client.post("/v1/turns", json={"session": "s", "user": "ann", "messages": said})
    later = {"role": "user", "name": "Ben", "content": "I live in Linz."}
    alone = await client.post("/v1/turns", json={"session": "s", "user": "ann", "messages": [later]})
    await application.indexed()

    [_, of_ben] = [message["id"] for message in sent.json()["messages"]]
    changed = await client.patch(f"/v1/memories/{of_ben}", json={"content": "I live in Bern."})
    profile = await client.get("/v1/profile", params={"user": "ann"})
    near = await client.get("/v1/graph/neighbours", params={"name": "Ben"})

    assert (sent.status_code, alone.status_code, changed.is_success) == (200, 200, True)
    assert profile.json()["document"] == {"employer": "Hooli"}
    assert alone.json()["profile_version"] is None
    assert "Linz" in {item["content"] for item in near.json()["neighbours"]}


async def test_who_speaks_alone_is_the_user_and_stays_so_when_a_message_is_changed(application: Application) -> None:
    client = application.client()
    message = {"role": "user", "name": "Bob", "content": "I live in Gratz."}
    sent = await client.post("/v1/turns", json={"session": "s", "user": "robert", "messages": [message]})
    other = {"role": "user", "name": "Robert", "content": "Good morning."}
    await client.post("/v1/turns", json={"session": "s", "user": "robert", "messages": [other]})
    [id_] = [message["id"] for message in sent.json()["messages"]]

    changed = await client.patch(f"/v1/memories/{id_}", json={"content": "I live in Graz."})
    profile = await client.get("/v1/profile", params={"user": "robert"})

    assert changed.is_success
    assert profile.json()["document"] == {"location": "Graz"}


async def test_of_an_unnamed_user_a_changed_message_of_somebody_else_says_nothing(application: Application) -> None:
    client = application.client()
    said = [
        {"role": "user", "content": "I live in Graz."},
        {"role": "user", "name": "Ben", "content": "So do we all."},
    ]
    sent = await client.post("/v1/turns", json={"session": "s", "user": "u-4711", "messages": said})
    [_, of_ben] = [message["id"] for message in sent.json()["messages"]]

    changed = await client.patch(f"/v1/memories/{of_ben}", json={"content": "I live in Bern."})
    profile = await client.get("/v1/profile", params={"user": "u-4711"})

    assert changed.is_success
    assert profile.json()["document"] == {"location": "Graz"}


async def test_a_user_is_also_who_the_profile_says(application: Application) -> None:
    client = application.client()
    await client.patch("/v1/profile", json={"user": "bob", "patch": {"name": "Robert Hall"}})
    for name, text in (("Robert", "I live in Graz."), ("Ben", "I work at Hooli.")):
        message = {"role": "user", "name": name, "content": text}
        sent = await client.post("/v1/turns", json={"session": "s", "user": "bob", "messages": [message]})
        assert sent.status_code == 200

    profile = await client.get("/v1/profile", params={"user": "bob"})

    assert profile.json()["document"] == {"name": "Robert Hall", "location": "Graz"}
