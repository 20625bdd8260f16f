"""A small issuer of tokens: discovery, its public keys, and tokens of any claims."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
import uvicorn
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from deployments.environment import free_ports
from tests.support.uvicorn_server import serving

AUDIENCE = "https://memory.example/mcp"
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


def new_private_key(algorithm: str) -> PrivateKey:
    """Return a new private key for an algorithm."""
    if algorithm.startswith("RS"):
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return ec.generate_private_key(ec.SECP256R1())


@dataclass
class Issuer:
    """What the issuer publishes, and how it signs.

    Attributes:
        keys: Its keys with their algorithms, by their ids.
        path: Of its URL.
        is_oidc: Whether it is found as a provider of OpenID Connect, or as an authorization server.
        is_away: Whether it answers nothing.
        said_of_keys: Its answer in place of its keys.
        asked: The paths that were asked for.
    """

    port: int
    path: str = ""
    is_oidc: bool = True
    is_away: bool = False
    said_of_keys: Response | None = None
    keys: dict[str, tuple[str, PrivateKey]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Its URL."""
        return f"http://127.0.0.1:{self.port}{self.path}"

    def new_key(self, id_: str, algorithm: str = "RS256") -> None:
        """Publish a new key."""
        self.keys[id_] = algorithm, new_private_key(algorithm)

    def token(self, key: str = "", headers: dict[str, Any] | None = None, **claims: Any) -> str:
        """Return a token of a writer of the tenant acme, with other claims where they are given; `None` removes one.

        Args:
            key: Id of the key that signs; the first one otherwise.
            headers: In place of the id of the key.
            claims: In place of the usual ones.
        """
        id_ = key or next(iter(self.keys))
        algorithm, private = self.keys[id_]
        usual = {"iss": self.url, "aud": AUDIENCE, "sub": "ann", "exp": time.time() + 600, "tenant": "acme"}
        chosen = {**usual, "role": "writer", **claims}
        sent = {name: value for name, value in chosen.items() if value is not None}
        return jwt.encode(sent, private, algorithm, headers={"kid": id_} if headers is None else headers)

    async def answer(self, request: Request) -> Response:
        """Answer a request for its metadata or its keys."""
        path = request.url.path
        self.asked.append(path)
        if self.is_away:
            return Response(status_code=503)
        own = f"{self.path}/.well-known/openid-configuration"
        if path == (own if self.is_oidc else f"/.well-known/oauth-authorization-server{self.path}"):
            return JSONResponse({"issuer": self.url, "jwks_uri": f"http://127.0.0.1:{self.port}/keys"})
        if path != "/keys":
            return Response(status_code=404)
        if self.said_of_keys is not None:
            return self.said_of_keys
        return JSONResponse({"keys": [_public(id_, *key) for id_, key in self.keys.items()]})


def _public(id_: str, algorithm: str, private: PrivateKey) -> dict[str, Any]:
    kind = RSAAlgorithm if isinstance(private, rsa.RSAPrivateKey) else ECAlgorithm
    public: Any = private.public_key()
    return {**json.loads(kind.to_jwk(public)), "kid": id_, "alg": algorithm, "use": "sig"}


@asynccontextmanager
async def issuing(path: str = "", *, is_oidc: bool = True) -> AsyncIterator[Issuer]:
    """Run an issuer on this machine."""
    (port,) = free_ports(1)
    issuer = Issuer(port, path, is_oidc)
    app = Starlette(routes=[Route("/{path:path}", issuer.answer)])
    async with serving(uvicorn.Config(app, port=port, lifespan="off", access_log=False, log_level="critical")):
        yield issuer
