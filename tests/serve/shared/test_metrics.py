"""What a real Ray exports of the service, under the names that the dashboard asks for."""

import time
from collections.abc import Mapping
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

from lamina.core.metrics import INSTRUMENTS
from tests.support.exported_metrics import exported_names
from tests.support.service import Running, descendants, instance_folder

WITHIN_S = 120.0
# What need not appear: something has to go wrong, a job to run, or a reranker to be there.
TROUBLE = ("failures", "refusals", "degraded", "job_", "rerank")


def exporter(service: Running) -> str:
    """Return where Ray's metrics are."""
    folder = next(filter(None, map(instance_folder, descendants(service.process.pid))))
    (port,) = Path(folder).glob("ray/session_latest/metrics_export_port_*")
    return f"http://127.0.0.1:{port.read_text()}/metrics"


def exported(address: str) -> Mapping[str, set[str]]:
    """Return the labels of every metric of ours that Ray exports now, by its name."""
    families = text_string_to_metric_families(httpx.get(address).text)
    samples = [sample for family in families for sample in family.samples]
    return {sample.name: set(sample.labels) for sample in samples if sample.name.startswith("ray_lamina_")}


def test_what_replicas_and_actors_do_is_exported_under_the_names_and_labels_that_are_promised(
    service: Running,
) -> None:
    expected = [item for item in INSTRUMENTS if not any(part in item.name for part in TROUBLE)]
    names = {name for item in expected for name in exported_names(item)}
    with service.client(workspace="measured") as client:
        client.add("the key hangs behind the barometer")
        # Two lengths in one pass of the model, so that the shorter one is padded; then a text that it embedded before.
        client.record([{"content": "the boat is blue"}, {"content": "the mast of the boat is red " * 3}], session="s")
        client.record(
            [{"content": "the boat is blue"}],
            session="another",
            tool_calls=[{"name": "tides"}],
            usage={"model": "small", "input_tokens": 9, "cached_tokens": 4, "output_tokens": 2, "cost": 0.1},
            outcome={"succeeded": True},
        )
        client.search("where is the key?")
        address, deadline = exporter(service), time.monotonic() + WITHIN_S
        while not (found := exported(address)).keys() >= names and time.monotonic() < deadline:
            time.sleep(1)
        own = text_string_to_metric_families(httpx.get(f"{service.service.url}/metrics").text)

    assert names <= found.keys() <= {name for item in INSTRUMENTS for name in exported_names(item)}
    for item in expected:
        for name in exported_names(item):
            assert set(item.labels) <= found[name], name
    assert found["ray_lamina_searches_total"] >= {"deployment", "replica"}
    (up,) = (family for family in own if family.name == "lamina_up")
    assert {sample.value for sample in up.samples} == {1.0}
