"""Rules that Serve's template for HAProxy leaves out, as edits of the configuration that Serve writes.

Serve has no setting for them: a time limit for headers, connections by address, the address that a client asks from,
and pages of statistics and metrics that listen on this machine alone.
"""

from collections.abc import Mapping

from lamina.settings import ENV_PREFIX, FrontDoorSettings

# With these a sender would choose Serve's own time limit, and whether Serve notices that the sender has gone.
ORDERS_TO_SERVE = frozenset({b"x-request-timeout-seconds", b"x-request-disconnect-disabled"})
CLOSES = "lamina-closes"
"""Header of an answer after which nothing is read: `Connection` itself does not come through HAProxy."""
_TABLE = "lamina_addresses"
_MAX_ADDRESSES = 100_000
# Serve starts its servers without Lamina's settings, and hands on its environment.
_OF_SERVERS = {
    name: f"{ENV_PREFIX}SERVE__FRONT_DOOR__{name.upper()}" for name in ("headers_s", "body_s", "body_bytes_per_s")
}


def haproxy_edits(limits: FrontDoorSettings, host: str | None = None) -> str:
    """Return a script of sed that puts the rules into HAProxy's configuration.

    Args:
        limits: Of clients.
        host: Address to listen on, in place of Serve's.
    """
    return "\n".join(
        (
            f"/^defaults/a\\    timeout http-request {limits.headers_s}s",
            f"s|timeout http-keep-alive .*|timeout http-keep-alive {limits.idle_s}s|",
            f"s|timeout client .*|timeout client {limits.idle_s}s|",
            "/^frontend prometheus/,/^ *mode/s|bind :|bind 127.0.0.1:|",
            "/^listen stats/,/^ *stats/s|bind \\*:|bind 127.0.0.1:|",
            "/^frontend http_frontend/,/^ *bind/{",
            *((f"s|bind .*:|bind {host}:|",) if host else ()),
            "/^ *bind/a\\",
            "\\\n".join(f"    {line}" for line in _frontend(limits)),
            "}",
            "/^backend default_backend/i\\",
            f"backend {_TABLE}\\",
            f"    stick-table type ipv6 size {_MAX_ADDRESSES} expire 1m store conn_cur",
            "",
        )
    )


def _frontend(limits: FrontDoorSettings) -> tuple[str, ...]:
    """Return the rules of the frontend that requests come to."""
    trusted = " ".join(limits.trusted_proxies)
    unless = "!is_trusted " if trusted else ""
    return (
        *((f"acl is_trusted src {trusted}",) if trusted else ()),
        f"tcp-request connection track-sc0 src table {_TABLE}",
        f"tcp-request connection reject if {unless}{{ sc0_conn_cur gt {limits.connections_per_address} }}",
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
    return {variable: str(getattr(limits, name)) for name, variable in _OF_SERVERS.items()}


def server_limits(environment: Mapping[str, str]) -> FrontDoorSettings:
    """Return the limits that the environment says; the defaults where it says nothing."""
    given = {name: environment[variable] for name, variable in _OF_SERVERS.items() if variable in environment}
    return FrontDoorSettings.model_validate(given)
