import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from deployments import compact
from deployments.app import _compact, _router, embedder_resources, has_model_within, options, replicas, reserved
from deployments.compact import LoadingEmbedder
from deployments.handles import EmbedderHandle, InProcessHandle
from deployments.preflight import refuse_open_ray, refuse_replicas, with_topology
from deployments.up import run
from lamina.config_check.consistency import embedded_store_of
from lamina.core.tiers import TierName
from lamina.errors import Misconfigured, Unavailable
from lamina.models.batching import tokens_of
from lamina.models.hashing import HashingModel
from lamina.settings.loading import Settings
from lamina.settings.models import HashingSettings
from lamina.settings.serving import DeploymentSettings, EmbedderDeploymentSettings
from lamina.settings.stores import (
    HybridSettings,
    MeilisearchSettings,
    QdrantEdgeSettings,
    QdrantServerSettings,
    VectorSettings,
)
from lamina.stores.postgres.generations import Generation

EDGE = QdrantEdgeSettings()
QDRANT = QdrantServerSettings(url="http://vectors:6333")
IN_MEMORY = QdrantServerSettings(url=":memory:")
IN_FOLDER = QdrantServerSettings(url="/srv/qdrant")
MEILISEARCH = MeilisearchSettings(url="http://words:7700")


@pytest.mark.parametrize("gpus", [1.0, 0.5, 8.0])
def test_where_ray_has_a_gpu_the_embedder_takes_its_share_of_one(gpus: float) -> None:
    device, resources = embedder_resources(EmbedderDeploymentSettings(gpu_fraction=0.3), gpus)

    assert device == "cuda"
    assert resources == {"num_cpus": 1, "num_gpus": 0.3}


def test_the_embedder_can_ask_for_a_type_of_gpu() -> None:
    device, resources = embedder_resources(
        EmbedderDeploymentSettings(accelerator="L4", resources={"inference": 1}), 1.0
    )

    assert device == "cuda"
    assert resources == {"num_cpus": 1, "num_gpus": 0.25, "accelerator_type": "L4", "resources": {"inference": 1}}


def test_a_type_of_gpu_is_waited_for_where_ray_has_none_yet() -> None:
    device, resources = embedder_resources(EmbedderDeploymentSettings(accelerator="L4"), 0.0)

    assert device == "cuda"
    assert resources["accelerator_type"] == "L4"


def test_where_ray_has_no_gpu_the_embedder_reserves_cpus_alone() -> None:
    device, resources = embedder_resources(EmbedderDeploymentSettings(num_cpus=0.5), 0.0)

    assert device == "cpu"
    assert resources == {"num_cpus": 0.5}


def test_a_gpu_fraction_of_0_keeps_the_embedder_on_the_cpu() -> None:
    device, resources = embedder_resources(EmbedderDeploymentSettings(gpu_fraction=0, num_cpus=2), 4.0)

    assert device == "cpu"
    assert resources == {"num_cpus": 2}


def test_by_default_the_embedder_uses_a_gpu_that_is_there() -> None:
    assert embedder_resources(EmbedderDeploymentSettings(), 1.0)[0] == "cuda"


def test_a_replica_reserves_resources_of_its_own_beside_cpus() -> None:
    assert reserved(DeploymentSettings(num_cpus=0.2)) == {"num_cpus": 0.2}
    assert reserved(DeploymentSettings(num_cpus=0, resources={"near_disk": 0.5})) == {
        "num_cpus": 0,
        "resources": {"near_disk": 0.5},
    }


@pytest.mark.parametrize(("least", "most"), [(1, 1), (3, 3)])
def test_a_maximum_that_is_not_above_the_minimum_fixes_the_number(least: int, most: int) -> None:
    assert replicas(DeploymentSettings(min_replicas=least, max_replicas=most)) == {"num_replicas": least}


