"""Lay out the context block of a prompt, within its budget of tokens."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import accumulate
from typing import Any
from uuid import UUID

from lamina.core.files import ShownFile
from lamina.core.memories import Profile, Role, joint_name
from lamina.core.profiles import INSTRUCTIONS
from lamina.core.queries import FusedHit, Memory
from lamina.core.tiers import Tier
from lamina.policies.ranking.block_layout import as_content, as_json, as_label, as_name
from lamina.text.words import estimated_tokens

_SEPARATOR = "\n\n"
UNVERIFIED = "unverified"
FILE_KIND = "file"
NO_HINTS: Mapping[UUID, tuple[str, ...]] = {}


class BlockFormat(StrEnum):
    """How a block is written."""

    TEXT = "text"
    MESSAGES = "messages"


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """A block ready for a prompt.

    Args:
        text: The profile in full, then the memories, best first, then the suffix; for messages, their JSON.
        tokens: Estimated tokens of ``text``; at most the budget.
        used: The hits whose memory is in it.
        omitted: The parts that the budget left out: ``suffix``, ``profile``, or the number of files and memories as
            ``files: 1`` and ``memories: 3``.
        form: How it is written.
    """

    text: str
    tokens: int
    used: tuple[FusedHit, ...]
    omitted: tuple[str, ...]
    form: BlockFormat = BlockFormat.TEXT


@dataclass(frozen=True, slots=True)
class Extras:
    """The parts of a block beside memories.

    Args:
        profile: Of the user, shown in full before everything else.
        suffix: Text that an agent wants at the end.
        hints: Facts next to a memory in the graph, by its id.
        agent: Whose suffix it is.
        is_suffix_verified: Whether that agent itself, or an admin, wrote it.
        files: The files that every block of the workspace shows, behind the profile.
        files_tokens: Most tokens that these take.
    """

    profile: Profile | None = None
    suffix: str = ""
    hints: Mapping[UUID, Sequence[str]] = field(default_factory=lambda: NO_HINTS)
    agent: str = ""
    is_suffix_verified: bool = False
    files: tuple[ShownFile, ...] = ()
    files_tokens: int = 0


def build_context(
    hits: Sequence[FusedHit], extras: Extras, *, budget_tokens: int, form: BlockFormat = BlockFormat.TEXT
) -> ContextBlock:
    """Lay out the profile, the files that every block shows, as many of the best hits as fit, and the suffix.

    The suffix has the first claim on the budget, then the profile, both in full or not at all; of a profile that does
    not fit, the standing instructions still stand there. Then the files, each in full or not at all; a hit in one that
    stands there is left out.
    Memories are taken whole and in order; the first that does not fit ends the block, so that a
    worse memory never displaces a better one. Hints take the rest, the best memory's first.
    """
    layout = _MESSAGES if form is BlockFormat.MESSAGES else _TEXT
    wanted_suffix, wanted_profile = layout.suffix(extras), layout.profile(extras.profile)
    left = budget_tokens - layout.frame_tokens + layout.joint_tokens
    suffix, left = _take_whole(wanted_suffix, left, layout)
    profile, left = _take_whole(wanted_profile, left, layout)
    is_whole_profile = bool(profile)
    if not profile:
        profile, left = _take_whole(layout.profile(_instructions_of(extras.profile)), left, layout)
    files, left = _take_files(extras, left, layout)
    shown = {file.id for file, section in files if section}
    hits = [hit for hit in hits if hit.memory.document not in shown]
    costs = list(accumulate(_cost(layout.memory(hit, ()), layout) for hit in hits))
    used = tuple(hits[: sum(1 for cost in costs if cost <= left)])
    memories = _with_hints(used, extras.hints, left - (costs[len(used) - 1] if used else 0), layout)
    text = layout.joined([section for section in (profile, *(part for _, part in files), *memories, suffix) if section])
    left_out = {
        "suffix": wanted_suffix and not suffix,
        "profile": wanted_profile and not is_whole_profile,
        f"files: {len(files) - len(shown)}": len(shown) < len(files),
        f"memories: {len(hits) - len(used)}": len(used) < len(hits),
    }
    omitted = tuple(name for name, is_missing in left_out.items() if is_missing)
    return ContextBlock(text, estimated_tokens(text), used, omitted, form)


def _instructions_of(profile: Profile | None) -> Profile | None:
    """Return a profile with its standing instructions alone."""
    if profile is None or INSTRUCTIONS not in profile.document:
        return None
    return replace(profile, document={INSTRUCTIONS: profile.document[INSTRUCTIONS]})


def _take_files(extras: Extras, left: int, layout: "_Layout") -> tuple[list[tuple[ShownFile, str]], int]:
    """Return each file with its section, empty where it does not fit, and the tokens left after them."""
    sections: list[tuple[ShownFile, str]] = []
    room = min(left, extras.files_tokens)
    for file in extras.files:
        section, rest = "", room
        # Its own text tells most cheaply that a file is too long; where no room is left, none is looked at.
        if file.content is not None and room > 0 and estimated_tokens(file.content) <= room:
            section, rest = _take_whole(layout.file(file, file.content), room, layout)
        sections.append((file, section))
        left, room = left - (room - rest), rest
    return sections, left


def format_memory(hit: FusedHit, hints: Sequence[str] = ()) -> str:
    """Return one memory as the block shows it: a header with its origin, excerpt, hints if any, confidence."""
    memory = hit.memory
    named = memory.name or memory.title
    lines = (
        _header("Memory", memory.kind, memory.occurred_at.date().isoformat(), *_origin(memory)),
        as_content(memory.content.removeprefix(f"{named}: ") if named else memory.content),
        f"later: {'; '.join(map(as_label, memory.later))}" if memory.later else "",
        f"related: {'; '.join(map(as_label, hints))}" if hints else "",
        f"confidence: {memory.confidence:.2f}",
    )
    return "\n".join(line for line in lines if line)


def _header(part: str, name: str, *origin: str) -> str:
    return f"[{part}: {' | '.join((as_name(name), *origin))}]"


def _origin(memory: Memory) -> Iterator[str]:
    """Yield who said a memory, of which document and agent it is, and of which other workspace."""
    role = _role(memory)
    if memory.name:
        yield f"{role or 'name'}: {as_name(memory.name)}"
    elif role:
        yield role
    yield from (f"speaker: {as_name(speaker)}" for speaker in memory.speakers)
    lines = _lines(memory)
    places = {
        "document": memory.title if lines is None else f"{memory.title}:{lines}",
        "agent": memory.agent,
        "workspace": memory.workspace,
        "namespace": memory.namespace,
    }
    yield from (f"{field_name}: {as_name(value)}" for field_name, value in places.items() if value)


def _lines(memory: Memory) -> str | None:
    """Return the lines of a file at which a passage of it stands, as in ``3-9``."""
    if memory.kind != FILE_KIND:
        return None
    return f"{memory.metadata.get('line_start')}-{memory.metadata.get('line_end')}"


def _role(memory: Memory) -> str | None:
    """Return who speaks in a message: its source is the role."""
    return memory.source if memory.tier is Tier.SESSIONS and memory.source in set(Role) else None


class _TextLayout:
    """Sections of plain text, each below a header."""

    frame_tokens, joint_tokens = 0, estimated_tokens(_SEPARATOR)

    def suffix(self, extras: Extras) -> str:
        if not extras.suffix.strip():
            return ""
        header = _header("Suffix", extras.agent, *(() if extras.is_suffix_verified else (UNVERIFIED,)))
        return f"{header}\n{as_content(extras.suffix.strip())}"

    def profile(self, profile: Profile | None) -> str:
        if profile is None or not profile.document:
            return ""
        header = _header("Profile", profile.user, *(() if profile.is_verified else (UNVERIFIED,)))
        return f"{header}\n{as_json(profile.document, sort_keys=True)}"

    def file(self, file: ShownFile, content: str) -> str:
        owner = () if file.user is None else (f"user: {as_name(file.user)}",)
        return f"{_header('File', file.path, *owner)}\n{as_content(content)}"

    def memory(self, hit: FusedHit, hints: Sequence[str]) -> str:
        return format_memory(hit, hints)

    def joined(self, sections: Sequence[str]) -> str:
        return _SEPARATOR.join(sections)


class _MessagesLayout:
    """A JSON list of objects: text stays within the quotes of its string, whatever it is."""

    frame_tokens, joint_tokens = estimated_tokens("[]"), estimated_tokens(", ")

    def suffix(self, extras: Extras) -> str:
        if not (text := extras.suffix.strip()):
            return ""
        unverified = {} if extras.is_suffix_verified else {UNVERIFIED: True}
        return as_json(_message("suffix", "memory_profile", extras.agent or None, text) | unverified)

    def profile(self, profile: Profile | None) -> str:
        if profile is None or not profile.document:
            return ""
        unverified = {} if profile.is_verified else {UNVERIFIED: True}
        text = as_json(profile.document, sort_keys=True)
        return as_json(_message("profile", "profile", profile.user, text) | unverified)

    def file(self, file: ShownFile, content: str) -> str:
        owner = {} if file.user is None else {"user": file.user}
        return as_json(_message("file", "files", file.path, content) | owner)

    def memory(self, hit: FusedHit, hints: Sequence[str]) -> str:
        memory = hit.memory
        facts = {
            "role": _role(memory),
            "name": memory.name or joint_name(memory.speakers),
            "title": memory.title,
            "lines": _lines(memory),
            "agent": memory.agent,
            "workspace": memory.workspace,
            "namespace": memory.namespace,
            "occurred_at": memory.occurred_at.isoformat(),
            "confidence": round(memory.confidence, 2),
            "later": list(memory.later) or None,
            "related": list(hints) or None,
        }
        shown = {name: value for name, value in facts.items() if value is not None}
        return as_json(_message(memory.kind, memory.tier.name.lower(), str(memory.id), memory.content) | shown)

    def joined(self, sections: Sequence[str]) -> str:
        return f"[{', '.join(sections)}]" if sections else ""


_TEXT, _MESSAGES = _TextLayout(), _MessagesLayout()
_Layout = _TextLayout | _MessagesLayout


def _message(kind: str, source: str, id_: str | None, text: str) -> dict[str, Any]:
    return {"kind": kind, "source": source, "id": id_, "text": text}


def _cost(section: str, layout: _Layout) -> int:
    """Return the tokens of a section and of a separator."""
    return estimated_tokens(section) + layout.joint_tokens


def _take_whole(section: str, left: int, layout: _Layout) -> tuple[str, int]:
    """Return the section and the tokens left after it, or no section if it does not fit."""
    if not section or _cost(section, layout) > left:
        return "", left
    return section, left - _cost(section, layout)


def _with_hints(
    used: Sequence[FusedHit], hints: Mapping[UUID, Sequence[str]], left: int, layout: _Layout
) -> Iterator[str]:
    for hit in used:
        plain, hinted = layout.memory(hit, ()), layout.memory(hit, hints.get(hit.memory.id, ()))
        more = estimated_tokens(hinted) - estimated_tokens(plain)
        yield hinted if more <= left else plain
        left -= more if more <= left else 0
