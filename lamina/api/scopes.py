"""The life of a scope: requests and answers."""

from pydantic import BaseModel, Field

from lamina.api.fields import ABSENT, Flag, Id, Strict
from lamina.api.operations import OperationOut
from lamina.errors import InvalidInput
from lamina.text.hygiene import clean_id


class ScopeDeletionIn(Strict):
    """A session, a namespace, a workspace or all of the tenant, whose memories are deleted."""

    workspace: Id = Field(ABSENT, description="Project; all of it without a namespace.")
    namespace: Id = Field(ABSENT, description="Subdivision of the workspace.")
    session: Id = Field(ABSENT, description="Conversation in the namespace: its messages and the notes written in it.")
    everything: Flag = Field(default=False, description="Instead of a workspace: all memories of the tenant.")
    dry_run: Flag = Field(default=False, description="Count what would go, and delete nothing.")

    def ids(self, tenant: str) -> dict[str, str | None]:
        """Return the ids of the scope, clean.

        Raises:
            InvalidInput: If one is named without the one above it, or none is and ``everything`` is not true.
        """
        if (self.workspace is None) != self.everything:
            raise InvalidInput("workspace", "is missing; name one, or send everything: true for the whole tenant")
        for name, above in (("namespace", "workspace"), ("session", "namespace")):
            if getattr(self, name) is not None and getattr(self, above) is None:
                raise InvalidInput(above, f"is missing; name the {above} of the {name}")
        named = {name: getattr(self, name) for name in ("workspace", "namespace", "session")}
        cleaned = {name: None if id_ is None else clean_id(id_, name) for name, id_ in named.items()}
        return {"tenant": tenant, "session_id": cleaned.pop("session"), **cleaned}


class ScopeDeletionOut(BaseModel):
    """The deletion of a scope."""

    counts: dict[str, int] = Field(
        description="By kind: of a dry run the memories there, at most 100 000 of each; else those deleted so far."
    )
    operation: OperationOut | None = Field(None, description="The deletion; none of a dry run.")
