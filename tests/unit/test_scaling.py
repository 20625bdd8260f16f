import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from ray import cloudpickle
from ray.serve import autoscaling_policy
from ray.serve.config import AutoscalingContext

from deployments.embedder import EmbedderDeployment
from deployments.scaling import WORK, Work, WorkPolicy, autoscaling, wanted_replicas
from deployments.searcher import CHANGES_AT_ONCE, SEARCHES_FIRST, SearcherDeployment
from lamina.errors import Unavailable
from lamina.models.hashing import HashingModel
from lamina.settings.loading import Settings
from lamina.settings.models import HashingSettings
from lamina.settings.serving import DeploymentSettings

PATIENCE_S = 60.0


@dataclass
class Clock:
    """Seconds that a test moves on."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Aim:
    target_ongoing_requests: float = 2.0


@dataclass
class Known:
    """What the policy is asked with."""

    aggregated_metrics: Mapping[str, Mapping[Any, float]] | None = None
    total_num_requests: float = 0.0
    target_num_replicas: int = 1
    config: Aim = field(default_factory=Aim)


@pytest.mark.parametrize(
    ("work", "replicas", "wanted"),
    [
        (0, 1, 1),
        (0, 3, 1),
        (10, 1, 1),
        (10.5, 1, 2),
        (21, 1, 3),
        (21, 2, 3),
        (30, 3, 3),
        (19, 3, 3),  # two would have 9.5 each, hardly less than 10
        (16, 3, 2),
        (17, 2, 2),
        (8, 2, 1),
        (8.5, 2, 2),
        (8, 3, 1),
        (1000, 1, 100),
    ],
)
def test_replicas_come_with_the_work_and_go_only_well_below_it(work: float, replicas: int, wanted: int) -> None:
    assert wanted_replicas(work, target=10, replicas=replicas) == wanted


@pytest.mark.parametrize("work", [9.5, 10, 10.5, 19.5, 20, 20.5, 24, 25, 29])
def test_a_steady_load_comes_to_rest(work: float) -> None:
    counts = [3]
    for _ in range(5):
        counts.append(wanted_replicas(work, target=10, replicas=counts[-1]))

    assert counts[1:] == [counts[1]] * 5


def test_work_is_reported_as_its_mean_since_the_last_report() -> None:
    clock = Clock()
    work = Work(clock)
    with work.counted(3):
        clock.now = 1.0
        with work.counted(5):
            clock.now = 2.0
    clock.now = 4.0

    reports = [work.report(), work.report()]

    assert reports == [{WORK: (3 + 8) / 4}, {WORK: 0.0}]


def test_work_that_ends_with_an_error_is_not_in_hand_any_more() -> None:
    clock = Clock()
    work = Work(clock)

    with pytest.raises(ValueError, match="broken"), work.counted(7):
        raise ValueError("broken")
    clock.now = 1.0

    assert work.report() == {WORK: 0.0}


async def test_the_end_of_work_is_waited_for_but_not_for_long() -> None:
    work, loop = Work(), asyncio.get_running_loop()
    await asyncio.wait_for(work.over(PATIENCE_S), PATIENCE_S)

    with work.counted(1):
        waiting = asyncio.create_task(work.over(PATIENCE_S))
        with work.counted(1):
            await asyncio.sleep(0)
        assert not waiting.done()
    began = loop.time()
    await waiting
    assert loop.time() - began < PATIENCE_S

    with work.counted(1):
        began = loop.time()
        await work.over(0.05)
        assert loop.time() - began >= 0.05


def test_work_stalls_while_none_of_it_is_finished() -> None:
    clock = Clock()
    work = Work(clock)
    clock.now = 100.0
    idle = work.stalled_s()
    with work.counted(1):
        clock.now = 107.0
        stuck = work.stalled_s()
        with work.counted(1):
            clock.now = 109.0
        moving = work.stalled_s()
    done = work.stalled_s()

    assert (idle, stuck, moving, done) == (0.0, 7.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("known", "wanted"),
    [
        (Known({WORK: {"a": 25.0}}), 3),
        (Known({WORK: {"a": 8.0, "b": 14.0}}, target_num_replicas=2), 3),
        (Known({WORK: {"a": 4.0, "b": 2.0, "c": 1.0}}, target_num_replicas=3), 1),
        (Known({WORK: {"a": 25.0}}, total_num_requests=100), 3),
        (Known(None, total_num_requests=7.0), 4),
        (Known({}, total_num_requests=7.0), 4),
        (Known({"running_requests": {"a": 9.0}}, total_num_requests=3.0), 2),
        (Known(None, total_num_requests=0.0, target_num_replicas=2), 1),
    ],
)
def test_the_policy_goes_by_reported_work_and_by_calls_where_nothing_is_reported(known: Known, wanted: int) -> None:
    assert WorkPolicy(target=10.0)(known) == (wanted, {})


def test_the_policy_travels_to_the_controller_without_this_project() -> None:
    policy = autoscaling(DeploymentSettings(max_replicas=2), work_target=10.0).policy

    pickled = policy.get_serialized_policy_def()
    travelled = cloudpickle.loads(pickled)

    assert b"lamina" not in pickled
    assert travelled(**policy.policy_kwargs)(Known({WORK: {"a": 25.0}})) == (3, {})


def test_under_a_step_of_load_rays_delays_and_the_policy_scale_up_once_and_down_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = autoscaling(
        DeploymentSettings(max_replicas=3, upscale_delay_s=5, downscale_delay_s=60, look_back_s=10), work_target=10.0
    )
    decide = autoscaling_policy._apply_autoscaling_config(WorkPolicy(10.0))
    load = [4.0] * 60 + [25.0, 34.0, 21.0] * 60 + [4.0] * 120
    counts, state = [1], dict[str, Any]()
    for second, work in enumerate(load):
        monkeypatch.setattr(autoscaling_policy.time, "time", lambda now=float(second): now)
        wanted, state = decide(context(work, counts[-1], config, state))
        counts.append(min(3, wanted))

    changes = [after for before, after in pairwise(counts) if before != after]

    assert changes == [3, 1]
    assert counts[60 + 7] == 3
    assert counts[240 + 58] == 3
    assert counts[240 + 62] == 1


def context(work: float, replicas: int, config: Any, state: dict[str, Any]) -> AutoscalingContext:
    return AutoscalingContext(
        deployment_id=None,
        deployment_name="Graph",
        app_name="lamina",
        current_num_replicas=replicas,
        target_num_replicas=replicas,
        running_replicas=[],
        total_num_requests=0.0,
        total_queued_requests=0.0,
        aggregated_metrics={WORK: {"a": work}},
        raw_metrics={},
        capacity_adjusted_min_replicas=config.min_replicas,
        capacity_adjusted_max_replicas=config.max_replicas,
        policy_state=state,
        last_scale_up_time=None,
        last_scale_down_time=None,
        current_time=None,
        config=config,
    )


async def test_the_embedder_reports_the_tokens_that_wait() -> None:
    settings = Settings(embedding=HashingSettings())
    embedder = EmbedderDeployment(settings, "cpu", HashingModel().identity)
    clock = embedder._work._clock = Clock(embedder._work._clock())
    embedder._work.report()

    with embedder._work.counted(12):
        clock.now += 2.0
        waiting = await embedder.record_autoscaling_stats()
    await embedder.embed_calls([("a text", "another")])
    clock.now += 1.0

    assert waiting == {WORK: 12.0}
    assert await embedder.record_autoscaling_stats() == {WORK: 0.0}


async def test_an_embedder_whose_model_is_stuck_is_not_well() -> None:
    embedder = EmbedderDeployment(Settings(embedding=HashingSettings()), "cpu", HashingModel().identity)
    clock = embedder._work._clock = Clock(embedder._work._clock())

    with embedder._work.counted(1):
        await embedder.check_health()
        clock.now += 601.0
        with pytest.raises(Unavailable, match="embedded nothing for 601 s"):
            await embedder.check_health()
    await embedder.check_health()


async def test_a_searcher_that_answers_no_query_is_not_well() -> None:
    searcher = object.__new__(SearcherDeployment)
    clock = Clock()
    searcher._work = Work(clock)

    with searcher._work.counted(1):
        await searcher.check_health()
        clock.now += 61.0
        with pytest.raises(Unavailable, match="no query was answered for 61 s"):
            await searcher.check_health()
    await searcher.check_health()


class SlowStore:
    """Takes changes over, each batch in a while."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    async def apply(self, changes: Sequence[int]) -> None:
        self.batches.append(list(changes))
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("searches", [0, 1])
async def test_changes_are_taken_over_in_parts_between_which_searches_go_first(searches: int) -> None:
    searcher: Any = object.__new__(SearcherDeployment)
    searcher._work, store = Work(), SlowStore()
    searcher._parts = SimpleNamespace(projections={"notes": store})
    changes = list(range(2 * CHANGES_AT_ONCE + 1))
    loop = asyncio.get_running_loop()

    with searcher._work.counted(searches):
        began = loop.time()
        await searcher.apply("notes", changes)
        seconds = loop.time() - began

    assert [len(batch) for batch in store.batches] == [CHANGES_AT_ONCE, CHANGES_AT_ONCE, 1]
    assert [change for batch in store.batches for change in batch] == changes
    assert seconds >= 3 * 0.02 * (1 + searches * SEARCHES_FIRST)
