"""What one shard keeps, for how long, and what it gives up."""

import pytest

from lamina.core.cache_layers import CacheEntry, CacheKey, Layer, RespondingAgents, ShardQuery, Space
from lamina.core.cache_stats import Holding, LayerCounts, ShardUpdate
from lamina.policies.caching.shard import (
    MAX_AGENTS,
    RECENT_S,
    LayerLimits,
    Shard,
    ShardLimits,
    SwarmLimits,
    add_up_stats,
)

HERE: Space = ("acme", "atlas")
THERE: Space = ("acme", "other")
LIMITS = ShardLimits(
    {
        Layer.AGENTS: LayerLimits(10, ttl_s=300),
        Layer.TURN: LayerLimits(3, ttl_s=300, max_bytes=1000),
        Layer.NEGATIVE: LayerLimits(3, ttl_s=30),
        Layer.GRAPH: LayerLimits(3, ttl_s=120),
        Layer.EMBEDDINGS: LayerLimits(3, ttl_s=1000),
    },
    SwarmLimits(LayerLimits(2, ttl_s=300, max_bytes=100), swarms=2, max_bytes=150),
)


def key(layer: Layer, name: str = "a", swarm: str | None = None) -> CacheKey:
    return CacheKey(layer, name.encode(), swarm)


def kept(*entries: tuple[Space, CacheKey, str], shard: Shard | None = None, now: float = 0.0, size: int = 10) -> Shard:
    shard = shard or Shard(LIMITS)
    shard.keep(ShardUpdate(entries=[CacheEntry(space, key, value, size) for space, key, value in entries]), now)
    return shard


def test_the_outermost_whole_answer_is_found_first_and_is_enough() -> None:
    turn, swarm, walk = key(Layer.TURN), key(Layer.SWARM, swarm="s"), key(Layer.GRAPH)
    shard = kept((HERE, swarm, "shared"), (HERE, walk, "walk"))
    probe = ShardQuery(HERE, (turn, swarm), (walk,))

    assert shard.find(probe, 1.0).answer == (swarm, "shared")
    assert shard.find(probe, 1.0).pieces == {}
    kept((HERE, turn, "exact"), shard=shard)
    assert shard.find(probe, 1.0).answer == (turn, "exact")


def test_without_a_whole_answer_the_pieces_are_found() -> None:
    walk, embedding = key(Layer.GRAPH), key(Layer.EMBEDDINGS)
    shard = kept((HERE, walk, "walk"))

    found = shard.find(ShardQuery(HERE, (key(Layer.TURN),), (walk, embedding)), 1.0)

    assert found.answer is None
    assert found.pieces == {walk: "walk"}


@pytest.mark.parametrize(
    ("layer", "ttl_s"), [(Layer.TURN, 300), (Layer.NEGATIVE, 30), (Layer.GRAPH, 120), (Layer.SWARM, 300)]
)
def test_each_layer_has_its_own_time_to_live(layer: Layer, ttl_s: float) -> None:
    mine = key(layer, swarm="s" if layer is Layer.SWARM else None)
    shard = kept((HERE, mine, "x"))

    assert shard.find(ShardQuery(HERE, (mine,)), ttl_s - 0.1).answer == (mine, "x")
    assert shard.find(ShardQuery(HERE, (mine,)), ttl_s).answer is None


def test_workspaces_layers_and_swarms_share_nothing() -> None:
    shard = kept((HERE, key(Layer.TURN), "here"), (HERE, key(Layer.SWARM, swarm="s"), "s"))

    for space, other in (
        (THERE, key(Layer.TURN)),
        (("other", "atlas"), key(Layer.TURN)),
        (HERE, key(Layer.NEGATIVE)),
        (HERE, key(Layer.SWARM, swarm="t")),
    ):
        assert shard.find(ShardQuery(space, (other,)), 1.0).answer is None


def test_a_swarm_keeps_its_most_recent_answers_and_no_other_swarms_business() -> None:
    keys = [key(Layer.SWARM, name, "s") for name in "abc"]
    shard = kept((HERE, key(Layer.SWARM, "a", "t"), "t"), *((HERE, each, each.digest.decode()) for each in keys))

    found = [shard.find(ShardQuery(HERE, (each,)), 1.0).answer for each in keys]

    assert found == [None, (keys[1], "b"), (keys[2], "c")]
    assert shard.find(ShardQuery(HERE, (key(Layer.SWARM, "a", "t"),)), 1.0).answer is not None
    assert shard.stats().holdings[Layer.SWARM] == Holding(3, 30, 1)


def test_the_least_recently_used_swarm_goes_when_there_are_too_many() -> None:
    first, second, third = (key(Layer.SWARM, swarm=name) for name in "stu")
    shard = kept((HERE, first, "1"), (HERE, second, "2"))
    shard.find(ShardQuery(HERE, (first,)), 1.0)
    kept((HERE, third, "3"), shard=shard)

    assert [shard.find(ShardQuery(HERE, (each,)), 1.0).answer is None for each in (first, second, third)] == [
        False,
        True,
        False,
    ]


def test_all_swarms_together_stay_within_their_bytes() -> None:
    shard = kept((HERE, key(Layer.SWARM, swarm="s"), "1"), size=80)
    kept((HERE, key(Layer.SWARM, swarm="t"), "2"), shard=shard, size=90)

    assert shard.stats().holdings[Layer.SWARM] == Holding(1, 90, 1)


