"""Settings of the doors beside the HTTP API."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, field_validator

from lamina.settings.section import Section


def _lower(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower().strip("[]") for name in names)


class McpSettings(Section):
    """The MCP server at `/mcp`."""

    hosts: Annotated[tuple[str, ...], AfterValidator(_lower)] = Field(
        ("localhost", "127.0.0.1", "::1"),
        description="Names and addresses, without a port, by which clients ask for `/mcp`; others are answered 421.",
    )
    origins: tuple[str, ...] = Field(
        (), description="Pages of other sites that may ask, as `https://app.example.com`; others are answered 403."
    )


class ClaimSettings(Section):
    """Claims of a token, by name or by a path with dots (`realm_access.roles`)."""

    tenant: str = Field("tenant", description="Claim with the tenant that the token opens.")
    workspace: str | None = Field(
        "workspace", description="Claim with the workspaces that it is bound to; one without it is bound to none."
    )
    user: str | None = Field(
        "sub", description="Claim with the user that it is bound to, which it must have; null binds tokens to no user."
    )
    agent: str | None = Field(None, description="Claim with the agents that it is bound to, if tokens have one.")
    role: str = Field("role", description="Claim with its role: reader, writer or admin, or a list with one of them.")


class JwtSettings(Section):
    """Tokens of an OAuth issuer beside keys: RS256 or ES256, with the issuer's keys found by discovery."""

    issuer: str = Field(description="URL of the issuer, as its tokens name it.")
    audience: str = Field(
        description="URL at which clients reach `/mcp`, e.g. `https://memory.example/mcp`; tokens for another audience "
        "are refused."
    )
    tenant: str | None = Field(None, description="Tenant of every token, in place of a claim.")
    role: Literal["reader", "writer", "admin"] = Field("reader", description="Role of a token without a claim for it.")
    claims: ClaimSettings = ClaimSettings()
    keys_s: float = Field(
        600.0, gt=0, description="Seconds for which the issuer's keys are kept; a new one is fetched when it is met."
    )
    leeway_s: float = Field(30.0, ge=0, le=600, description="Seconds by which the issuer's clock may differ.")

    @field_validator("issuer", "audience")
    @classmethod
    def _refuse_plain(cls, url: str) -> str:
        parts = urlsplit(url)
        is_local = parts.scheme == "http" and parts.hostname in {"localhost", "127.0.0.1", "::1"}
        if not parts.hostname or not (parts.scheme == "https" or is_local) or parts.query or parts.fragment:
            message = f"is {url}; name an https URL, or an http one of this machine, without ? and #"
            raise ValueError(message)
        return url


class AuthSettings(Section):
    """Who may ask beside those with a key."""

    jwt: JwtSettings | None = Field(None, description="Tokens of an issuer in place of keys; off where it is not set.")


class GatewaySettings(Section):
    """The OpenAI-compatible endpoint at `/openai/v1`, which remembers, in front of another one."""

    base_url: str | None = Field(
        None,
        pattern="^https?://",
        description="The endpoint in front of which it stands, as `https://api.openai.com/v1`; off if not set.",
    )
    api_key: SecretStr | None = Field(
        None,
        description="Bearer token for that endpoint. Without one, clients send theirs as `Lamina-Upstream-Key`.",
    )
    provider: str = Field("openai", min_length=1, description="Under which name its cached tokens are counted.")
    position: Literal["before_question", "after_instructions"] = Field(
        "before_question",
        description="Where memories go: before the user's last message, behind all that the provider may have in its "
        "cache, or behind the leading system messages.",
    )
    role: Literal["system", "developer", "user"] = Field(
        "system", description="Role of the message that holds them; some models take `system` at the beginning alone."
    )
    budget_tokens: int = Field(2000, ge=16, description="Most estimated tokens of the memories in a request.")
    recall_s: float = Field(
        1.5, gt=0, description="Seconds after which a request goes on without memories that are not found yet."
    )
    own_session: bool = Field(
        default=False,
        description="Whether messages of the same session are recalled, for clients that cut their history.",
    )
    cache: Literal["off", "on", "tools"] = Field(
        "off",
        description="Whether the cache of responses answers what was answered before; `on` leaves out requests with "
        "tools, `tools` does not. The header `Lamina-Cache` of a request wins.",
    )
    believe_key_s: float = Field(
        300.0, ge=0, description="Seconds for which a key that was right is believed here while Postgres is away."
    )
    connect_s: float = Field(10.0, gt=0, description="Longest wait for a connection to that endpoint, in seconds.")
    silence_s: float = Field(300.0, gt=0, description="Longest wait for its next byte, in seconds.")
    answer_s: float = Field(1800.0, gt=0, description="Longest time of a whole answer, in seconds.")
