"""The ids that a request names."""

from pydantic import Field

from lamina.api.fields import ABSENT, Id, Strict
from lamina.core.scope import DEFAULT_NAMESPACE, DEFAULT_WORKSPACE, Scope

SCOPE_FIELDS = ("workspace", "namespace", "user", "agent", "session", "swarm")


class ScopeIn(Strict):
    """The ids of a request; the tenant comes from the API key."""

    workspace: Id = Field(DEFAULT_WORKSPACE, description="Project that the memory belongs to.")
    namespace: Id = Field(DEFAULT_NAMESPACE, description="Subdivision of the workspace.")
    user: Id = Field(ABSENT, description="Person the memory is about; its memories are added to the shared ones.")
    agent: Id = Field(ABSENT, description="Agent that writes or asks.")
    session: Id = Field(ABSENT, description="Conversation; in a search it narrows the messages to this one.")
    swarm: Id = Field(ABSENT, description="Group of agents that share caches.")

    def scope(self, tenant: str) -> Scope:
        """Return the scope of the request.

        Raises:
            InvalidInput: Naming the id that is not 1 to 128 printable characters.
        """
        # An id that was left out is None, which Scope allows; sent as null it was refused before.
        return Scope(tenant, **{name: getattr(self, name) for name in SCOPE_FIELDS if name in self.model_fields_set})
