"""User profiles: requests and answers."""

from datetime import datetime
from typing import Any, Self

from pydantic import Field

from lamina.api.fields import ABSENT, Count, Id, Output, PageOut, Strict
from lamina.api.scope import ScopeIn
from lamina.core.memories import Profile
from lamina.core.scope import Scope
from lamina.errors import InvalidInput

MAX_VERSION = 2**31 - 1


class ProfilePatch(ScopeIn):
    """A change of a user's profile."""

    patch: dict[str, Any] = Field(
        description="Objects merge deeply, scalars are replaced, lists become an ordered union, null deletes."
    )


class UserIn(Strict):
    """The user of a request about the whole tenant."""

    user: Id = Field(ABSENT, description="Person.")

    def scope(self, tenant: str) -> Scope:
        """Return a scope of the user.

        Raises:
            InvalidInput: If no user is named, or by no id.
        """
        if "user" not in self.model_fields_set:
            raise InvalidInput("user", "is missing; a profile belongs to a user")
        return Scope(tenant, user=self.user)


class UserProfilePatch(UserIn):
    """A change of a user's profile of the whole tenant."""

    patch: dict[str, Any] = Field(
        description="Objects merge deeply, scalars are replaced, lists become an ordered union, null deletes."
    )


class UserProfileRevert(UserIn):
    """An earlier version of that profile that is to hold again."""

    version: Count = Field(ge=1, le=MAX_VERSION, description="Its number.")


class ProfileOut(Output):
    """A user's profile."""

    user: str = Field(description="Whose profile it is.")
    document: dict[str, Any] = Field(description="The whole profile.")
    version: int = Field(description="One more with every change; 0 if nothing was ever written.")
    updated_at: datetime | None = Field(description="When it was last changed, UTC.")
    unverified: bool = Field(
        description="Whether any field was stated by a key that is neither bound to the user nor an admin's."
    )

    @classmethod
    def from_profile(cls, profile: Profile) -> Self:
        """Show a user's profile."""
        return cls.from_attributes(profile, unverified=not profile.is_verified)


class ProfileRevert(ScopeIn):
    """An earlier version of a user's profile that is to hold again."""

    version: Count = Field(ge=1, le=MAX_VERSION, description="Its number.")


class ProfileVersionOut(Output):
    """A state of a profile."""

    version: int = Field(description="Its number, from 1.")
    document: dict[str, Any] = Field(description="The whole profile.")
    written_at: datetime = Field(description="When it began to hold, UTC.")


class ProfileVersionsOut(PageOut):
    """The states of a profile."""

    versions: list[ProfileVersionOut] = Field(description="The latest first, as many as are kept.")
