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


class ScopeRenamingIn(Strict):
    """A session, a namespace or a workspace, and its new name."""

    workspace: Id = Field(ABSENT, description="Project.")
    namespace: Id = Field(ABSENT, description="Subdivision of the workspace, to rename it or a session in it.")
    session: Id = Field(ABSENT, description="Conversation in the namespace, to rename it.")
    to_workspace: Id = Field(ABSENT, description="New name of the workspace.")
    to_namespace: Id = Field(ABSENT, description="New name of the namespace.")
    to_session: Id = Field(ABSENT, description="New name of the session.")
    dry_run: Flag = Field(default=False, description="Check it and count what it would touch, and rename nothing.")

    def ids(self, tenant: str) -> dict[str, str | None]:
        """Return the ids of both scopes, clean, under the names of the statements' parameters.

        Raises:
            InvalidInput: If none is named, the new name is not that of the narrowest one, or it is the old one.
        """
        names = ("workspace", "namespace", "session")
        old, new = ({name: _clean(self, prefix + name) for name in names} for prefix in ("", "to_"))
        renamed = [name for name in names if new[name] is not None]
        if len(renamed) != 1:
            reason = "is missing" if not renamed else "is given beside another one"
            field = f"to_{renamed[-1]}" if renamed else "to_workspace"
            raise InvalidInput(field, f"{reason}; name one of to_workspace, to_namespace and to_session")
        [kind] = renamed
        needed = names[: names.index(kind) + 1]
        if missing := [name for name in needed if old[name] is None]:
            raise InvalidInput(missing[0], f"is missing; name the {missing[0]} of what is to be renamed")
        if narrower := [name for name in names[len(needed) :] if old[name] is not None]:
            reason = f"is given, but to_{kind} renames a {kind}; send to_{narrower[0]}, or leave it out"
            raise InvalidInput(narrower[0], reason)
        if old[kind] == new[kind]:
            raise InvalidInput(f"to_{kind}", "is the name that it has; send another one")
        target = {**old, kind: new[kind]}
        return {
            "tenant": tenant,
            **{"session_id" if name == "session" else name: id_ for name, id_ in old.items()},
            **{f"to_{name}": id_ for name, id_ in target.items()},
        }


def _clean(body: ScopeRenamingIn, name: str) -> str | None:
    id_ = getattr(body, name)
    return None if id_ is None else clean_id(id_, name)


class ScopeRenamingOut(BaseModel):
    """The renaming of a scope."""

    counts: dict[str, int] = Field(
        description="By kind: of a dry run everything that it would touch, at most 100 000 of each, and `keys_left`,"
        " the keys whose bounds it leaves; else those renamed so far."
    )
    operation: OperationOut | None = Field(None, description="The renaming; none of a dry run.")


class ScopeDeletionOut(BaseModel):
    """The deletion of a scope."""

    counts: dict[str, int] = Field(
        description="By kind: of a dry run the memories there, at most 100 000 of each; else those deleted so far."
    )
    operation: OperationOut | None = Field(None, description="The deletion; none of a dry run.")
