"""The MCP server: every tool, the resources and the prompt, in both revisions."""

import json
import os
import sys
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from lamina.client.mcp.tools import TOOLS
from lamina.core.trash import TrashKind
from tests.support.application import Application
from tests.support.ingress import uvicorn_of
from tests.support.mcp import LEGACY, MODERN, connected, post
from tests.support.service import ROOT

MODES = ("auto", "legacy")
COMMAND = ["-c", "import lamina.cli; lamina.cli.main()", "mcp"]


def found_in(result: types.CallToolResult) -> Any:
    assert not result.is_error, result.content
    return result.structured_content


def text_of(result: types.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


async def find(client: Client, query: str, **arguments: Any) -> list[dict[str, Any]]:
    return list(found_in(await client.call_tool("search", {"query": query, **arguments}))["results"])


@pytest.mark.parametrize("mode", MODES)
async def test_what_a_model_remembers_is_found_read_changed_and_forgotten_by_one_id(
    application: Application, mode: str
) -> None:
    async with connected(application, mode) as client:
        kept = found_in(await client.call_tool("remember", {"content": "Ann moors her boat in Cascais", "tags": ["x"]}))
        await application.indexed()
        (hit,) = await find(client, "Where does Ann moor her boat?", tags=["x"])
        read = found_in(await client.call_tool("read", {"id": hit["id"]}))
        await client.call_tool("update", {"id": hit["id"], "content": "Ann moors her boat in Setúbal"})
        await application.indexed()
        (changed,) = await find(client, "Where does Ann moor her boat?", tags=["x"])
        gone = found_in(await client.call_tool("forget", {"id": hit["id"]}))
        again = await client.call_tool("read", {"id": hit["id"]})
        left = await find(client, "Where does Ann moor her boat?", tags=["x"])

    assert hit["id"] == kept["id"] == read["id"] == gone["id"]
    assert (read["content"], changed["content"]) == ("Ann moors her boat in Cascais", "Ann moors her boat in Setúbal")
    assert again.is_error
    assert "search for it" in text_of(again)
    assert left == []


@pytest.mark.parametrize("mode", MODES)
async def test_a_context_is_text_that_a_prompt_repeats_before_the_question(application: Application, mode: str) -> None:
    async with connected(application, mode) as client:
        await client.call_tool("remember", {"content": "The deploy password rotates on Mondays"})
        await application.indexed()
        block = await client.call_tool("context", {"query": "When does the deploy password rotate?"})
        prompt = await client.get_prompt("recall", {"query": "When does the deploy password rotate?"})

    assert "rotates on Mondays" in text_of(block)
    first, second = (one.content for one in prompt.messages)
    assert isinstance(first, types.TextContent)
    assert isinstance(second, types.TextContent)
    assert "rotates on Mondays" in first.text
    assert second.text == "When does the deploy password rotate?"


async def test_an_empty_memory_says_so_in_place_of_an_empty_block(application: Application) -> None:
    async with connected(application) as client:
        assert "Nothing is remembered" in text_of(await client.call_tool("context", {"query": "Who?"}))


@pytest.mark.parametrize("mode", MODES)
async def test_a_stated_fact_is_a_neighbour_and_can_be_forgotten(application: Application, mode: str) -> None:
    async with connected(application, mode) as client:
        fact = found_in(
            await client.call_tool("state_fact", {"subject": "Ann", "relation": "lives_in", "object": "Lisbon"})
        )
        await application.indexed()
        near = found_in(await client.call_tool("graph_neighbours", {"name": "Ann"}))
        found_in(await client.call_tool("forget", {"id": fact["id"]}))
        await application.indexed()
        after = await client.call_tool("graph_neighbours", {"name": "Ann"})

    assert "Lisbon" in json.dumps(near)
    assert "Lisbon" not in text_of(after)


async def test_a_procedure_is_matched_and_its_outcome_reported_once_a_run(application: Application) -> None:
    made = await application.client().post(
        "/v1/procedures", json={"trigger": "deploy the site", "action": "run the checks, then push"}
    )
    async with connected(application) as client:
        (match,) = found_in(await client.call_tool("match_procedures", {"query": "deploy the site"}))["matches"]
        reports = [
            found_in(await client.call_tool("report_procedure", {"id": match["id"], "succeeded": True, "run": "r1"}))
            for _ in range(2)
        ]
        read = found_in(await client.call_tool("read", {"id": match["id"]}))

    assert match["id"] == made.json()["id"] == read["id"]
    assert [report["existed"] for report in reports] == [False, True]
    assert read["successes"] == 1


async def test_an_uploaded_document_is_found_by_a_passage_and_read_whole(application: Application) -> None:
    text = "# Handbook\n\nThe boiler room opens at seven.\n\n# Annex\n\nParking is free."
    async with connected(application) as client:
        stored = found_in(await client.call_tool("upload", {"content": text, "title": "Handbook", "key": "h.md"}))
        await application.indexed()
        hit = (await find(client, "When does the boiler room open?"))[0]
        read = found_in(await client.call_tool("read", {"id": hit["document"]}))
        twice = found_in(await client.call_tool("upload", {"content": text + " Late.", "key": "h.md"}))
        await client.call_tool("forget", {"id": stored["id"]})
        gone = await client.call_tool("read", {"id": stored["id"]})

    assert hit["document"] == stored["id"] == twice["id"]
    assert (read["title"], read["content"]) == ("Handbook", text)
    assert twice["status"] == "replaced"
    assert gone.is_error


async def test_a_profile_is_read_for_the_user_that_the_call_or_the_configuration_names(
    application: Application,
) -> None:
    await application.client().patch("/v1/profile", json={"user": "ann", "patch": {"name": "Ann"}})
    async with connected(application) as client:
        named = found_in(await client.call_tool("profile", {"user": "ann"}))
        nobody = await client.call_tool("profile", {})
    async with connected(application, headers={"Lamina-User": "ann"}) as client:
        configured = found_in(await client.call_tool("profile", {}))

    assert named["document"] == configured["document"] == {"name": "Ann"}
    assert nobody.is_error
    assert "user" in text_of(nobody)


async def test_a_workspace_comes_from_the_call_then_from_the_header(application: Application) -> None:
    async with connected(application, headers={"Lamina-Workspace": "caf%C3%A9"}) as client:
        first = found_in(await client.call_tool("remember", {"content": "In the header's workspace"}))
        second = found_in(await client.call_tool("remember", {"content": "In the call's", "workspace": "other"}))
        stored = [found_in(await client.call_tool("read", {"id": one["id"]})) for one in (first, second)]

    assert [one["workspace"] for one in stored] == ["café", "other"]


@pytest.mark.parametrize("mode", MODES)
async def test_resources_list_documents_and_notes_page_by_page_and_read_them_by_id(
    application: Application, mode: str
) -> None:
    http = application.client()
    await http.post("/v1/documents", json={"content": "A handbook", "title": "Handbook"})
    await http.post("/v1/notes/batch", json={"notes": [f"note number {number}" for number in range(60)]})
    procedure = await http.post("/v1/procedures", json={"trigger": "a", "action": "b"})
    async with connected(application, mode) as client:
        listed: list[types.Resource] = []
        cursor: str | None = None
        for _ in range(5):
            page = await client.list_resources(cursor=cursor)
            listed += page.resources
            cursor = page.next_cursor
            if cursor is None:
                break
        document = (await client.read_resource(listed[0].uri)).contents[0]
        note = (await client.read_resource(listed[1].uri)).contents[0]
        action = (await client.read_resource(f"lamina://procedure/{procedure.json()['id']}")).contents[0]
        templates = (await client.list_resource_templates()).resource_templates

    assert len({one.uri for one in listed}) == 61
    assert listed[0].title == "Handbook"
    assert isinstance(document, types.TextResourceContents)
    assert isinstance(note, types.TextResourceContents)
    assert isinstance(action, types.TextResourceContents)
    assert document.text == "A handbook"
    assert json.loads(note.text)["content"].startswith("note number")
    assert json.loads(action.text)["action"] == "b"
    assert [one.name for one in templates] == ["document", "note", "procedure"]


@pytest.mark.parametrize(
    "uri", [f"lamina://note/{UUID(int=1)}", "lamina://note/x", "lamina://keys/1", "file:///etc/passwd", "lamina://"]
)
async def test_a_resource_that_is_not_there_is_an_error_that_names_it(application: Application, uri: str) -> None:
    async with connected(application) as client:
        with pytest.raises(MCPError) as refused:
            await client.read_resource(uri)

    assert refused.value.code == types.INVALID_PARAMS
    assert refused.value.data == {"uri": uri}


@pytest.mark.parametrize("cursor", ["x", "note:", "note:-1", "note:99999999999999999999", "keys:0", "note:\u0661"])
async def test_a_cursor_that_no_list_returned_is_refused(application: Application, cursor: str) -> None:
    async with connected(application) as client:
        with pytest.raises(MCPError, match="cursor"):
            await client.list_resources(cursor=cursor)


@pytest.mark.parametrize("mode", MODES)
async def test_tools_stand_in_one_order_with_all_annotations_and_few_parameters(
    application: Application, mode: str
) -> None:
    async with connected(application, mode) as client:
        first, second = [(await client.list_tools()).tools for _ in range(2)]

    assert first == second
    assert 8 <= len(first) <= 12
    for tool in first:
        assert tool.annotations is not None
        hints = tool.annotations
        assert hints.open_world_hint is False, tool.name
        assert None not in (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint), tool.name
        assert len(tool.input_schema["properties"]) <= 9, tool.name
        assert "$ref" not in json.dumps(tool.input_schema), tool.name
        assert all(field.get("description") for field in tool.input_schema["properties"].values()), tool.name
    assert {tool.name for tool in first if tool.annotations and tool.annotations.destructive_hint} == {
        "update",
        "forget",
        "upload",
    }


@pytest.mark.parametrize(
    ("method", "params", "scope"),
    [
        ("server/discover", {}, "public"),
        ("tools/list", {}, "private"),
        ("resources/list", {}, "private"),
        ("resources/templates/list", {}, "private"),
        ("prompts/list", {}, "private"),
    ],
)
async def test_lists_say_how_long_and_for_whom_they_may_be_kept(
    application: Application, method: str, params: dict[str, Any], scope: str
) -> None:
    result = (await post(application.client(), method, params)).json()["result"]

    assert (result["cacheScope"], result["resultType"]) == (scope, "complete")
    assert result["ttlMs"] == (0 if method == "resources/list" else 300_000)


async def test_what_is_read_is_private_and_old_at_once(application: Application) -> None:
    note = (await application.client().post("/v1/notes", json={"content": "A note"})).json()

    result = (await post(application.client(), "resources/read", {"uri": f"lamina://note/{note['id']}"})).json()[
        "result"
    ]

    assert (result["cacheScope"], result["ttlMs"]) == ("private", 0)


async def test_both_revisions_are_answered_without_a_session(application: Application) -> None:
    client = application.client()
    params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}

    old = await post(client, "initialize", params, LEGACY)
    listed = await post(client, "tools/list", {}, LEGACY)
    new = await post(client, "server/discover", {}, MODERN)

    assert old.json()["result"]["protocolVersion"] == LEGACY
    assert "mcp-session-id" not in old.headers
    assert listed.headers["content-type"] == "application/json"
    assert MODERN in new.json()["result"]["supportedVersions"]


