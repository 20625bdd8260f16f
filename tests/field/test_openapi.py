"""Requests made of the OpenAPI document: no 500, no undocumented answer, no invalid input accepted."""

import asyncio
import contextlib
import copy
import time
from collections.abc import Callable
from typing import Any

import httpx
import hypothesis
import requests
import schemathesis
from schemathesis.checks import load_all_checks

from tests.support.application import Application
from tests.support.effort import IS_LONG

EXAMPLES = 60 if IS_LONG else 2
BUDGET_S = 600.0 if IS_LONG else 60.0
MODES = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)

load_all_checks()
Send = Callable[[schemathesis.Case], httpx.Response]


def explore(operation: Any, mode: schemathesis.GenerationMode, send: Send, examples: int) -> None:
    """Send requests of one operation, valid or invalid ones, and check the answers."""
    checks = schemathesis.checks.CHECKS.get_by_names(list(CHECKS))

    @hypothesis.seed(89)
    @hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def check(case: schemathesis.Case) -> None:
        case.validate_response(send(case), checks=checks)

    # Without a parameter and a body, nothing can be invalid.
    with contextlib.suppress(hypothesis.errors.Unsatisfiable):
        check()


# Hypothesis blames the strategy for whatever the application draws in the other thread meanwhile.
async def test_no_request_is_answered_in_a_way_that_is_not_documented(unshared: Application) -> None:
    client = unshared.admin()
    loop = asyncio.get_running_loop()
    schema = schemathesis.openapi.from_dict(_without_keys(unshared.api.openapi()))
    operations = [result.ok() for result in schema.get_all_operations()]

    def send(case: schemathesis.Case) -> httpx.Response:
        prepared = requests.Request(**case.as_transport_kwargs(base_url="http://lamina")).prepare()
        headers = {**prepared.headers, "Authorization": client.headers["Authorization"]}
        try:
            sending = client.request(
                str(prepared.method), httpx.URL(str(prepared.url)), content=prepared.body, headers=headers
            )
        except httpx.InvalidURL:  # Too long for the client, which sends none of more than 64 KiB.
            hypothesis.reject()
        return asyncio.run_coroutine_threadsafe(sending, loop).result(30)

    def explore_all() -> list[str]:
        end, failures = time.monotonic() + BUDGET_S, []
        for operation in operations:
            for mode in MODES:
                try:
                    if time.monotonic() < end:
                        explore(operation, mode, send, EXAMPLES)
                except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - failed checks come in groups
                    failures.append(f"{operation.label} ({mode.value}): {_describe(error)}")
        return failures

    failures = await asyncio.to_thread(explore_all)

    assert len(operations) > 50
    assert failures == [], "\n\n".join(failures)


def _without_keys(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document without its security: every request is sent with an admin's key."""
    found = copy.deepcopy(document)
    for calls in found["paths"].values():
        for call in calls.values():
            call.pop("security", None)
    return found


def _describe(error: BaseException) -> str:
    return "\n".join(map(_describe, error.exceptions)) if isinstance(error, BaseExceptionGroup) else str(error)[:2000]
