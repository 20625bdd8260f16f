"""URLs of servers: what their clients would refuse, or wait for in vain, only once the service starts."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from lamina.config_check.findings import Finding, Place, meant, warning
from lamina.config_check.settings_file import DATABASE, ELSEWHERE
from lamina.config_check.shapes import shown
from lamina.settings import ENV_PREFIX, FalkorDBServerSettings, PostgresServerSettings, QdrantServerSettings, Settings

TLS_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
GRPC_PORT = 6334
HIGHEST_PORT = 65_535
_UNFILLED = re.compile(r"\$\{|\$\(|\{\{")


def check_addresses(settings: Settings) -> Iterator[Finding]:
    """Return what is wrong with the URLs in settings; those that the environment gives are not looked at."""
    if isinstance(settings.postgres, PostgresServerSettings):
        yield from _database(settings.postgres)
    for name in ("hybrid", "vectors"):
        store = getattr(settings, name)
        if isinstance(store, QdrantServerSettings):
            yield from _checked((name, "url"), store.url, _qdrant(name, store))
    if isinstance(settings.graph, FalkorDBServerSettings):
        yield from _checked(("graph", "url"), settings.graph.url, _falkordb(settings.graph.url))


def _checked(place: Place, url: str, found: Iterator[Finding]) -> Iterator[Finding]:
    if ELSEWHERE in url:
        return
    if _UNFILLED.search(url):
        variable = ENV_PREFIX + "__".join(map(str, place)).upper()
        yield Finding(
            place, f"is {shown(url, ())}, in which nobody fills anything in", f"take it out, and set {variable}"
        )
    else:
        yield from found


def _database(postgres: PostgresServerSettings) -> Iterator[Finding]:
    for name in ("url", "direct_url"):
        url = getattr(postgres, name)
        if url is not None:
            yield from _checked(("postgres", name), url, _postgres(("postgres", name), url))
    if postgres.pooling == "transaction" and postgres.direct_url == DATABASE and ELSEWHERE not in postgres.url:
        yield warning(
            ("postgres", "direct_url"),
            "is missing, and pooling is transaction",
            f"write it, or set {ENV_PREFIX}POSTGRES__DIRECT_URL: locks and notifications need a way past the pooler",
        )


def _postgres(place: Place, url: str) -> Iterator[Finding]:
    if not url.startswith(("postgresql://", "postgres://")):
        yield Finding(place, f"is {shown(url, ())}", "write postgresql://user@host:5432/database")
        return
    try:
        parts = conninfo_to_dict(url)
    except ProgrammingError:  # Its text quotes the URL, password and all.
        yield Finding(
            place, f"cannot be read: {shown(url, ())}", "write postgresql://user@host:5432/database?option=value"
        )
        return
    yield from _parts(place, {name: str(value) for name, value in parts.items() if value is not None})


def _parts(place: Place, parts: dict[str, str]) -> Iterator[Finding]:
    if "@" in parts.get("host", ""):
        yield Finding(place, "has an @ in its host, which belongs to the password", "write %40 for it")
    for port in filter(None, parts.get("port", "").split(",")):
        if not port.isdecimal() or not 0 < int(port) <= HIGHEST_PORT:
            yield Finding(place, f"has the port {port}", f"write one of 1 to {HIGHEST_PORT}")
    mode = parts.get("sslmode", TLS_MODES[0])
    if mode not in TLS_MODES:
        yield Finding(place, f"has sslmode={mode}", meant(mode, TLS_MODES))


def _qdrant(name: str, store: QdrantServerSettings) -> Iterator[Finding]:
    place = (name, "url")
    if store.url == ":memory:" or store.url.startswith("/"):
        return
    if not store.url.startswith(("http://", "https://")):
        yield Finding(place, f"is {shown(store.url, ())}", "write http://host:6333, :memory: or an absolute folder")
        return
    try:
        port = urlsplit(store.url).port
    except ValueError:
        yield Finding(place, f"is {shown(store.url, ())}", f"write a port of 1 to {HIGHEST_PORT}")
        return
    if port == GRPC_PORT:
        yield warning(
            place,
            f"has the port {port}, on which Qdrant speaks gRPC",
            f"write that of REST, 6333; {port} is grpc_port's",
        )


def _falkordb(url: str) -> Iterator[Finding]:
    if not url.startswith(("redis://", "rediss://", "unix:///")):
        yield Finding(
            ("graph", "url"), f"is {shown(url, ())}", "write redis://host:6379, rediss://… or unix:///path/of/socket"
        )
