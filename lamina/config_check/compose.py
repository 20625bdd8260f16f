"""A compose file of development servers."""

from collections.abc import Iterator, Mapping
from typing import Any

from lamina.config_check.findings import Finding, warning
from lamina.config_check.shapes import (
    ANYTHING,
    COUNT,
    FLAG,
    LABELS,
    NUMBER,
    TEXT,
    TEXTS,
    Either,
    Listed,
    Mapped,
    Text,
    keyed,
    unchecked,
)

_DURATION = Text(pattern=r"(\d+(\.\d+)?(us|ms|s|m|h))+", meaning="a duration, as in 5s")
_VALUES = Mapped(Either((TEXT, NUMBER, FLAG)))
HEALTHCHECK = keyed(
    "",
    test=Either((TEXTS, TEXT)),
    interval=_DURATION,
    timeout=_DURATION,
    retries=COUNT,
    start_period=_DURATION,
    start_interval=_DURATION,
    disable=FLAG,
)
SERVICE = keyed(
    "",
    image=TEXT,
    build=ANYTHING,
    command=Either((TEXTS, TEXT)),
    entrypoint=Either((TEXTS, TEXT)),
    environment=Either((_VALUES, TEXTS)),
    ports=Listed(Either((TEXT, Mapped(ANYTHING)))),
    volumes=Listed(Either((TEXT, Mapped(ANYTHING)))),
    healthcheck=HEALTHCHECK,
    depends_on=Either((TEXTS, Mapped(ANYTHING))),
    restart=TEXT,
    profiles=TEXTS,
    labels=Either((LABELS, TEXTS)),
    **unchecked(
        "user working_dir hostname container_name networks env_file expose shm_size stop_grace_period tmpfs ulimits "
        "mem_limit cpus deploy logging read_only security_opt cap_add cap_drop init platform pull_policy secrets "
        "configs extra_hosts sysctls"
    ),
)
COMPOSE = keyed(
    "services",
    name=TEXT,
    services=Mapped(SERVICE),
    volumes=Mapped(ANYTHING),
    **unchecked("networks secrets configs version include"),
)


def check_compose(document: Mapping[str, Any]) -> Iterator[Finding]:
    """Return what is wrong with a compose file."""
    found = list(COMPOSE.check(document, ()))
    yield from found
    if found:
        return
    declared = document.get("volumes") or {}
    for name, service in document["services"].items():
        yield from _service(name, service, declared)


def _service(name: str, service: Mapping[str, Any], declared: Mapping[str, Any]) -> Iterator[Finding]:
    place = ("services", name)
    if "image" not in service and "build" not in service:
        yield Finding((*place, "image"), "is missing", "name an image, or what to build")
    if str(service.get("image", "")).endswith(":latest") or ":" not in str(service.get("image", ":")):
        yield warning((*place, "image"), f"is {service['image']}, another one every day", "name a version")
    if "healthcheck" not in service:
        yield warning((*place, "healthcheck"), "is missing: nothing waits until it answers", "write one")
    for number, port in enumerate(service.get("ports") or []):
        if not _is_local(port):
            yield warning((*place, "ports", number), f"is {port}, open to the network", "write 127.0.0.1: before it")
    for number, volume in enumerate(service.get("volumes") or []):
        source = str(volume.get("source", "/") if isinstance(volume, Mapping) else volume).partition(":")[0]
        if source[:1] not in ("/", ".", "~", "") and source not in declared:
            yield Finding((*place, "volumes", number), f"{source} is not declared", "list it in volumes below")


def _is_local(port: Any) -> bool:
    address = port.get("host_ip", "") if isinstance(port, Mapping) else str(port)
    return str(address).startswith(("127.0.0.1", "[::1]"))
