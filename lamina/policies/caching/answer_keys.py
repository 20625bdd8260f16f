"""Keys of answers: everything that an answer, or a part of it, depends on."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from lamina.aio.circuit_breaker import BreakerPolicy
from lamina.core.cache_layers import CacheKey, Layer, Space
from lamina.core.scope import Scope
from lamina.core.stamps import Stamp
from lamina.policies.caching.cache_keys import digest, embedding_key


@dataclass(frozen=True, slots=True)
class AnswerPolicy:
    """The settings that answers depend on beside requests and stamps, and how long they live.

    Args:
        fingerprint: Of the release, the configuration and the database.
        generation: The active generation of vectors.
        ttl_s: Seconds that whole answers live, by layer.
        front_entries: Most answers of the replica's own copies; 0 keeps none.
        front_bytes: Most bytes of them.
        breaker: When an answer is computed without a stamp, and not kept.
    """

    fingerprint: bytes
    generation: int
    ttl_s: Mapping[Layer, float]
    front_entries: int
    front_bytes: int
    breaker: BreakerPolicy


@dataclass(frozen=True, slots=True)
class RequestIdentity:
    """The fields that distinguish a request from others.

    Args:
        kind: The call; two kinds never share an answer.
        scope: Whose request it is.
        sent: All that was sent beside the scope, as JSON.
        text: The text that is embedded for it, if one is.
        walk: All that the graph's part of the answer depends on; ``None`` if the graph is not searched.
    """

    kind: str
    scope: Scope
    sent: Mapping[str, Any]
    text: str = ""
    walk: str | None = None


@dataclass(frozen=True, slots=True)
class AnswerKeys:
    """Keys of a request's answer and of its pieces, in the workspace's shard."""

    space: Space
    turn: CacheKey
    negative: CacheKey
    swarm: CacheKey | None
    graph: CacheKey | None
    embedding: CacheKey

    def answers(self) -> tuple[CacheKey, ...]:
        """Return the keys of whole answers, the outermost layer first."""
        return (self.turn, self.negative) if self.swarm is None else (self.turn, self.negative, self.swarm)

    def pieces(self) -> tuple[CacheKey, ...]:
        """Return the keys of the graph's rankings and of the embedding."""
        return (self.embedding,) if self.graph is None else (self.graph, self.embedding)


def answer_keys(request: RequestIdentity, stamp: Stamp, policy: AnswerPolicy, now: datetime) -> AnswerKeys:
    """Return the keys of a request under a stamp.

    An exact answer belongs to everything that was sent. Agents of a swarm share it whatever their
    name, as long as the same memory profile holds for them. The graph's part depends on the own
    workspace alone.
    """
    ids = request.scope
    place = (ids.tenant, ids.workspace, ids.namespace)
    basis = (policy.fingerprint, policy.generation, request.kind, place, stamp.whole(now))
    # The swarm is part of its key, not of the digest.
    for_agent = digest(*basis, ids.user, ids.session, ids.agent, request.sent)
    for_profile = digest(*basis, ids.user, ids.session, _profile_parts(stamp, ids.agent), request.sent)
    return AnswerKeys(
        space=(ids.tenant, ids.workspace),
        turn=CacheKey(Layer.TURN, for_agent),
        negative=CacheKey(Layer.NEGATIVE, for_profile),
        swarm=None if ids.swarm is None else CacheKey(Layer.SWARM, for_profile, ids.swarm),
        graph=None if request.walk is None else walk_key("graph", ids, request.walk, stamp, policy),
        embedding=embedding_key(policy.generation, request.text),
    )


def walk_key(kind: str, scope: Scope, walk: object, stamp: Stamp, policy: AnswerPolicy) -> CacheKey:
    """Return the key of a walk through the own workspace's graph, for all scopes that see the same of it."""
    place = (scope.tenant, scope.workspace, scope.namespace, scope.user, scope.session)
    return CacheKey(Layer.GRAPH, digest(policy.fingerprint, policy.generation, kind, place, stamp.own(), walk))


def _profile_parts(stamp: Stamp, agent: str | None) -> tuple[object, ...]:
    """Return what an agent's answers depend on of its memory profile: all but when it was written.

    A block names the agent beside its suffix, so that no two agents share one that has a suffix.
    """
    profile = stamp.profile
    if profile is None:
        return ()
    parts = {**asdict(profile), "updated_at": None, "tiers": [tier.name for tier in profile.tiers]}
    return *parts.values(), agent if profile.prompt_suffix else None
