"""Quotas: requests and answers."""

from pydantic import Field

from lamina.api.fields import Output, Strict

MAX_AMOUNT = 2**62


class KeyQuotasIn(Strict):
    """The quotas of a key, in place of those that it has; one that is left out is as in the settings."""

    requests: int | None = Field(
        None, ge=0, le=MAX_AMOUNT, description="Requests a minute. Default: as in `quotas.key`."
    )
    embedded_tokens: int | None = Field(
        None, ge=0, le=MAX_AMOUNT, description="Estimated tokens a minute that the embedding model reads."
    )
    model_tokens: int | None = Field(None, ge=0, le=MAX_AMOUNT, description="Tokens a day of the language model.")


class QuotasOut(Output):
    """How much a tenant and the asking key may take; a missing one is not limited."""

    tenant: dict[str, int] = Field(
        description="Of the tenant: requests and embedded_tokens a minute, model_tokens a day, and what it may store: "
        "rows, bytes, documents, namespaces."
    )
    key: dict[str, int] = Field(description="Of the asking key alone.")
    stored: dict[str, int] = Field(description="What the tenant stores, counted some seconds ago.")


class KeyQuotasOut(Output):
    """The quotas of a key; a missing one is not limited."""

    key: dict[str, int] = Field(description="Of the key: requests and embedded_tokens a minute, model_tokens a day.")
