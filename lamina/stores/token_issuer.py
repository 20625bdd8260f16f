"""The issuer of tokens: its public keys, found by discovery, and the check of a token by them."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from lamina.core.principals import Principal
from lamina.core.tokens import ClaimRules, principal_of_claims
from lamina.errors import InvalidToken, Unavailable
from lamina.host.authorities import trusted_authorities
from lamina.host.extras import needing

if TYPE_CHECKING:
    import httpx
    from jwt import PyJWK

ALGORITHMS = ("RS256", "ES256")
MAX_TOKEN_CHARS = 16_384
MAX_DOCUMENT_BYTES = 1024 * 1024
FETCH_S = 5.0
MIN_REFRESH_S = 5.0
"""Between two fetches: neither invented key ids nor an issuer that is away make more of them."""
STALE_S = 3600.0
"""How long keys are used beyond their time while the issuer does not answer."""
_PARTS = 3


def has_form_of_token(text: str) -> bool:
    """Report whether a text looks like a signed token."""
    return len(text) <= MAX_TOKEN_CHARS and text.count(".") == _PARTS - 1 and text.startswith("ey")


class TokenIssuer:
    """Checks the tokens of one issuer.

    Args:
        issuer: Its URL, as its tokens name it.
        audience: What its tokens for this service name as their audience.
        rules: How claims become a principal.
        keys_s: Seconds for which its keys are kept.
        leeway_s: Seconds by which its clock may differ.
        clock: Seconds that never go back.
    """

    def __init__(
        self,
        issuer: str,
        audience: str,
        rules: ClaimRules,
        *,
        keys_s: float,
        leeway_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._issuer = issuer
        self._audience = audience
        self._rules = rules
        self._keys_s = keys_s
        self._leeway_s = leeway_s
        self._clock = clock
        self._keys: Mapping[str | None, Mapping[str, Any]] = {}
        self._fetched_at = self._tried_at = -float("inf")
        self._fetching = asyncio.Lock()
        self._failure = Unavailable("issuer", f"the keys of {issuer} are not known")

    async def check(self, token: str) -> Principal:
        """Return the principal of a token.

        Raises:
            InvalidToken: If it is not signed by the issuer for this service, has ended, or lacks a claim.
            Unavailable: If the issuer's keys are not known and it does not answer.
        """
        with needing("mcp", "auth.jwt is set"):
            import jwt  # noqa: PLC0415 - most services have no issuer
        try:
            header = jwt.get_unverified_header(token)
            algorithm = header.get("alg")
            if algorithm not in ALGORITHMS:
                raise InvalidToken(
                    f"it is signed by {str(algorithm)[:20]}; the issuer signs by {' or '.join(ALGORITHMS)}"
                )
            key = await self._key(header.get("kid"), algorithm)
            claims = jwt.decode(
                token,
                key.key,
                algorithms=[algorithm],
                audience=self._audience,
                issuer=[self._issuer, f"{self._issuer}/"],
                leeway=self._leeway_s,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as error:
            raise InvalidToken(str(error)[:200].lower()) from error
        return principal_of_claims(claims, self._rules)

    async def _key(self, key_id: str | None, algorithm: str) -> "PyJWK":
        """Return the issuer's key of an id; they are fetched anew when their time is over, or for an unknown one."""
        import jwt  # noqa: PLC0415 - as above

        now = self._clock()
        is_wanted = now - self._fetched_at > self._keys_s or self._chosen(key_id) is None
        # Those who come while old keys are fetched anew do not wait; those who come before the first ones do.
        if (is_wanted and now - self._tried_at > MIN_REFRESH_S) or (self._fetching.locked() and not self._are_usable()):
            await self._refresh()
        if not self._are_usable():
            raise self._failure
        chosen = self._chosen(key_id)
        if chosen is None:
            raise InvalidToken("its key is none of the issuer's")
        return jwt.PyJWK(dict(chosen), algorithm)

    def _are_usable(self) -> bool:
        """Report whether keys were fetched lately enough, if not within their time."""
        return self._clock() - self._fetched_at <= self._keys_s + STALE_S

    def _chosen(self, key_id: str | None) -> Mapping[str, Any] | None:
        if key_id is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(key_id)

    async def _refresh(self) -> None:
        """Fetch the keys, unless somebody tried just now."""
        async with self._fetching:
            if self._clock() - self._tried_at <= MIN_REFRESH_S:
                return
            self._tried_at = self._clock()
            try:
                self._keys = await self._fetch()
                self._fetched_at = self._tried_at
            except Unavailable as error:
                self._failure = error

    async def _fetch(self) -> Mapping[str | None, Mapping[str, Any]]:
        import httpx  # noqa: PLC0415 - as above

        path = urlsplit(self._issuer).path.rstrip("/")
        root = self._issuer.removesuffix("/").removesuffix(path)
        # Of RFC 8414, where the path comes last, and of OpenID Connect, where it comes first.
        places = (
            f"{root}/.well-known/oauth-authorization-server{path}",
            f"{root}{path}/.well-known/openid-configuration",
        )
        async with httpx.AsyncClient(verify=trusted_authorities(), timeout=FETCH_S) as client:
            for place in places:
                found = await self._document(client, place)
                if found is not None:
                    break
            else:
                raise Unavailable("issuer", f"{self._issuer} tells nothing about itself at {' or '.join(places)}")
            if str(found.get("issuer")).rstrip("/") != self._issuer.rstrip("/"):
                raise Unavailable("issuer", f"{self._issuer} calls itself {str(found.get('issuer'))[:200]}")
            keys = await self._document(client, str(found.get("jwks_uri")))
        listed = (keys or {}).get("keys")
        usable = {
            key.get("kid"): key
            for key in (listed if isinstance(listed, list) else ())
            if isinstance(key, dict) and key.get("use", "sig") == "sig" and key.get("kty") in {"RSA", "EC"}
        }
        if not usable:
            raise Unavailable("issuer", f"{str(found.get('jwks_uri'))[:200]} answers no key of RSA or EC that signs")
        return usable

    async def _document(self, client: "httpx.AsyncClient", url: str) -> dict[str, Any] | None:
        """Return a JSON object of the issuer; ``None`` if it has none there."""
        import httpx  # noqa: PLC0415 - as above

        try:
            async with client.stream("GET", url) as response:
                if not response.is_success:
                    return None
                body = b""
                async for part in response.aiter_bytes():
                    body += part
                    if len(body) > MAX_DOCUMENT_BYTES:
                        raise Unavailable("issuer", f"{url} answers more than {MAX_DOCUMENT_BYTES} bytes")
            found = json.loads(body)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError) as error:
            raise Unavailable("issuer", f"{url} cannot be read: {type(error).__name__}") from error
        return found if isinstance(found, dict) else None