def test_a_higher_maximum_autoscales_between_the_two() -> None:
    limits = DeploymentSettings(
        min_replicas=2,
        max_replicas=5,
        target_ongoing_requests=3,
        upscale_delay_s=4,
        downscale_delay_s=60,
        look_back_s=20,
    )

    chosen = replicas(limits)["autoscaling_config"]

    assert (chosen.min_replicas, chosen.max_replicas, chosen.target_ongoing_requests) == (2, 5, 3)
    assert (chosen.upscale_delay_s, chosen.downscale_delay_s, chosen.look_back_period_s) == (4, 60, 20)
    assert chosen.metrics_interval_s == 4
    assert chosen.policy.is_default_policy_function()


def test_what_reports_its_work_scales_by_it() -> None:
    chosen = replicas(DeploymentSettings(max_replicas=2), 100.0)["autoscaling_config"]

    assert chosen.policy.policy_function == "deployments.scaling:WorkPolicy"
    assert chosen.policy.policy_kwargs == {"target": 100.0}


def test_every_limit_reaches_the_deployment() -> None:
    limits = DeploymentSettings(
        max_ongoing_requests=11,
        max_queued_requests=22,
        health_check_period_s=3,
        health_check_timeout_s=4,
        drain_s=5,
    )

    assert options(limits) == {
        "max_ongoing_requests": 11,
        "max_queued_requests": 22,
        "health_check_period_s": 3,
        "health_check_timeout_s": 4,
        "graceful_shutdown_timeout_s": 5,
        "max_surge_percent": 100,
        "num_replicas": 1,
    }


def test_a_router_that_has_too_much_in_hand_says_when_to_ask_again() -> None:
    chosen = _router(DeploymentSettings(max_queued_requests=1)).backpressure_config

    assert (chosen.status_code, chosen.retry_after_s) == (503, 1)


def test_a_replica_with_an_embedded_index_ends_before_the_next_one_begins() -> None:
    chosen = options(DeploymentSettings(), is_embedded=True)

    assert "max_surge_percent" not in chosen
    assert chosen["graceful_shutdown_wait_loop_s"] < 1


@pytest.mark.parametrize(
    ("tier", "hybrid", "vectors", "section"),
    [
        ("sessions", EDGE, QDRANT, "hybrid"),
        ("sessions", QDRANT, EDGE, None),
        ("documents", EDGE, QDRANT, "hybrid"),
        ("documents", MEILISEARCH, EDGE, None),
        ("documents", IN_MEMORY, EDGE, "hybrid"),
        ("notes", EDGE, QDRANT, "hybrid"),
        ("notes", MEILISEARCH, EDGE, "vectors"),
        ("notes", QDRANT, IN_MEMORY, "vectors"),
        ("documents", IN_FOLDER, EDGE, "hybrid"),
        ("notes", QDRANT, IN_FOLDER, "vectors"),
        ("notes", QDRANT, QDRANT, None),
        ("graph", EDGE, EDGE, None),
        ("procedures", EDGE, EDGE, None),
    ],
)
def test_a_tier_is_embedded_where_one_of_its_indexes_is(
    tier: TierName, hybrid: HybridSettings, vectors: VectorSettings, section: str | None
) -> None:
    assert embedded_store_of(Settings(hybrid=hybrid, vectors=vectors), tier) == section


@pytest.mark.parametrize(
    ("tier", "stores", "section"),
    [
        ("sessions", {}, "hybrid"),
        ("documents", {"vectors": QDRANT}, "hybrid"),
        ("notes", {"hybrid": QDRANT}, "vectors"),
    ],
)
def test_a_second_replica_over_an_embedded_index_is_refused_with_the_setting_and_the_remedy(
    tier: TierName, stores: dict[str, Any], section: str
) -> None:
    settings = Settings(serve={"searchers": {tier: {"max_replicas": 2}}}, **stores)

    with pytest.raises(Misconfigured, match=rf"serve\.searchers\.{tier}\.max_replicas is 2.*{section}\.kind.*set it"):
        refuse_replicas(settings)


