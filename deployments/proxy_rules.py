"""Rules that Serve's template for HAProxy leaves out, as edits of the configuration that Serve writes.

Serve has no setting for them: a time limit for headers, connections by address, the address that a client asks from,
and pages of statistics and metrics that listen on this machine alone. An address that sends too many wrong keys, or too
many requests without one, is refused here, where it costs a router nothing; routers keep the same limits themselves.
"""

import json
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path

from lamina.settings.loading import ENV_PREFIX
from lamina.settings.serving import FrontDoorSettings

# With these a sender would choose Serve's own time limit, and whether Serve notices that the sender has gone.
ORDERS_TO_SERVE = frozenset({b"x-request-timeout-seconds", b"x-request-disconnect-disabled"})
CLOSES = "lamina-closes"
"""Header of an answer after which nothing is read: `Connection` itself does not come through HAProxy."""
GATEWAY = "/openai/"
KEYED_PATHS = ("/v1/", "/cache", "/mcp", GATEWAY)
_PAGES = ("/openapi.json", "/docs")
PAGE_COST = 100
"""Requests without a key as which one for a page counts: the OpenAPI document has 400 kB, `/livez` 15 bytes."""
_RETRY_AFTER_S = 60
_TARPIT_S = 1
_BEGINNING_BYTES = 15 * 1024
"""Bytes of a body that HAProxy waits for: they fit into its buffer, which an operator may enlarge."""
MOST_BODY_BYTES = 32 * 1024 * 1024
"""The most that a route takes: of a body that is declared larger nothing is waited for."""
_EXPECTED_BYTES = 1024 * 1024
MOST_EXPECTING = 60
"""Requests of a key a minute, with a body beyond `_EXPECTED_BYTES`, whose `Expect: 100-continue` a router answers."""
_ADDRESSES, _UNKEYED, _KEYS = "lamina_addresses", "lamina_unkeyed", "lamina_keys"
_MAX_ADDRESSES = 100_000
# A tenant has a whole IPv6 /64, as the routers count it.
_SOURCE = "src,ipmask(32,64)"
# Of those below KEYED_PATHS.
_UNKEYED_PATH = "/cache/health"
# Serve starts its servers without Lamina's settings, and hands on its environment.
_OF_SERVERS = {
    name: f"{ENV_PREFIX}SERVE__FRONT_DOOR__{name.upper()}"
    for name in (
        "headers_s",
        "body_s",
        "body_bytes_per_s",
        "connections",
        "connections_per_address",
        "trusted_proxies",
    )
}


def is_page(path: str) -> bool:
    """Report whether a path is one of the API's reference, whose answers are large."""
    return path.startswith(_PAGES)


def haproxy_edits(limits: FrontDoorSettings, refusals: Mapping[HTTPStatus, Path], host: str | None = None) -> str:
    """Return a script of sed that puts the rules into HAProxy's configuration.

    Args:
        limits: Of clients.
        refusals: Files with the bodies of refusals, by their status.
        host: Address to listen on, in place of Serve's.
    """
    return "\n".join(
        (
            f"/^defaults/a\\    timeout http-request {limits.headers_s}s\\n    timeout tarpit {_TARPIT_S}s",
            f"s|timeout http-keep-alive .*|timeout http-keep-alive {limits.idle_s}s|",
            f"s|timeout client .*|timeout client {limits.idle_s}s|",
            # With it, one client that left within a body of 40 kB kept HAProxy turning, and its request went on.
            "/option splice-/d",
            "/^frontend prometheus/,/^ *mode/s|bind :|bind 127.0.0.1:|",
            "/^listen stats/,/^ *stats/s|bind \\*:|bind 127.0.0.1:|",
            "/^frontend http_frontend/,/^ *bind/{",
            *((f"s|bind .*:|bind {host}:|",) if host else ()),
            "/^ *bind/a\\",
            "\\\n".join(f"    {line}" for line in _frontend(limits, refusals)),
            "}",
            "/^backend default_backend/i\\",
            "\\\n".join(
                f"backend {name}\\\n    stick-table type {kept}"
                for name, kept in (
                    (_ADDRESSES, f"ipv6 size {_MAX_ADDRESSES} expire 1m store conn_cur,gpc0_rate(1m)"),
                    (_UNKEYED, f"ipv6 size {_MAX_ADDRESSES} expire 1m store gpc(1),gpc_rate(1,1m)"),
                    (_KEYS, f"binary len 32 size {_MAX_ADDRESSES} expire 10m store gpt0,gpc0_rate(1m)"),
                )
            ),
            "",
        )
    )


