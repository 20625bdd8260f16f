"""Cache hit rates of model providers: requests and answers."""

from pydantic import BaseModel, Field

from lamina.api.fields import ABSENT, MAX_BATCH, Count, Id, Output, Strict
from lamina.core.scope import DEFAULT_WORKSPACE


class InferenceCallIn(Strict):
    """The tokens of one call of a model, as its provider counted them."""

    provider: Id = Field(description="Who runs the model.")
    model: Id = Field(description="Its name there.")
    input_tokens: Count = Field(ge=0, description="Tokens of the prompt, those from the provider's cache among them.")
    cached_tokens: Count = Field(ge=0, description="How many of them came from the provider's cache.")
    workspace: Id = Field(DEFAULT_WORKSPACE, description="Project that the call was made for.")
    agent: Id = Field(ABSENT, description="Agent that made it.")


class InferenceCallsIn(Strict):
    """Calls that were just made."""

    calls: list[InferenceCallIn] = Field(
        min_length=1, max_length=MAX_BATCH, description="One or more calls; if one is wrong, none is recorded."
    )


class RecordedOut(BaseModel):
    """The result of recording calls."""

    recorded: int = Field(description="How many were recorded.")


class HitRatesOut(Output):
    """How much one model of a provider took from the provider's cache."""

    provider: str = Field(description="Who runs the model.")
    model: str = Field(description="Its name there.")
    calls: int = Field(description="How many calls were made.")
    input_tokens: int = Field(description="Tokens of their prompts.")
    cached_tokens: int = Field(description="How many of them came from the cache.")
    avg_hit_rate: float | None = Field(
        description="Mean of the calls' shares of cached tokens, 0 to 1; none if no call had input."
    )
    token_hit_rate: float | None = Field(description="Share of cached tokens among all, 0 to 1.")


class ProviderRatesOut(BaseModel):
    """How much models took from their providers' caches."""

    days: int = Field(description="Over how many days until now.")
    rates: list[HitRatesOut] = Field(description="By provider and model, the highest avg_hit_rate first.")
