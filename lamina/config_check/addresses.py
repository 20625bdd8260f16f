"""URLs of servers: mistakes that their clients would find only once the service starts, or wait for in vain."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from lamina.config_check.findings import Finding, Place, describe_value, suggest_name, warning
from lamina.config_check.settings_file import DATABASE_PLACEHOLDER, PLACEHOLDER
from lamina.settings.loading import ENV_PREFIX, Settings
from lamina.settings.stores import FalkorDBServerSettings, PostgresServerSettings, QdrantServerSettings

TLS_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
GRPC_PORT = 6334
MAX_PORT = 65_535
_TEMPLATE = re.compile(r"\$\{|\$\(|\{\{")


def check_addresses(settings: Settings) -> Iterator[Finding]:
    """Check the URLs in settings, except those that the environment gives."""
    if isinstance(settings.postgres, PostgresServerSettings):
        yield from _check_database(settings.postgres)
    for name in ("hybrid", "vectors"):
        store = getattr(settings, name)
        if isinstance(store, QdrantServerSettings):
            yield from _check_url((name, "url"), store.url, _check_qdrant((name, "url"), store.url))
    if isinstance(settings.graph, FalkorDBServerSettings):
        yield from _check_url(("graph", "url"), settings.graph.url, _check_falkordb(settings.graph.url))


def _check_url(place: Place, url: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """Return the findings about a URL, unless it is a placeholder."""
    if PLACEHOLDER in url:
        return
    if _TEMPLATE.search(url):
        variable = ENV_PREFIX + "__".join(map(str, place)).upper()
        fault = f"is {describe_value(url)}, in which nobody fills anything in"
        yield Finding(place, fault, f"take it out, and set {variable}")
    else:
        yield from findings


def _check_database(postgres: PostgresServerSettings) -> Iterator[Finding]:
    for name in ("url", "direct_url"):
        url = getattr(postgres, name)
        if url is not None:
            yield from _check_url(("postgres", name), url, _check_postgres(("postgres", name), url))
    is_url_given = PLACEHOLDER not in postgres.url
    if postgres.pooling == "transaction" and postgres.direct_url == DATABASE_PLACEHOLDER and is_url_given:
        yield warning(
            ("postgres", "direct_url"),
            "is missing, and pooling is transaction",
            f"write it, or set {ENV_PREFIX}POSTGRES__DIRECT_URL: locks and notifications need a way past the pooler",
        )


def _check_postgres(place: Place, url: str) -> Iterator[Finding]:
    if not url.startswith(("postgresql://", "postgres://")):
        yield Finding(place, f"is {describe_value(url)}", "write postgresql://user@host:5432/database")
        return
    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    except ProgrammingError:  # Its text quotes the URL, password and all.
        remedy = "write postgresql://user@host:5432/database?option=value"
        yield Finding(place, f"cannot be read: {describe_value(url)}", remedy)
        return
    if "@" in parts.get("host", ""):
        yield Finding(place, "has an @ in its host, which belongs to the password", "write %40 for it")
    for port in filter(None, parts.get("port", "").split(",")):
        if not port.isdecimal() or not 0 < int(port) <= MAX_PORT:
            yield Finding(place, f"has the port {port}", f"write one of 1 to {MAX_PORT}")
    mode = parts.get("sslmode", TLS_MODES[0])
    if mode not in TLS_MODES:
        yield Finding(place, f"has sslmode={mode}", suggest_name(mode, TLS_MODES))


def _check_qdrant(place: Place, url: str) -> Iterator[Finding]:
    if url == ":memory:" or url.startswith("/"):
        return
    if not url.startswith(("http://", "https://")):
        yield Finding(place, f"is {describe_value(url)}", "write http://host:6333, :memory: or an absolute folder")
        return
    try:
        port = urlsplit(url).port
    except ValueError:
        yield Finding(place, f"is {describe_value(url)}", f"write a port of 1 to {MAX_PORT}")
        return
    if port == GRPC_PORT:
        remedy = f"write that of REST, 6333; {port} is grpc_port's"
        yield warning(place, f"has the port {port}, on which Qdrant speaks gRPC", remedy)


def _check_falkordb(url: str) -> Iterator[Finding]:
    if not url.startswith(("redis://", "rediss://", "unix:///")):
        remedy = "write redis://host:6379, rediss://… or unix:///path/of/socket"
        yield Finding(("graph", "url"), f"is {describe_value(url)}", remedy)
