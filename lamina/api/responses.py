"""The cache of model responses: requests and answers."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from lamina.api.fields import ABSENT, Content, Id, Output, Question
from lamina.api.scope import ScopeIn
from lamina.policies.caching.model_responses import (
    MAX_MEANING_CHARS,
    MAX_VARIANT_BYTES,
    LookupState,
    ModelQuestion,
    PutRefusal,
    clean_question,
)


class QuestionIn(ScopeIn):
    """A question for a model; `agent` is required, `session` and `swarm` do not matter."""

    query: Question = Field(description="The question.")
    system_prompt: Content = Field(
        ABSENT,
        description="The agent's system prompt, of which a hash is kept; a response that is put under another one ends "
        "those before it.",
    )
    system_prompt_version: Id = Field(ABSENT, description="Your version of the system prompt, instead of its text.")
    model: Id = Field(ABSENT, description="Which model answers; responses of another one do not.")
    variant: Any = Field(
        None,
        description="Any JSON that must be equal too: tools, temperature, locale; "
        f"at most {MAX_VARIANT_BYTES:,} bytes.",
    )

    def question(self, tenant: str) -> ModelQuestion:
        """Return the question, cleaned.

        Raises:
            InvalidInput: Naming the field that is missing or unclean.
        """
        return clean_question(
            self.scope(tenant),
            self.query,
            system_prompt=self.system_prompt,
            prompt_version=self.system_prompt_version,
            model=self.model,
            variant=self.variant,
        )


class LookupIn(QuestionIn):
    """A question that may have been answered before."""

    query: Question = Field(
        description=f"The question. One of up to {MAX_MEANING_CHARS:,} characters is found again in other words, too; "
        "a longer one in exactly its own."
    )
    wait_s: Annotated[float, Field(strict=True, ge=0)] = Field(
        0.0,
        description="Seconds to wait, on a miss, for the response to the same request that another caller, who sent "
        "wait_s too, is making at this moment. At most caches.semantic.max_wait_s, which is 60 unless set otherwise.",
    )


class LookupOut(Output):
    """The answer of the cache."""

    state: LookupState = Field(description="hit; stale: served for a while after its end; miss: make it, and put it.")
    response: Any = Field(description="What was put.")
    id: UUID | None = Field(description="Id of the response.")
    similarity: float | None = Field(description="Cosine of the two questions; 1 for the same one.")
    layer: Literal["turn_hash", "semantic"] | None = Field(description="Which layer had it.")
    age_s: float | None = Field(description="Seconds since it was put.")
    expires_in_s: float | None = Field(description="Seconds until it becomes stale; below 0 where it is.")
    refresh: bool = Field(description="Whether you, and nobody else for now, should make a stale one anew and put it.")
    unverified: bool | None = Field(
        description="Whether it was put by a key that is bound neither to the agent nor to the user, and no admin's; "
        "none on a miss."
    )
    epoch: int = Field(
        description="Opaque; send it back with the response that you make: it proves that nothing changed."
    )


class PutResponseIn(QuestionIn):
    """A response to keep."""

    response: Any = Field(description="Any JSON value; it is returned as it is.")
    epoch: Annotated[int, Field(strict=True)] = Field(
        ABSENT,
        description="Opaque, from the lookup that missed: if the agent's memory changed since, the response is not "
        "stored.",
    )


class PutResponseOut(Output):
    """The result of storing a response."""

    id: UUID | None = Field(description="Id of the stored response.")
    stored: bool = Field(description="Whether it is stored.")
    reason: PutRefusal | None = Field(
        description="Why it is not: memory_changed since the lookup, over_budget, or switched_off."
    )
    expires_in_s: float | None = Field(description="Seconds until it becomes stale.")
    evicted: int = Field(description="How many other responses of the workspace had to go.")
