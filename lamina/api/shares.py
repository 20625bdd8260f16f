"""Shares between workspaces: requests and answers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Self
from uuid import UUID

from pydantic import Field

from lamina.api.fields import ABSENT, AtMost, Id, Moment, Output, PageOut, Strict, Tags
from lamina.core.scope import DEFAULT_NAMESPACE, DEFAULT_WORKSPACE
from lamina.core.sharing import MAX_LABEL_CHARS, Share, ShareState
from lamina.core.tiers import Segment


class ShareIn(Strict):
    """A share to make."""

    workspace: Id = Field(DEFAULT_WORKSPACE, description="Project whose memories are shared.")
    namespace: Id = Field(DEFAULT_NAMESPACE, description="Subdivision of it that is shared.")
    to_workspace: Id = Field(description="Project of the same tenant that may search them.")
    segment: Segment = Field(description="notes, graph, procedures or documents.")
    tags: Tags = Field(default_factory=list, description="Only memories with all of these tags.")
    expires_at: Moment = Field(
        ABSENT, description="When it ends, ISO 8601; without an offset it is UTC. Default: never."
    )
    label: Annotated[str, AtMost(MAX_LABEL_CHARS)] = Field("", description="What it is for.")

    def share(self, id_: UUID, now: datetime) -> Share:
        """Return the share to store."""
        return Share(
            id=id_,
            workspace=self.workspace,
            namespace=self.namespace,
            to_workspace=self.to_workspace,
            segment=self.segment,
            tags=tuple(self.tags),
            label=self.label,
            created_at=now,
            expires_at=self.expires_at,
        )


class ShareOut(Output):
    """A share."""

    id: UUID = Field(description="Id of the share.")
    workspace: str = Field(description="Project whose memories are shared.")
    namespace: str = Field(description="Subdivision of it.")
    to_workspace: str = Field(description="Project that may search them.")
    segment: Segment = Field(description="What is shared.")
    tags: list[str] = Field(description="Tags that a memory must have to be shared.")
    label: str = Field(description="What it is for.")
    state: ShareState = Field(description="active, expired or revoked.")
    created_at: datetime = Field(description="When it was made, UTC.")
    expires_at: datetime | None = Field(description="When it ends, UTC.")
    revoked_at: datetime | None = Field(description="When it was revoked, UTC.")

    @classmethod
    def from_share(cls, share: Share, now: datetime) -> Self:
        """Show a share in its state at a time."""
        return cls.from_attributes(share, state=share.state(now))


class SharesOut(PageOut):
    """A page of a workspace's shares in both directions."""

    given: list[ShareOut] = Field(description="What the workspace lets others search, the latest first.")
    received: list[ShareOut] = Field(description="What others let the workspace search, the latest first.")

    @classmethod
    def from_shares(cls, shares: Sequence[Share], workspace: str, now: datetime, next_cursor: str | None) -> Self:
        """Show shares by their direction, as the workspace sees them."""
        given = [ShareOut.from_share(share, now) for share in shares if share.workspace == workspace]
        received = [ShareOut.from_share(share, now) for share in shares if share.workspace != workspace]
        return cls(given=given, received=received, next_cursor=next_cursor)
