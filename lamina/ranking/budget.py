"""The context block: what a prompt receives, never more than its budget of tokens."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from lamina.memories import Profile
from lamina.queries import FusedHit
from lamina.text import estimated_tokens

_SEPARATOR = "\n\n"


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """A block ready for a prompt.

    Args:
        text: The profile in full, then the memories, best first.
        tokens: Estimated tokens of ``text``; at most the budget.
        used: The hits whose memory is in it.
        omitted: What the budget left out: ``profile``, or the number of memories as ``memories: 3``.
    """

    text: str
    tokens: int
    used: tuple[FusedHit, ...]
    omitted: tuple[str, ...]


def build_context(hits: Sequence[FusedHit], profile: Profile | None, *, budget_tokens: int) -> ContextBlock:
    """Lay out the profile and as many of the best hits as the budget holds.

    Memories are taken whole and in order; the first that does not fit ends the block, so that a
    worse memory never displaces a better one.
    """
    head = _profile_section(profile)
    fits = estimated_tokens(head) <= budget_tokens
    sections = [head] if head and fits else []
    entries = [format_memory(hit) for hit in hits]
    taken = _count_that_fits(sections, entries, budget_tokens)
    text = _SEPARATOR.join([*sections, *entries[:taken]])
    return ContextBlock(text, estimated_tokens(text), tuple(hits[:taken]), tuple(_omitted(fits, len(hits) - taken)))


def format_memory(hit: FusedHit) -> str:
    """Return one memory as the block shows it: tier and date, excerpt, confidence."""
    memory = hit.memory
    speaker = f"{memory.name}: " if memory.name and not memory.content.startswith(f"{memory.name}: ") else ""
    return "\n".join(
        (
            f"[Memory: {memory.kind} | {memory.occurred_at.date().isoformat()}]",
            f"{speaker}{memory.content}",
            f"confidence: {memory.confidence:.2f}",
        )
    )


def _profile_section(profile: Profile | None) -> str:
    if profile is None or not profile.document:
        return ""
    return f"[Profile: {profile.user}]\n{json.dumps(profile.document, ensure_ascii=False, sort_keys=True)}"


def _count_that_fits(sections: Sequence[str], entries: Sequence[str], budget_tokens: int) -> int:
    joint = estimated_tokens(_SEPARATOR)
    parts = [*sections, *entries]
    costs = (estimated_tokens(part) + (joint if place else 0) for place, part in enumerate(parts))
    totals = list(accumulate(costs))[len(sections) :]
    return sum(1 for total in totals if total <= budget_tokens)


def _omitted(profile_fits: bool, memories: int) -> Iterator[str]:
    if not profile_fits:
        yield "profile"
    if memories:
        yield f"memories: {memories}"
