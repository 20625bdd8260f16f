import logging
from dataclasses import replace

import httpx
import psycopg
import pytest

from deployments.api import build_api
from lamina.aio import probing
from lamina.aio.probing import states_of
from lamina.errors import Unavailable
from tests.support.application import Application

SECRETS = ("db.internal", "10.0.0.7", "5432", "/var/lib/lamina", "ann", "s3cret", "Traceback", "Error")
ERRORS = [
    psycopg.OperationalError('connection to server at "db.internal" (10.0.0.7), port 5432 failed: user "ann"'),
    Unavailable("postgres", "db.internal:5432 refuses ann:s3cret"),
    OSError(2, "No such file", "/var/lib/lamina/index"),
    httpx.ConnectError("http://ann:s3cret@10.0.0.7"),
    RuntimeError("Traceback (most recent call last)"),
    TimeoutError("10.0.0.7 took too long"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_readiness_tells_a_state_and_the_log_tells_the_error_once(
    application: Application, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        raise error

    async def states() -> dict[str, str]:
        return {**await states_of({"notes": fail}, 1), "of an older release": f"{type(error).__name__}: {error}"}

    probing._logged.clear()
    services = application.services
    failing = replace(services, probes={**services.probes, "embedder": fail}, stores=[states])
    transport = httpx.ASGITransport(build_api(failing))
    with caplog.at_level(logging.WARNING, logger=probing.__name__):
        async with httpx.AsyncClient(transport=transport, base_url="http://lamina") as client:
            answers = [await client.get("/readyz") for _ in range(3)]

    said = answers[0].json()
    state = "late" if isinstance(error, TimeoutError) else "failed"
    assert [answer.status_code for answer in answers] == [503] * 3
    assert said["parts"]["embedder"] == said["stores"]["notes"] == state
    assert said["stores"]["of an older release"] == "failed"
    assert not [secret for secret in SECRETS if secret in answers[0].text]
    assert len([line for line in caplog.messages if line.startswith("embedder: ")]) == 1


async def test_a_real_store_that_is_away_is_not_named() -> None:
    async def connect() -> None:
        await psycopg.AsyncConnection.connect("postgresql://ann:s3cret@127.0.0.1:1/db?connect_timeout=1")

    states = await states_of({"postgres": connect}, 5)

    assert states == {"postgres": "failed"}