@pytest.mark.parametrize("tier", ["sessions", "notes", "documents", "graph", "procedures"])
def test_over_servers_every_tier_may_have_several_replicas(tier: TierName) -> None:
    refuse_replicas(Settings(hybrid=MEILISEARCH, vectors=QDRANT, serve={"searchers": {tier: {"max_replicas": 8}}}))


@pytest.mark.parametrize("tier", ["graph", "procedures"])
def test_graph_and_procedures_may_have_several_replicas_beside_embedded_indexes(tier: TierName) -> None:
    refuse_replicas(Settings(serve={"searchers": {tier: {"min_replicas": 2, "max_replicas": 3}}}))


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ({"serve": {"searchers": {"notes": {"max_replicas": 3}}}}, r"serve\.searchers\.notes\.max_replicas is 3"),
        ({"jobs": {"schedule": {"sweep": "61 * * * *"}}}, r"jobs\.schedule\.sweep is '61"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_is_started(
    tmp_path: Path, chosen: dict[str, Any], told: str
) -> None:
    reports: list[str] = []
    settings = Settings(data_dir=tmp_path / "data", **chosen)

    with pytest.raises(Misconfigured, match=told):
        run(settings, reports.append, on_ready=lambda *_: None)

    assert reports == []
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("serve", "processors", "topology"),
    [
        ({}, 1, "compact"),
        ({}, 2, "compact"),
        ({}, 3, "spread"),
        ({"topology": "compact"}, 64, "compact"),
        ({"topology": "spread"}, 1, "spread"),
        ({"router": {"min_replicas": 2, "max_replicas": 2}}, 2, "spread"),
        ({"searchers": {"procedures": {"max_replicas": 2}}}, 2, "spread"),
        ({"embedder": {"max_replicas": 2}}, 2, "compact"),
    ],
)
def test_a_service_alone_on_few_processors_is_compact_unless_it_is_to_scale(
    serve: dict[str, Any], processors: int, topology: str
) -> None:
    assert with_topology(Settings(serve=serve), processors).serve.topology == topology


@pytest.mark.parametrize(
    ("stores", "index"),
    [
        ({}, "hybrid"),
        ({"hybrid": MEILISEARCH}, "vectors"),
        ({"hybrid": QDRANT}, "vectors"),
        ({"vectors": QDRANT}, "hybrid"),
    ],
)
def test_routers_that_scale_are_refused_in_a_compact_topology_over_an_embedded_index(
    stores: dict[str, Any], index: str
) -> None:
    serve = {"topology": "compact", "router": {"max_replicas": 2}}

    with pytest.raises(Misconfigured, match=rf"serve\.router\.max_replicas is 2.*compact.*{index}\.kind.*spread"):
        refuse_replicas(Settings(serve=serve, **stores))


def test_routers_scale_in_a_compact_topology_over_servers() -> None:
    refuse_replicas(
        Settings(serve={"topology": "compact", "router": {"max_replicas": 4}}, hybrid=QDRANT, vectors=QDRANT)
    )


def test_a_compact_replica_reserves_what_its_parts_would_and_ends_before_the_next_one_over_embedded_indexes() -> None:
    serve = {"router": {"num_cpus": 0.5}, "indexer": {"num_cpus": 0.25}, "searchers": {"notes": {"num_cpus": 1}}}

    embedded, served = (
        _compact(Settings(serve=serve, **stores)) for stores in ({}, {"hybrid": QDRANT, "vectors": QDRANT})
    )

    assert embedded.name == served.name == "Router"
    assert embedded.ray_actor_options is not None
    assert embedded.ray_actor_options["num_cpus"] == pytest.approx(0.5 + 0.25 + 1 + 4 * 0.05)
    assert embedded._deployment_config.max_surge_percent != served._deployment_config.max_surge_percent == 100
    assert embedded._deployment_config.graceful_shutdown_wait_loop_s < 1


