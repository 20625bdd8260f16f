"""This service as a resource of an OAuth issuer: its metadata (RFC 9728), and challenges that lead to them."""

from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lamina.core.principals import Verb
from lamina.core.tokens import scope_of
from lamina.errors import InsufficientScope, InvalidToken, LaminaError, NotFound
from lamina.settings.doors import JwtSettings

METADATA_PATH = "/.well-known/oauth-protected-resource"
SCOPES = tuple(scope_of(verb) for verb in Verb)
FIRST_SCOPES = " ".join(scope_of(verb) for verb in (Verb.READ, Verb.WRITE, Verb.DELETE))
"""The scopes of a client's first request: all that a writer may do."""


def metadata_url(settings: JwtSettings) -> str:
    """Return where the metadata of this resource are: its path comes behind that of the metadata."""
    parts = urlsplit(settings.audience)
    return f"{parts.scheme}://{parts.netloc}{METADATA_PATH}{parts.path.rstrip('/')}"


async def answer_metadata(request: Request) -> Response:
    """Return the issuer and the scopes of this resource; 404 where keys alone open anything."""
    settings: JwtSettings | None = request.app.state.services.settings.auth.jwt
    if settings is None:
        raise NotFound("issuer of tokens", "here", "send a key")
    return JSONResponse(
        {
            "resource": settings.audience,
            "authorization_servers": [settings.issuer],
            "scopes_supported": list(SCOPES),
            "bearer_methods_supported": ["header"],
            "resource_name": "Lamina",
        }
    )


def challenge(error: LaminaError, settings: JwtSettings) -> str:
    """Return the challenge of a refusal: the reason, the scopes to come back with, and where to get a token."""
    from_whom = f'resource_metadata="{metadata_url(settings)}"'
    match error:
        case InsufficientScope(scopes=scopes):
            return f'Bearer error="insufficient_scope", scope="{scopes}", {from_whom}'
        case InvalidToken():
            return f'Bearer error="invalid_token", scope="{FIRST_SCOPES}", {from_whom}'
        case _:
            return f'Bearer scope="{FIRST_SCOPES}", {from_whom}'
