"""The issuer of tokens that the settings name."""

from lamina.core.principals import KeyRole
from lamina.core.tokens import ClaimRules
from lamina.settings.doors import AuthSettings
from lamina.stores.token_issuer import TokenIssuer


def build_token_issuer(settings: AuthSettings) -> TokenIssuer | None:
    """Build the check of tokens; ``None`` where keys alone open anything."""
    if settings.jwt is None:
        return None
    chosen, claims = settings.jwt, settings.jwt.claims
    rules = ClaimRules(
        tenant_claim=claims.tenant,
        workspace_claim=claims.workspace,
        user_claim=claims.user,
        agent_claim=claims.agent,
        role_claim=claims.role,
        tenant=chosen.tenant,
        role=KeyRole(chosen.role),
    )
    return TokenIssuer(chosen.issuer, chosen.audience, rules, keys_s=chosen.keys_s, leeway_s=chosen.leeway_s)
