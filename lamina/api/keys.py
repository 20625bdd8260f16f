"""API keys: requests and answers."""

from datetime import datetime
from typing import Annotated, Self
from uuid import UUID

from pydantic import Field

from lamina.api.fields import ABSENT, Id, Moment, Output, PageOut, Strict
from lamina.core.principals import MAX_BOUND_IDS, Bounds, KeyInfo, KeyRole, KeyState, Verb

Ids = Annotated[list[Id], Field(max_length=MAX_BOUND_IDS)]


class KeyIn(Strict):
    """A key to make; it opens the tenant of the key that makes it, or a part of it."""

    name: Id = Field(description="What it is for.")
    role: KeyRole = Field(description="The most that it may do: reader, writer or admin.")
    verbs: list[Verb] | None = Field(
        None,
        max_length=len(Verb),
        description="What it may do of its role: read, write, delete, erase, share, maintain, keys. Default: all.",
    )
    workspaces: Ids | None = Field(None, description="The projects that it is bound to. Default: none, and so all.")
    namespaces: Ids | None = Field(None, description="The subdivisions that it is bound to. Default: none, and so all.")
    users: Ids | None = Field(
        None, description="The persons that it is bound to; it reads what belongs to no person, too. Default: all."
    )
    agents: Ids | None = Field(None, description="The agents that it may act as. Default: all.")
    expires_at: Moment = Field(
        ABSENT, description="When it ends, ISO 8601; without an offset it is UTC. Default: never."
    )

    def bounds(self) -> Bounds:
        """Return the bounds of the key.

        Raises:
            InvalidInput: Naming an unclean id.
        """
        return Bounds.from_lists(self.model_dump(include={"workspaces", "namespaces", "users", "agents"}))


class KeyOut(Output):
    """A key, without its secret."""

    id: UUID = Field(description="Id of the key; it stays when the key is rotated.")
    name: str = Field(description="What it is for.")
    role: KeyRole = Field(description="The most that it may do.")
    verbs: list[Verb] = Field(description="What it may do of its role.")
    workspaces: list[str] = Field(description="The projects that it is bound to; none means all.")
    namespaces: list[str] = Field(description="The subdivisions that it is bound to; none means all.")
    users: list[str] = Field(description="The persons that it is bound to; none means all.")
    agents: list[str] = Field(description="The agents that it may act as; none means all.")
    hint: str = Field(description="How it begins.")
    state: KeyState = Field(description="active, expired or revoked.")
    created_at: datetime = Field(description="When it was made, UTC.")
    rotated_at: datetime | None = Field(description="When it last got another secret, UTC.")
    last_used_at: datetime | None = Field(description="When it was last used, UTC, to the minute.")
    expires_at: datetime | None = Field(description="When it ends, UTC.")
    revoked_at: datetime | None = Field(description="When it was revoked, UTC.")

    @classmethod
    def from_info(cls, info: KeyInfo, now: datetime, **fields: str) -> Self:
        """Show a key in its state at a time."""
        verbs = sorted(info.principal().allowed_verbs())
        return cls.from_attributes(info, verbs=verbs, state=info.state(now), **info.bounds.lists(), **fields)


class SecretOut(KeyOut):
    """A key with its secret, which is shown this once."""

    key: str = Field(description="The secret to send as `Authorization: Bearer`.")


class KeysOut(PageOut):
    """A page of keys."""

    keys: list[KeyOut] = Field(description="The oldest first.")
