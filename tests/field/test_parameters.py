"""A misspelt query parameter is refused everywhere; ignored, it would widen what a call does."""

import pytest

from tests.support.application import Application


@pytest.mark.parametrize(
    ("method", "path", "known"),
    [
        ("DELETE", "/v1/memory-profile", "worksapce"),
        ("GET", "/v1/notes", "workspcae"),
        ("GET", "/v1/providers/cache-metrics", "day"),
        ("GET", "/v1/sessions/s/messages", "offfset"),
        ("GET", "/cache/stats", "workspce"),
        ("GET", "/livez", "verbose"),
    ],
)
async def test_what_no_call_knows_is_refused_with_what_it_knows(
    application: Application, method: str, path: str, known: str
) -> None:
    refused = await application.client().request(method, path, params={known: "x"})

    assert refused.status_code == 422
    assert refused.json()["detail"].startswith(f"{known}: is not known here; the query knows ")


async def test_a_misspelt_workspace_deletes_no_profile(application: Application) -> None:
    client = application.client()
    await client.put("/v1/memory-profile", json={"agent": "coder", "min_relevance": 0.4})

    refused = await client.delete("/v1/memory-profile", params={"agent": "coder", "worksapce": "other"})

    assert "agent" in refused.json()["detail"]
    assert (await client.get("/v1/memory-profile", params={"agent": "coder"})).json()["min_relevance"] == 0.4