async def test_wrong_arguments_are_told_with_those_that_the_tool_takes(application: Application) -> None:
    async with connected(application) as client:
        results = [
            await client.call_tool(tool, arguments)
            for tool, arguments in (
                ("remember", {}),
                ("remember", {"content": 7}),
                ("remember", {"content": "x", "colour": "red"}),
                ("search", {"query": "x", "limit": "ten"}),
                ("search", {"query": "x", "tiers": ["dreams"]}),
                ("read", {"id": "note-1"}),
                ("update", {"id": str(uuid4())}),
                ("report_procedure", {"id": str(uuid4()), "succeeded": "yes"}),
            )
        ]

    assert all(result.is_error for result in results)
    assert "content" in text_of(results[0])
    assert "colour" in text_of(results[2])
    assert "takes workspace, user, content" in text_of(results[2])


async def test_the_same_tools_are_served_over_standard_input_and_output(application: Application) -> None:
    async with uvicorn_of(application.api, application.settings.serve.front_door) as port:
        environment = {"LAMINA_URL": f"http://127.0.0.1:{port}", "LAMINA_API_KEY": application.key}
        for mode in MODES:
            command = StdioServerParameters(
                command=sys.executable,
                args=[*COMMAND, "--workspace", "desk", "--user", "ann"],
                env={**environment, "PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
            )
            async with Client(command, mode=mode, read_timeout_seconds=60) as client:
                kept = found_in(await client.call_tool("remember", {"content": f"Written by the {mode} mode"}))
                read = found_in(await client.call_tool("read", {"id": kept["id"]}))
                listed = [tool.name for tool in (await client.list_tools()).tools]
                wrong = await client.call_tool("read", {"id": str(UUID(int=1))})
            assert (read["workspace"], read["user"]) == ("desk", "ann")
            assert listed == [tool.name for tool in TOOLS]
            assert wrong.is_error


async def test_over_standard_input_a_service_that_is_away_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    command = StdioServerParameters(
        command=sys.executable,
        args=COMMAND,
        env={"LAMINA_URL": "http://127.0.0.1:9", "LAMINA_API_KEY": "x", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
    )
    async with Client(command, read_timeout_seconds=60) as client:
        result = await client.call_tool("search", {"query": "anything"})

    assert result.is_error
    assert "lamina up" in text_of(result)


def test_the_tool_that_forgets_tells_that_each_kind_of_memory_can_be_restored() -> None:
    [forget] = [tool for tool in TOOLS if tool.name == "forget"]
    told = " ".join((forget.__doc__ or "").split())

    assert "All of them can be restored" in told
    assert all(f" {kind}" in told.partition(", by its id")[0] for kind in TrashKind), told


async def test_what_models_ask_and_store_through_it_is_counted_for_bills(unshared: Application) -> None:
    admin = unshared.admin()
    async with connected(unshared, "auto") as client:
        await find(client, "Where does Ann moor her boat?")
        found_in(await client.call_tool("context", {"query": "the boat of Ann"}))

    total = (await admin.get("/v1/usage")).json()["total"]

    assert total["searches"] == 2
