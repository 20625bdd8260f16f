"""Make an installation with the code of this checkout, and keep it for the tests of all code to come.

    python -m tests.support.make_installation

Run it in a clean checkout of the commit whose installation is wanted. It fills every tier through the API, runs the
jobs, erases a user, and writes the folder that is named for the commit; ``tests.support.installations`` describes it.
"""

import asyncio
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from lamina.cli.local import ensure_local_key
from lamina.core.principals import KeyRole
from lamina.core.runs import JobName, Run
from lamina.models.onnx.model import OnnxModel
from lamina.settings.models import SentenceTransformersSettings
from lamina.stores.postgres.keys import create_key, list_keys, revoke_key
from tests.support.application import Application
from tests.support.compaction import chatter
from tests.support.installations import (
    DATA_DIR,
    FOLDER,
    Expected,
    Installation,
    Json,
    Manifest,
    begin_wal_anew,
    dump,
    opened,
    row_counts,
    servers,
)
from tests.support.jobs import in_days, run_job, undo_run

WORKSPACE = "atlas"
YARD = "yard"  # Another workspace of the first tenant, in which related notes are consolidated.
LOFT = "loft"  # A third one, in which nobody searches.
BRIDGE = "bridge"  # A fourth one, with which notes are shared.
FIRST, SECOND = "acme", "local"
LONGEST_QUESTION = 200

SAID = {
    "We decided to ship the tide tables on Fridays.": "when do the tide tables ship?",
    "Noted: the tide tables go out on Fridays.": "which day do the tide tables go out?",
    "I work at Northern Harbours and I live in Hestvik.": "where does Ann work and live?",
    "The gauge at pier 4 stopped at 03:17 with code GX-88412.": "What happened to GX-88412?",
    "Die Schleuse 閘門 in Emden ist 14 m breit.": "Wie breit ist die Schleuse in Emden?",
}
COLD = {
    "The spare key of the boathouse hangs behind the barometer": "where is the spare key of the boathouse?",
    "The old crane was sold to a museum in Bergen": "what became of the old crane?",
}
ARCHIVED = "The coal ferry Solvang carried sheep until 1961"
WARM = {
    "Visitors sign the red book before they enter the signal tower": "what do visitors of the signal tower sign?",
    "The fog horn sounds twice every ninety seconds": "how often does the fog horn sound?",
    "Lanterns are filled with rapeseed oil in winter": "which oil do the lanterns burn in winter?",
}
CHANGED = ("The pump room is opened by a code", "The pump room is opened by a badge alone")
DELETED = "The canteen serves pickled herring on Mondays"
TWICE = (
    "the harbour master asked us to move the green boat to the northern pier before the storm comes in",
    "The harbour master asked us to move the green boat to the northern pier, before the storm comes in!",
)
RELATED = (
    "The winch on the slipway needs new bearings",
    "New bearings are needed for the slipway winch",
    "The slipway winch has worn bearings and needs new ones",
    "Bearings of the winch at the slipway are worn out",
)
LONG = " ".join(
    f"In watch {number} the keeper wrote of {what}, and how long it lasted."
    for number, what in enumerate(
        ("hail", "drifting ice", "a whale", "two trawlers", "northern lights", "a broken mast", "calm water", "thunder")
        * 4,
        start=1,
    )
)
HANDBOOK = """# Lighthouse handbook

The lamp is lit half an hour before sunset.

## Power

The {power} feeds the lamp for two days.

## Birds

Puffins nest below the northern stairs from April on.
"""
PAGE = "<html><head><title>Buoys</title></head><body><h1>Buoys</h1><p>Yellow buoys mark the cable.</p></body></html>"
PROCEDURES = {
    "the bilge alarm rings": "start the second pump and call the engineer on duty",
    "a kayak drifts past the breakwater": "launch the dinghy and report to the coast guard",
}
ENTITIES = ("Tidewater Laboratory", "Sigrun Aasen")
ERASED = "eve"
OF_ERASED = "Eve Quillfeather"
OTHERS_SAID = {
    "The tomatoes in glasshouse two are watered at six in the morning.": "when are the tomatoes watered?",
    "We decided to sell the seedlings at the market in June.": "when do we sell the seedlings?",
}
OTHERS_NOTES = {
    "Basil must never stand beside the door of the glasshouse": "where must basil never stand?",
    "Slugs are collected by hand after rain": "what happens to slugs after rain?",
}
QUESTIONS = SAID | COLD | WARM | OTHERS_SAID | OTHERS_NOTES