def _frontend(limits: FrontDoorSettings, refusals: Mapping[HTTPStatus, Path]) -> tuple[str, ...]:
    """Return the rules of the frontend that requests come to."""
    trusted = " ".join(limits.trusted_proxies)
    unless = "!is_trusted " if trusted else ""
    kind, too_many = "content-type application/problem+json", HTTPStatus.TOO_MANY_REQUESTS
    refused = f"deny_status {too_many} {kind} file {refusals[too_many]} hdr Retry-After {_RETRY_AFTER_S}"
    late = HTTPStatus.REQUEST_TIMEOUT
    body_ms = int((limits.body_s + _BEGINNING_BYTES / limits.body_bytes_per_s) * 1000)
    return (
        *((f"acl is_trusted src {trusted}",) if trusted else ()),
        f"http-error status {late} {kind} file {refusals[late]}",
        f"tcp-request connection track-sc0 {_SOURCE} table {_ADDRESSES}",
        f"tcp-request connection reject if {unless}{{ sc0_conn_cur gt {limits.connections_per_address} }}",
        f"acl has_keyed_path path_beg {' '.join(KEYED_PATHS)}",
        f"acl has_unkeyed_path path {_UNKEYED_PATH}",
        "acl is_of_serve path_beg /-/",
        f"acl is_page path_beg {' '.join(_PAGES)}",
        (
            "http-request set-var(txn.has_key) bool(true) if has_keyed_path !has_unkeyed_path "
            "{ req.hdr(authorization) -m found }"
        ),
        "acl has_key var(txn.has_key) -m bool",
        # A key that was right is known by its hash, and goes on whatever else its address sends.
        f"http-request track-sc1 req.hdr(authorization),sha2(256) table {_KEYS} if has_key",
        (
            f"http-request tarpit {refused} if {unless}has_key !{{ sc1_get_gpt0 gt 0 }} "
            f"{{ sc0_gpc0_rate gt {limits.wrong_keys_per_minute} }}"
        ),
        # HAProxy would say 100 before a router could refuse the body. The router says it of large ones, so few times a
        # minute that half-sent bodies with an expectation cost little.
        "acl has_expectation req.hdr(expect) -m found",
        f"acl is_large req.body_size gt {_EXPECTED_BYTES}",
        "http-request sc-inc-gpc0(1) if has_key has_expectation is_large",
        (
            "http-request set-var(txn.is_left) bool(true) if has_expectation is_large "
            f"{{ sc1_gpc0_rate le {MOST_EXPECTING} }}"
        ),
        # Each half-sent body was begun by a router, and given up there: two hundred a second took it from everybody.
        # A key that is not known to be right goes on at once, since no body is waited for without one.
        (
            f"http-request wait-for-body time {body_ms}ms at-least {_BEGINNING_BYTES} if has_key "
            f"{{ sc1_get_gpt0 gt 0 }} !{{ req.body_size gt {MOST_BODY_BYTES} }} "
            "!{ var(txn.is_left) -m bool }"
        ),
        f"http-response sc-inc-gpc0(0) if {unless}has_key {{ status 401 }}",
        "http-response sc-set-gpt0(1) 0 if has_key { status 401 }",
        # A router's 408 is that of a right key, and the only answer of one that sends nothing but halves; HAProxy's own
        # does not come here.
        "http-response sc-set-gpt0(1) 1 if has_key { status 200:299 408 }",
        f"http-request track-sc2 {_SOURCE} table {_UNKEYED} if {unless}!has_key !is_of_serve",
        (
            f"http-request deny {refused} if {unless}!has_key is_page "
            f"{{ sc_gpc_rate(0,2) ge {max(1, limits.unkeyed_requests_per_minute - PAGE_COST + 1)} }}"
        ),
        (
            f"http-request deny {refused} if {unless}!has_key !is_of_serve "
            f"{{ sc_gpc_rate(0,2) ge {limits.unkeyed_requests_per_minute} }}"
        ),
        f"http-request sc-add-gpc(0,2) {PAGE_COST} if {unless}!has_key is_page",
        f"http-request sc-inc-gpc(0,2) if {unless}!has_key !is_of_serve !is_page",
        # HAProxy would keep to itself that a replica reads no more of a body, and the client would go on sending.
        f"http-response set-header Connection close if {{ res.hdr({CLOSES}) -m found }}",
        f"http-response del-header {CLOSES}",
        f"http-request set-header X-Forwarded-For %[src]{' if !is_trusted' if trusted else ''}",
        *(
            ("http-request set-header X-Forwarded-For %[src] if !{ req.hdr(x-forwarded-for) -m found }",)
            if trusted
            else ()
        ),
    )


def server_variables(limits: FrontDoorSettings) -> dict[str, str]:
    """Return the variables by which Serve's processes learn the limits of their servers; the settings' own names."""
    return {variable: json.dumps(getattr(limits, name)) for name, variable in _OF_SERVERS.items()}


def server_limits(environment: Mapping[str, str]) -> FrontDoorSettings:
    """Return the limits that the environment says; the defaults where it says nothing."""
    given = {
        name: json.loads(environment[variable]) for name, variable in _OF_SERVERS.items() if variable in environment
    }
    return FrontDoorSettings.model_validate(given)