def test_an_address_of_another_machine_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    reports: list[str] = []
    settings = Settings(data_dir=tmp_path / "data", serve={"host": "192.0.2.1"})

    with pytest.raises(Misconfigured, match=r"serve\.host '192\.0\.2\.1' cannot be bound: .*; name an address"):
        run(settings, reports.append, on_ready=lambda *_: None)

    assert reports == []


@pytest.mark.parametrize(("texts", "tokens"), [([], 0), ([""], 1), (["abcdefgh"], 3), (["abcdefgh", "abcd"], 5)])
def test_tokens_are_counted_by_four_characters(texts: list[str], tokens: int) -> None:
    assert tokens_of(texts) == tokens


def test_a_ray_that_asks_for_no_token_is_refused_unless_that_is_allowed() -> None:
    refuse_open_ray(Settings(), asks_for_token=True)
    refuse_open_ray(Settings(serve={"allow_ray_without_token": True}), asks_for_token=False)

    with pytest.raises(Misconfigured, match=r"RAY_AUTH_MODE=token .* serve\.allow_ray_without_token"):
        refuse_open_ray(Settings(), asks_for_token=False)


@pytest.mark.parametrize(
    ("chosen", "device", "is_within"),
    [
        ({}, "cpu", True),
        ({}, "cuda", False),
        ({"serve": {"embedder": {"max_replicas": 2}}}, "cpu", False),
        ({"serve": {"embedder": {"resources": {"near_disk": 1}}}}, "cpu", False),
        ({"serve": {"router": {"max_replicas": 2}}}, "cpu", False),
        (
            {"embedding": {"kind": "endpoint", "url": "http://model.example", "model": "m", "dimensions": 8}},
            "cpu",
            False,
        ),
    ],
)
def test_a_compact_service_runs_the_model_within_it_unless_that_is_elsewhere_needs_a_gpu_or_scales(
    chosen: dict[str, Any], device: str, is_within: bool
) -> None:
    assert has_model_within(Settings(**chosen), device) is is_within


async def test_a_model_within_a_compact_service_is_waited_for_while_it_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_end, model = threading.Event(), HashingModel()

    def load(*_: Any) -> HashingModel:
        may_end.wait(30)
        return model

    monkeypatch.setattr(compact, "build_model", load)
    settings = Settings(embedding=HashingSettings())
    embedder = LoadingEmbedder(settings, Generation(1, model.identity))
    handle = EmbedderHandle(InProcessHandle(embedder))

    await embedder.check_health()
    with pytest.raises(Unavailable, match="its model is still being loaded"):
        await handle.embed(["Which berth?"])
    writing = asyncio.create_task(handle.embed_chunks(["Berth seven."]))
    may_end.set()

    assert len(await writing) == 1
    assert (await handle.embed(["Which berth?"])).shape == (1, model.identity.dimension)
    await embedder.check_health()


async def test_a_model_within_a_compact_service_that_cannot_be_loaded_makes_it_unhealthy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any) -> HashingModel:
        raise Misconfigured("the model is broken", "take another")

    monkeypatch.setattr(compact, "build_model", fail)
    embedder = LoadingEmbedder(Settings(embedding=HashingSettings()), Generation(1, HashingModel().identity))

    with pytest.raises(Misconfigured, match="the model is broken"):
        await embedder.report()
    with pytest.raises(Misconfigured, match="the model is broken"):
        await embedder.check_health()


def test_a_compact_replica_reserves_the_processors_of_the_model_within_it() -> None:
    settings = Settings()
    apart, within = (_compact(settings, with_model=with_model).ray_actor_options for with_model in (False, True))

    assert within["num_cpus"] == pytest.approx(apart["num_cpus"] + settings.serve.embedder.num_cpus)