def test_expired_swarms_are_forgotten_with_their_bytes() -> None:
    shard = kept((HERE, key(Layer.SWARM, swarm="s"), "1"), (HERE, key(Layer.TURN), "2"))

    shard.expire(300.0)

    assert shard.stats().holdings[Layer.SWARM] == Holding(0, 0, 0)
    assert shard.stats().holdings[Layer.TURN] == Holding(0, 0, 0)


def has(shard: Shard, agent: str, now: float, space: Space = HERE) -> bool | None:
    return shard.find(ShardQuery(space, agent=agent), now).has_responses


def told(*agents: str, is_all: bool = False) -> ShardUpdate:
    return ShardUpdate(agents=[RespondingAgents(HERE, agents, is_all)])


def test_the_agent_filter_says_no_only_where_it_was_told_everybody() -> None:
    shard = Shard(LIMITS)
    assert has(shard, "ann", 0.0) is None

    shard.keep(told("ann"), 0.0)
    assert (has(shard, "ann", 0.0), has(shard, "bob", 0.0)) == (True, None)

    shard.keep(told("ann", is_all=True), 0.0)
    assert (has(shard, "ann", 1.0), has(shard, "bob", 1.0), has(shard, "bob", 1.0, THERE)) == (True, False, None)


def test_a_complete_list_counts_for_its_time_and_no_later_news_prolongs_it() -> None:
    shard = Shard(LIMITS)
    shard.keep(told(is_all=True), 0.0)
    shard.keep(told("ann"), 200.0)

    assert has(shard, "bob", 299.0) is False
    assert has(shard, "bob", 300.0) is None
    assert has(shard, "ann", 300.0) is True


def test_an_agent_told_of_while_the_list_was_read_stays_on_it_and_old_ones_leave() -> None:
    shard = Shard(LIMITS)
    shard.keep(told("old"), 0.0)
    shard.keep(told("just now"), RECENT_S)
    shard.keep(told("ann", is_all=True), RECENT_S + 1)

    assert [has(shard, agent, RECENT_S + 1) for agent in ("old", "just now", "ann")] == [False, True, True]


def test_an_agent_whose_last_response_has_ended_leaves_the_list_unless_it_was_added_lately() -> None:
    ended = ShardUpdate(agents=[RespondingAgents(HERE, ("ann", "bob"), has_ended=True)])
    shard = Shard(LIMITS)
    shard.keep(told("ann", "eve", is_all=True), 0.0)
    shard.keep(told("bob"), 5.0)

    shard.keep(ended, RECENT_S + 1)

    assert [has(shard, agent, RECENT_S + 1) for agent in ("ann", "bob", "eve")] == [False, True, True]


def test_the_end_of_a_response_completes_no_list() -> None:
    shard = Shard(LIMITS)

    shard.keep(ShardUpdate(agents=[RespondingAgents(HERE, ("ann",), has_ended=True)]), 0.0)

    assert has(shard, "ann", 1.0) is None


def test_too_many_agents_are_not_remembered_as_complete() -> None:
    shard = Shard(LIMITS)

    shard.keep(told(*(str(number) for number in range(MAX_AGENTS + 1)), is_all=True), 0.0)

    assert has(shard, "0", 1.0) is True
    assert has(shard, "nobody", 1.0) is None


def test_a_purge_takes_the_named_layers_of_a_workspace_or_a_tenant() -> None:
    entries = [(space, key(layer, swarm="s"), "x") for space in (HERE, THERE) for layer in (Layer.GRAPH, Layer.SWARM)]
    shard = kept(*entries)

    assert shard.purge("acme", "atlas", (Layer.GRAPH,)) == 1
    assert shard.purge("acme", None, (Layer.GRAPH, Layer.SWARM)) == 3
    assert shard.purge("other", None, tuple(Layer)) == 0


def test_a_purged_agent_filter_knows_nothing_any_more() -> None:
    shard = Shard(LIMITS)
    shard.keep(told("ann", is_all=True), 0.0)

    shard.purge("acme", "atlas", (Layer.AGENTS,))

    assert (has(shard, "ann", 1.0), has(shard, "bob", 1.0)) == (None, None)


def test_counts_of_replicas_and_shards_add_up() -> None:
    one, other = Shard(LIMITS), kept((HERE, key(Layer.TURN), "x"))
    one.keep(ShardUpdate(counts={Layer.TURN: LayerCounts(hits=2)}), 0.0)
    one.keep(ShardUpdate(counts={Layer.TURN: LayerCounts(hits=1, misses=4)}), 0.0)
    other.keep(ShardUpdate(counts={Layer.TURN: LayerCounts(errors=1)}), 0.0)

    both = add_up_stats([one.stats(), other.stats()])

    assert both.counts == {Layer.TURN: LayerCounts(hits=3, misses=4, errors=1)}
    assert both.holdings[Layer.TURN] == Holding(1, 10, 0)


def test_a_layer_without_limits_keeps_nothing() -> None:
    shard = kept((HERE, key(Layer.TURN), "x"), shard=Shard(ShardLimits({})))

    assert shard.find(ShardQuery(HERE, (key(Layer.TURN),), agent="ann"), 0.0).answer is None
    assert shard.stats().holdings == {}