@dataclass
class Teller:
    """Fills a tenant through the API and takes note of what it may be asked later.

    Args:
        app: The application, as this tenant.
        manifest: Takes the notes.
    """

    app: Application
    manifest: Manifest
    sessions: list[str] = field(default_factory=list)

    async def post(self, path: str, body: Json, **options: Any) -> Json:
        """Send a request that must succeed, and return its answer."""
        return await self.ask("POST", path, json=body, **options)

    async def ask(self, method: str, path: str, **options: Any) -> Json:
        """Send any request that must succeed, and return its answer."""
        answer = await self.app.client().request(method, path, **options)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        found: Json = answer.json() if answer.content else {}
        return found

    async def say(self, session: str, contents: Sequence[str], **scope: str) -> None:
        """Record a turn."""
        named = {"workspace": WORKSPACE, "session": session, **scope}
        messages = [{"content": content, "role": ("user", "assistant")[at % 2]} for at, content in enumerate(contents)]
        await self.post("/v1/turns", {**named, "messages": messages})
        self.sessions += [] if session in self.sessions else [session]

    async def note(self, content: str, **fields: Any) -> str:
        """Store a note and return its id."""
        stored = await self.post("/v1/notes", {"workspace": WORKSPACE, "content": content, **fields})
        return str(stored["id"])

    async def run(self, job: JobName, days: float, **order: Any) -> Run:
        """Run a job on the tenant as if some days had passed, and have the projections follow."""
        run = await run_job(self.app, job, in_days(days), is_forced=True, **order)
        assert run.error is None, run.error
        await self.app.indexed()
        return run

    async def expect_answer(self, path: str, *fields: str, **params: Any) -> Json:
        """Take note of what a read answers, of some fields alone where any are named; return the answer."""
        answer = await self.ask("GET", path, params=params)
        told = {name: answer[name] for name in fields or answer}
        self.manifest.reads.append({"tenant": self.app.tenant, "path": path, "params": params, "answer": told})
        return answer

    def expect(self, tier: str, id_: str, text: str, **ask: Any) -> None:
        """Take note of a memory that a search finds."""
        named = {"workspace": WORKSPACE, "query": QUESTIONS.get(text, text[:LONGEST_QUESTION])} | ask
        asked = {name: value for name, value in named.items() if value is not None}
        self.manifest.memories.append(Expected(self.app.tenant, tier, asked, id_, text))

    def expect_none(self, query: str, text: str, **ask: str) -> None:
        """Take note of what nobody may find."""
        asked = {"workspace": WORKSPACE, "query": query} | ask
        self.manifest.gone.append({"tenant": self.app.tenant, "ask": asked, "text": text})


async def tell_of_the_harbour(teller: Teller) -> None:
    """Fill the first tenant: every tier, every table."""
    await tell_of_someone_else(teller)
    await tell_what_is_archived(teller)
    await tell_what_goes_cold(teller)
    await teller.say("s-1", list(SAID), user="ann", agent="guide", swarm="tides")
    await tell_notes(teller)
    await tell_documents(teller)
    await tell_graph(teller)
    await tell_procedures(teller)
    await tell_settings_of_agents(teller)
    await teller.ask("DELETE", "/v1/users", params={"user": ERASED})
    await teller.app.indexed()
    await maintain(teller)


async def tell_of_someone_else(teller: Teller) -> None:
    """Write all that a user may have, of one who is erased later."""
    who = {"user": ERASED, "workspace": WORKSPACE}
    await teller.say("s-eve", [f"I am {OF_ERASED}. I repair sextants in the attic."], user=ERASED)
    await teller.note(f"{OF_ERASED} repairs sextants in the attic", user=ERASED)
    await teller.ask("PATCH", "/v1/profile", json={**who, "patch": {"name": OF_ERASED}})
    document = {"key": "sextants", "title": "Sextants", "content": f"{OF_ERASED} keeps six sextants."}
    await teller.post("/v1/documents", {**who, **document})
    for query in ("who repairs sextants?", OF_ERASED):
        teller.expect_none(query, "Quillfeather", user=ERASED)
        teller.expect_none(query, "Quillfeather")
    teller.manifest.erased = {"tenant": teller.app.tenant, "params": who}


