"""Stamps: write counts of everything that a cached answer depends on; equal stamps prove it fresh."""

from dataclasses import dataclass, field
from datetime import datetime

from lamina.core.memory_profiles import MemoryProfile
from lamina.core.sharing import Share, ShareState
from lamina.core.tiers import Tier
from lamina.core.workspace_settings import UNSET, WorkspaceSettings


@dataclass(frozen=True, slots=True)
class SharedEpoch:
    """A share, and how often its memories were written."""

    share: Share
    epoch: int


@dataclass(frozen=True, slots=True)
class Remembered:
    """The remembered part of a question: nothing, or its embedding.

    Args:
        embedding: Float32 bytes.
        used_at: When it was last used, in UTC, to the day.
    """

    embedding: bytes | None = None
    used_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Stamp:
    """The state of everything that an answer in a scope depends on, read in one moment.

    An answer that was computed after its stamp was read is at least as new as the stamp; whoever
    reads an equal stamp later may be given that answer.

    Args:
        namespace: Epoch of the scope's namespace; 0 if it was never written.
        workspace: Epoch of its workspace's shares and memory profiles.
        shared: What other workspaces share with it, revoked shares excepted, in the order of their ids.
        profile: The agent's memory profile, if it has one.
        settings: Those of the workspace, as of its epoch.
        user_profile: Version and time of the user's profile of the whole tenant; ``None`` where there is none.
        is_settled: Whether every projection has taken over what the epochs stand for. While one has
            not, an answer may lack it and must not be kept.
        empty: Tiers that hold nothing in the scope. A write that ends this raises the epoch.
        question: What is kept of the question for which the stamp was read; ``None`` if that was not looked up. It
            proves nothing.
    """

    namespace: int
    workspace: int
    shared: tuple[SharedEpoch, ...] = ()
    profile: MemoryProfile | None = None
    settings: WorkspaceSettings = UNSET
    user_profile: str | None = None
    is_settled: bool = False
    empty: frozenset[Tier] = frozenset()
    question: Remembered | None = field(default=None, compare=False)

    def shares(self) -> tuple[Share, ...]:
        """Return the shares into the scope's workspace."""
        return tuple(item.share for item in self.shared)

    def own(self) -> tuple[int, int]:
        """Return the part that an answer from the own workspace alone depends on."""
        return self.namespace, self.workspace

    def whole(self, now: datetime) -> tuple[object, ...]:
        """Return all parts as of a moment, without shares that have expired by then."""
        active = (item for item in self.shared if item.share.state(now) is ShareState.ACTIVE)
        beside = () if self.user_profile is None else (self.user_profile,)
        return *self.own(), *((str(item.share.id), item.epoch) for item in active), *beside
