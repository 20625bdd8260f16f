"""Lay out the context block of a prompt, within its budget of tokens."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from uuid import UUID

from lamina.core.memories import Profile
from lamina.core.queries import FusedHit
from lamina.policies.ranking.block_layout import as_content
from lamina.text.words import estimated_tokens

_SEPARATOR = "\n\n"
_JOINT = estimated_tokens(_SEPARATOR)
NO_HINTS: Mapping[UUID, tuple[str, ...]] = {}


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """A block ready for a prompt.

    Args:
        text: The profile in full, then the memories, best first, then the suffix.
        tokens: Estimated tokens of ``text``; at most the budget.
        used: The hits whose memory is in it.
        omitted: The parts that the budget left out: ``suffix``, ``profile``, or the number of memories as
            ``memories: 3``.
    """

    text: str
    tokens: int
    used: tuple[FusedHit, ...]
    omitted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Extras:
    """The parts of a block beside memories.

    Args:
        profile: Of the user, shown in full before everything else.
        suffix: Text that an agent wants at the end.
        hints: Facts next to a memory in the graph, by its id.
    """

    profile: Profile | None = None
    suffix: str = ""
    hints: Mapping[UUID, Sequence[str]] = field(default_factory=lambda: NO_HINTS)


def build_context(hits: Sequence[FusedHit], extras: Extras, *, budget_tokens: int) -> ContextBlock:
    """Lay out the profile, as many of the best hits as the budget holds, and the suffix.

    The suffix has the first claim on the budget, then the profile, both in full or not at all.
    Memories are taken whole and in order; the first that does not fit ends the block, so that a
    worse memory never displaces a better one. Hints take the rest, the best memory's first.
    """
    left = budget_tokens + _JOINT
    suffix, left = _take_whole(extras.suffix.strip(), left)
    profile, left = _take_whole(_profile_section(extras.profile), left)
    costs = list(accumulate(_cost(format_memory(hit)) for hit in hits))
    used = tuple(hits[: sum(1 for cost in costs if cost <= left)])
    memories = _with_hints(used, extras.hints, left - (costs[len(used) - 1] if used else 0))
    text = _SEPARATOR.join(section for section in (profile, *memories, suffix) if section)
    missing = (*_left_out(extras, suffix, profile), *([f"memories: {len(hits) - len(used)}"] * (len(used) < len(hits))))
    return ContextBlock(text, estimated_tokens(text), used, missing)


def format_memory(hit: FusedHit, related: str = "") -> str:
    """Return one memory as the block shows it: kind and date, excerpt, hints if any, confidence."""
    memory = hit.memory
    origin = memory.name or memory.title
    said_by = f"{origin}: " if origin and not memory.content.startswith(f"{origin}: ") else ""
    lines = (
        f"[Memory: {memory.kind} | {memory.occurred_at.date().isoformat()}]",
        as_content(f"{said_by}{memory.content}"),
        related,
        f"confidence: {memory.confidence:.2f}",
    )
    return "\n".join(line for line in lines if line)


def _cost(section: str) -> int:
    """Return the tokens of a section and of a separator."""
    return estimated_tokens(section) + _JOINT


def _take_whole(section: str, left: int) -> tuple[str, int]:
    """Return the section and the tokens left after it, or no section if it does not fit."""
    if not section or _cost(section) > left:
        return "", left
    return section, left - _cost(section)


def _with_hints(used: Sequence[FusedHit], hints: Mapping[UUID, Sequence[str]], left: int) -> Iterator[str]:
    for hit in used:
        plain = format_memory(hit)
        facts = "; ".join(" ".join(hint.split()) for hint in hints.get(hit.memory.id, ()))
        hinted = format_memory(hit, f"related: {facts}" if facts else "")
        more = estimated_tokens(hinted) - estimated_tokens(plain)
        yield hinted if more <= left else plain
        left -= more if more <= left else 0


def _profile_section(profile: Profile | None) -> str:
    if profile is None or not profile.document:
        return ""
    return f"[Profile: {profile.user}]\n{json.dumps(profile.document, ensure_ascii=False, sort_keys=True)}"


def _left_out(extras: Extras, suffix: str, profile: str) -> Iterator[str]:
    if extras.suffix.strip() and not suffix:
        yield "suffix"
    if _profile_section(extras.profile) and not profile:
        yield "profile"
