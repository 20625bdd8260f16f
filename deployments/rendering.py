"""Write answers as JSON: an answer is kept as it is sent."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from lamina.api.graph import NodeOut, StepOut, TraverseOut
from lamina.api.search import ContextOut, SearchOut
from lamina.caching.answer_cache import RenderedAnswer
from lamina.caching.cached_search import CacheableRequest
from lamina.core.links import FollowedLink
from lamina.core.queries import Answer, FusedHit, SearchRequest, first_expiry
from lamina.core.tiers import Tier
from lamina.search.context import ContextAnswer, ContextRequest
from lamina.search.graph_explorer import Traversal, TraversalRequest


def render_search(request: CacheableRequest[SearchRequest], answer: Answer) -> RenderedAnswer:
    """Write a fused answer."""
    shown = replace(answer, degraded={**answer.degraded, **request.degraded})
    return RenderedAnswer(
        body=_json(SearchOut.from_answer(shown, explain=request.explain, time=request.request.time)),
        notes=_own_notes(answer.hits),
        is_empty=not answer.hits,
        is_whole=answer.is_whole,
        graph=answer.graph,
        expires_at=first_expiry(hit.memory.expires_at for hit in answer.hits),
    )


def render_context(request: CacheableRequest[ContextRequest], answer: ContextAnswer) -> RenderedAnswer:
    """Write a context block."""
    block, degraded = answer.block, [*answer.degraded, *request.degraded]
    tokens, time = request.request.budget_tokens, request.request.search.time
    return RenderedAnswer(
        body=_json(ContextOut.from_block(block, tokens, degraded, explain=request.explain, time=time)),
        notes=_own_notes(block.used),
        is_empty=not block.text,
        is_whole=answer.is_whole,
        graph=answer.graph,
        expires_at=answer.expires_at,
    )


def render_traversal(_: CacheableRequest[TraversalRequest], found: Traversal) -> RenderedAnswer:
    """Write the nodes that were reached."""
    nodes = []
    for node in found.nodes:
        shown = found.shown[node.id]
        path = [step_out(link) for link in node.path]
        tier = shown.tier.name.lower()
        nodes.append(NodeOut(id=node.id, tier=tier, content=shown.content, score=node.score, path=path))
    out = TraverseOut(nodes=nodes, visited=found.visited, is_capped=found.is_capped)
    return RenderedAnswer(_json(out), expires_at=found.expires_at)


def step_out(link: FollowedLink) -> StepOut:
    """Return a link as the API shows it."""
    direction = "out" if link.is_forward else "in"
    return StepOut(kind=link.kind, direction=direction, strength=link.strength, id=link.end)


def _json(out: SearchOut | ContextOut | TraverseOut) -> bytes:
    return out.model_dump_json(exclude={"cache"}).encode()


def _own_notes(hits: Sequence[FusedHit]) -> tuple[UUID, ...]:
    """Return the notes among the hits that are the workspace's own: only those are counted."""
    own = (hit.memory for hit in hits if hit.memory.workspace is None)
    return tuple(memory.id for memory in own if memory.tier is Tier.NOTES)
