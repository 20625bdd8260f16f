"""One instance for the tests that need no other: two routers, a graph, and procedures that scale soon."""

from collections.abc import Iterator

import pytest

from tests.support.scratch import new_folder
from tests.support.service import Running, running_service

TWO_ROUTERS = {"LAMINA_SERVE__ROUTER__MIN_REPLICAS": "2", "LAMINA_SERVE__ROUTER__MAX_REPLICAS": "2"}
LIMITS = {
    "MAX_REPLICAS": "2",
    "TARGET_ONGOING_REQUESTS": "0.2",
    "UPSCALE_DELAY_S": "0.5",
    "DOWNSCALE_DELAY_S": "3",
    "LOOK_BACK_S": "2",
    "HEALTH_CHECK_PERIOD_S": "1",
    "HEALTH_CHECK_TIMEOUT_S": "1",
    "DRAIN_S": "1",
}
SCALES_SOON = {f"LAMINA_SERVE__SEARCHERS__PROCEDURES__{name}": value for name, value in LIMITS.items()}


@pytest.fixture(scope="package")
def service() -> Iterator[Running]:
    with (
        new_folder() as folder,
        running_service(folder, LAMINA_EMBEDDING__KIND="hashing", **TWO_ROUTERS, **SCALES_SOON) as instance,
    ):
        yield instance