async def tell_what_is_archived(teller: Teller) -> None:
    """Write notes that go to a file of the archive, one of them of the user who is erased later."""
    id_ = await teller.note(ARCHIVED, tags=["ferry"])
    await teller.note(f"{OF_ERASED} sailed on the Solvang", user=ERASED)
    await teller.run("sweep", 40)
    await teller.run("archival", 200)
    teller.manifest.archived = {"tenant": teller.app.tenant, "id": id_, "workspace": WORKSPACE, "text": ARCHIVED}
    teller.expect_none("which ferry carried sheep?", ARCHIVED)


async def tell_what_goes_cold(teller: Teller) -> None:
    """Write notes that the sweep makes cold."""
    for content in COLD:
        await teller.note(content)
    await teller.run("sweep", 40)


async def tell_notes(teller: Teller) -> None:
    """Write notes: plain ones, a long one, one that changes, one that goes, some that jobs make others of."""
    tagged = {await teller.note(content, tags=["tower"], importance=0.7): content for content in WARM}
    for id_, content in tagged.items():
        teller.expect("notes", id_, content, workspace=BRIDGE)
    await teller.note("The tower is ready for visitors", derived_from=list(tagged)[:1], category="outcome")
    far = (datetime.now(UTC) + timedelta(days=36_500)).isoformat()
    await teller.note("The lease of the quay ends with this century", expires_at=far)
    await teller.note(LONG, category="interaction", metadata={"pages": 32})
    await teller.note("Ann prefers the early watch", user="ann")
    changed = await teller.note(CHANGED[0])
    await teller.ask("PATCH", f"/v1/notes/{changed}", json={"content": CHANGED[1], "tags": ["pump"]})
    await teller.expect_answer(f"/v1/notes/{changed}/versions")
    teller.expect_none("how is the pump room opened?", CHANGED[0])
    deleted = await teller.note(DELETED)
    await teller.ask("DELETE", f"/v1/notes/{deleted}")
    teller.expect_none("what does the canteen serve?", DELETED)
    for content in TWICE:
        await teller.note(content)
    for number, what in enumerate(("seals", "buoys", "wrecks")):
        moment = datetime(2026, 3, 2, 9 + number, tzinfo=UTC).isoformat()
        await teller.note(f"On the spring survey the crew counted {number + 5} {what}", event_at=moment)
    for content in RELATED:
        await teller.note(content, workspace=YARD)
    body = {"workspace": WORKSPACE, "content": "The ice chart is renewed at noon"}
    answer = await teller.post("/v1/notes", body, headers={"Idempotency-Key": "ice-1"})
    teller.manifest.retried = {"tenant": teller.app.tenant, "key": "ice-1", "body": body, "answer": answer}


async def tell_documents(teller: Teller) -> None:
    """Store a document twice, the second time in place of the first, and upload a file."""
    document = {"workspace": WORKSPACE, "key": "handbook", "media_type": "text/markdown", "tags": ["lamp"]}
    await teller.post("/v1/documents", {**document, "content": HANDBOOK.format(power="diesel generator")})
    stored = await teller.post("/v1/documents", {**document, "content": HANDBOOK.format(power="battery")})
    assert stored["version"] == 2, stored
    teller.expect_none("what feeds the lamp for two days?", "diesel generator")
    file = {"file": ("buoys.html", PAGE.encode(), "text/html")}
    await teller.ask("POST", "/v1/documents/upload", data={"workspace": WORKSPACE}, files=file)


async def tell_graph(teller: Teller) -> None:
    """State entities and an edge."""
    laboratory, person = ENTITIES
    entities = [
        {"name": laboratory, "type": "organisation", "aliases": ["Tidelab"]},
        {"name": person, "type": "person"},
    ]
    made = await teller.post("/v1/graph/entities", {"workspace": WORKSPACE, "entities": entities})
    edge = {"subject": person, "type": "works_at", "object": laboratory}
    await teller.post("/v1/graph/edges", {"workspace": WORKSPACE, "edges": [edge]})
    for name, entity in zip(ENTITIES, made["results"], strict=True):
        teller.expect("graph", entity["id"], name, query=f"What is known of {name}?")


