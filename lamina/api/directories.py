"""What there is in a tenant: answers."""

from datetime import datetime

from pydantic import BaseModel, Field

from lamina.api.fields import PageOut


class Stored(BaseModel):
    """How much an entry holds."""

    bytes: int = Field(description="Bytes of the texts of what is counted, as Postgres packs long ones.")
    is_capped: bool = Field(description="Whether there is more: of each kind 5 000 are counted, and their bytes.")
    written_at: datetime | None = Field(description="When something was last written, UTC; null if it is not known.")


class StoredInPlace(Stored):
    """How much a place holds."""

    notes: int = Field(description="Notes.")
    messages: int = Field(description="Messages, summaries among them.")
    documents: int = Field(description="Documents and files.")
    procedures: int = Field(description="Procedures.")


class WorkspaceOut(StoredInPlace):
    """A workspace."""

    workspace: str = Field(description="Its name.")
    namespaces: int = Field(description="Its namespaces.")


class WorkspacesOut(PageOut):
    """Workspaces by their names."""

    workspaces: list[WorkspaceOut] = Field(description="The workspaces.")


class NamespaceOut(StoredInPlace):
    """A namespace of a workspace."""

    workspace: str = Field(description="The workspace.")
    namespace: str = Field(description="Its name.")


class NamespacesOut(PageOut):
    """Namespaces of a workspace by their names."""

    namespaces: list[NamespaceOut] = Field(description="The namespaces.")


class SessionOut(Stored):
    """A session."""

    session: str = Field(description="Its id.")
    messages: int = Field(description="Its messages that you may read, without summaries.")
    created_at: datetime = Field(description="When it was begun, UTC.")


class SessionsOut(PageOut):
    """Sessions of a place."""

    sessions: list[SessionOut] = Field(description="The one that was begun last first.")


class UserOut(Stored):
    """A user of a place."""

    user: str = Field(description="Its id.")
    notes: int = Field(description="Notes that belong to the user.")
    messages: int = Field(description="Messages, without summaries.")
    documents: int = Field(description="Documents and files.")
    profile_version: int | None = Field(description="Version of the profile; null if there is none.")


class UsersOut(PageOut):
    """Users of a place by their ids."""

    users: list[UserOut] = Field(description="The users.")


class AgentOut(StoredInPlace):
    """An agent of a place."""

    agent: str = Field(description="Its id.")


class AgentsOut(PageOut):
    """Agents of a place by their ids."""

    agents: list[AgentOut] = Field(description="The agents.")
