"""Where the cache shards are: named actors that outlive who made them, on a Ray of this test alone."""

import tempfile
from pathlib import Path

from tests.support.forks import Fork
from tests.support.on_ray import use_shards
from tests.support.service import ROOT, environment


def test_replicas_find_the_same_actors_and_other_editions_end() -> None:
    with tempfile.TemporaryDirectory(prefix="lm-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        variables = environment(folder) | {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(ROOT)}
        done = Fork(use_shards, [str(folder / "ray")], variables, folder).wait(240)

    assert done.returncode == 0, done.stderr[-3000:]