async def tell_procedures(teller: Teller) -> None:
    """Store procedures, one with outcomes, and delete another one."""
    for trigger, action in PROCEDURES.items():
        made = await teller.post("/v1/procedures", {"workspace": WORKSPACE, "trigger": trigger, "action": action})
        for run in ("r-1", "r-2"):
            await teller.post(f"/v1/procedures/{made['id']}/outcomes", {"succeeded": run == "r-1", "run": run})
        await teller.expect_answer(f"/v1/procedures/{made['id']}")
        await teller.expect_answer(f"/v1/procedures/{made['id']}/outcomes")
    gone = {"workspace": WORKSPACE, "trigger": "the telegraph falls silent", "action": "light the signal fire"}
    made = await teller.post("/v1/procedures", gone)
    await teller.ask("DELETE", f"/v1/procedures/{made['id']}")
    teller.expect_none("the telegraph falls silent", "signal fire")


async def tell_settings_of_agents(teller: Teller) -> None:
    """Write a profile, a memory profile, shares, a model's response, and what a provider of models tells."""
    for patch in ({"likes": ["tea"], "watch": "early"}, {"likes": ["coffee"]}):
        await teller.ask("PATCH", "/v1/profile", json={"workspace": WORKSPACE, "user": "ann", "patch": patch})
    wishes = {"workspace": WORKSPACE, "agent": "guide", "tiers": ["notes", "sessions"], "prompt_suffix": "Be brief."}
    await teller.ask("PUT", "/v1/memory-profile", json=wishes)
    shared = {"workspace": WORKSPACE, "to_workspace": BRIDGE}
    await teller.post("/v1/shares", {**shared, "segment": "notes", "tags": ["tower"]})
    revoked = await teller.post("/v1/shares", {**shared, "segment": "documents"})
    await teller.ask("DELETE", f"/v1/shares/{revoked['id']}")
    teller.expect_none("what feeds the lamp for two days?", "battery", workspace=BRIDGE)
    await teller.expect_answer("/v1/shares", workspace=WORKSPACE)
    await teller.expect_answer("/v1/memory-profile", workspace=WORKSPACE, agent="guide")
    call = {"provider": "example", "model": "large", "input_tokens": 900, "cached_tokens": 300}
    await teller.post("/v1/providers/cache-metrics", {"calls": [call | {"workspace": WORKSPACE}]})


async def maintain(teller: Teller) -> None:
    """Run every other job, undo one run and leave another to be undone."""
    await teller.say("s-long", chatter(40))
    await teller.run("dedup", 0)
    await teller.run("summaries", 0, workspace=WORKSPACE)
    await teller.run("consolidation", 0, workspace=YARD)
    await teller.run("compaction", 1)
    await teller.run("entities", 100)
    await teller.run("edges", 100)
    await teller.run("caches", 0)
    await teller.run("reembed", 0)
    await teller.run("audit", 0)
    await run_job(teller.app, "sweep", in_days(40), is_dry_run=True)
    await undo_run(teller.app, await teller.run("decay", 12, workspace=WORKSPACE))
    await teller.run("decay", 12, workspace=WORKSPACE)
    await leave_a_run_to_be_undone(teller)


async def leave_a_run_to_be_undone(teller: Teller) -> None:
    """Let a note fade where nobody searches: whoever finds one ends that."""
    id_ = await teller.note("The attic smells of tar", workspace=LOFT)
    run = await teller.run("decay", 12, workspace=LOFT)
    note = await teller.ask("GET", f"/v1/notes/{id_}")
    assert note["weight"] < 1, note
    told = {"id": id_, "weight": note["weight"], "run": str(run.id)}
    teller.manifest.faded = {"tenant": teller.app.tenant, **told}


async def tell_of_the_garden(teller: Teller) -> None:
    """Fill the second tenant, whose workspaces and users are called as those of the first."""
    await teller.say("s-1", list(OTHERS_SAID), user="ann")
    for content in OTHERS_NOTES:
        await teller.note(content)
    await teller.ask("PATCH", "/v1/profile", json={"workspace": WORKSPACE, "user": "ann", "patch": {"hat": "straw"}})
    document = {"workspace": WORKSPACE, "key": "handbook", "title": "Garden", "content": "Compost is turned in May."}
    await teller.post("/v1/documents", document)
    await teller.post(
        "/v1/procedures", {"workspace": WORKSPACE, "trigger": "frost is forecast", "action": "cover the seedlings"}
    )
    await teller.app.indexed()
    question = {"workspace": WORKSPACE, "query": "when is compost turned?"}
    await teller.post("/v1/search", question)
    answer = {**question, "agent": "gardener", "response": {"text": "In May."}}
    stored = await teller.post("/v1/responses", answer)
    assert stored["stored"], stored


async def take_stock(teller: Teller, workspaces: Sequence[str]) -> None:
    """Take note of everything that the tenant has now, as its readers see it."""
    for workspace in workspaces:
        listed = {"workspace": workspace, "limit": 500}
        for note in (await teller.ask("GET", "/v1/notes", params=listed))["notes"]:
            teller.expect("notes", note["id"], note["content"], workspace=workspace, user=note["user"])
        for procedure in (await teller.ask("GET", "/v1/procedures", params=listed))["procedures"]:
            teller.expect("procedures", procedure["id"], procedure["trigger"], workspace=workspace)
        for document in (await teller.ask("GET", "/v1/documents", params=listed))["documents"]:
            await teller.expect_answer(f"/v1/documents/{document['id']}")
            for passage in (await teller.expect_answer(f"/v1/documents/{document['id']}/passages"))["passages"]:
                teller.expect("documents", passage["id"], passage["content"], workspace=workspace)
    for session in teller.sessions:
        path = f"/v1/sessions/{session}/messages"
        for message in (await teller.expect_answer(path, workspace=WORKSPACE, limit=500))["messages"]:
            teller.expect("sessions", message["id"], message["content"], user=message["user"], session=session)
    for user in ("ann", ERASED):
        await teller.expect_answer("/v1/profile", "document", "version", workspace=WORKSPACE, user=user)
    report = await teller.post("/v1/audit", {})
    assert report["consistent"], report
    counts = {name: drift["expected"] for name, drift in report["projections"].items()}
    teller.manifest.counts[teller.app.tenant] = counts


async def take_stock_of_links(teller: Teller, names: Sequence[str]) -> None:
    """Take note of what some entities are linked to; how strongly is not said, for time weakens it."""
    for name in names:
        params = {"workspace": WORKSPACE, "name": name}
        found = await teller.ask("GET", "/v1/graph/neighbours", params=params)
        assert found["neighbours"], name
        links = [{field: link[field] for field in ("kind", "direction", "id", "tier")} for link in found["neighbours"]]
        answer = {"entity": {"name": name}, "neighbours": links}
        told = {"tenant": teller.app.tenant, "path": "/v1/graph/neighbours", "params": params, "answer": answer}
        teller.manifest.reads.append(told)


async def fill(url: str, data_dir: Path, graph_url: str, manifest: Manifest) -> None:
    """Fill an empty installation."""
    model = OnnxModel(SentenceTransformersSettings(), "cpu", data_dir.parent / "models")
    chosen: Mapping[str, Any] = {
        "write": {"key_cache_s": 0, "near_duplicate": 1},  # What says the same twice is left to the job.
        "jobs": {"compaction": {"budget_tokens": 512}},
    }
    async with opened(url, data_dir, graph_url, model, **chosen) as app:
        manifest.keys = {
            FIRST: create_key(url, tenant=FIRST, role=KeyRole.ADMIN, name="admin"),
            SECOND: ensure_local_key(data_dir, url),
        }
        manifest.revoked_key = create_key(url, tenant=FIRST, role=KeyRole.WRITER, name="revoked")
        revoke_key(url, list_keys(url)[-1].id)
        harbour, garden = (Teller(tenant_of(app, name, key), manifest) for name, key in manifest.keys.items())
        await tell_of_the_harbour(harbour)
        await tell_of_the_garden(garden)
        await take_stock(harbour, (WORKSPACE, YARD))
        await take_stock(garden, (WORKSPACE,))
        await take_stock_of_links(harbour, (*ENTITIES, "Northern Harbours", "Hestvik"))


def tenant_of(app: Application, tenant: str, key: str) -> Application:
    """Return the application as a tenant whose key there is."""
    mine = app.for_tenant(tenant)
    mine.key = key
    return mine


def main() -> None:
    """Make the installation of the commit that is checked out."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()  # noqa: S607
    with tempfile.TemporaryDirectory(prefix="lamina-installation-") as home:
        data_dir = Path(home) / DATA_DIR
        with servers(data_dir) as (url, graph_url):
            manifest = Manifest(commit, str(data_dir), graph_url)
            asyncio.run(fill(url, data_dir, graph_url, manifest))
            manifest.rows = row_counts(url)
            database = dump(url)
        begin_wal_anew(data_dir / "postgres")
        Installation(FOLDER / commit[:7]).keep(manifest, database, data_dir)


if __name__ == "__main__":
    main()
