"""Serve's own configuration, `serve deploy FILE`: Serve itself ignores keys that it does not know.

The keys are those of Ray's schema, which this library does not import; a test compares.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lamina.config_check.consistency import disagreements, on_cluster
from lamina.config_check.findings import Finding, Place, repeated, under, warning
from lamina.config_check.ray_variables import misspelt
from lamina.config_check.settings_file import Variables, read_settings
from lamina.config_check.shapes import (
    ANYTHING,
    COUNT,
    FLAG,
    LABELS,
    NUMBER,
    OPEN,
    PORT,
    POSITIVE,
    TEXT,
    TEXTS,
    Either,
    Listed,
    Mapped,
    Number,
    Text,
    keyed,
    shown,
    unchecked,
)
from lamina.settings import Settings

BUILDER = "deployments.app:build"
BUILDERS = (BUILDER, BUILDER.replace(":", "."))
"""How the application is named; Ray takes both."""
REMOTE = ("http", "https", "s3", "gs", "azure", "abfss", "file")
"""Protocols from which Ray takes a working directory; `local` names one that every node has."""
_IMPORT_PATH = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*|\.[A-Za-z_]\w*)"
_REMOTE_PACKAGE = rf"({'|'.join(REMOTE)})://\S+\.(zip|whl|tar\.gz|tgz|tar\.bz2|tbz2?|tar\.xz|txz|jar)(\?\S*)?"
_ADDRESS_OF_ONE = ("127.0.0.1", "localhost", "::1")
RUNTIME_ENV = keyed(
    "",
    working_dir=TEXT,
    py_modules=TEXTS,
    env_vars=LABELS,
    **unchecked("py_executable excludes java_jars conda uv pip container image_uri config worker_process_setup_hook"),
)
LOGGING = keyed(
    "",
    encoding=Text(("TEXT", "JSON")),
    log_level=Either((TEXT, COUNT)),
    logs_dir=TEXT,
    enable_access_log=FLAG,
    additional_log_standard_attrs=TEXTS,
)
AUTOSCALING = keyed(
    "",
    min_replicas=COUNT,
    initial_replicas=COUNT,
    max_replicas=POSITIVE,
    target_ongoing_requests=NUMBER,
    metrics_interval_s=NUMBER,
    look_back_period_s=NUMBER,
    smoothing_factor=NUMBER,
    upscale_smoothing_factor=NUMBER,
    downscale_smoothing_factor=NUMBER,
    upscaling_factor=NUMBER,
    downscaling_factor=NUMBER,
    upscale_delay_s=NUMBER,
    downscale_delay_s=NUMBER,
    downscale_to_zero_delay_s=NUMBER,
    aggregation_function=Text(("mean", "max", "min")),
    policy=keyed("", policy_function=TEXT, policy_kwargs=OPEN),
)
ROUTING = keyed(
    "",
    request_router_class=TEXT,
    request_router_kwargs=OPEN,
    request_routing_stats_period_s=NUMBER,
    request_routing_stats_timeout_s=NUMBER,
    initial_backoff_s=NUMBER,
    backoff_multiplier=NUMBER,
    max_backoff_s=NUMBER,
)
ACTOR = keyed(
    "",
    runtime_env=RUNTIME_ENV,
    num_cpus=NUMBER,
    num_gpus=NUMBER,
    memory=NUMBER,
    resources=Mapped(NUMBER),
    accelerator_type=TEXT,
    label_selector=LABELS,
    fallback_strategy=Listed(OPEN),
)
DEPLOYMENT = keyed(
    "name",
    name=TEXT,
    num_replicas=Either((POSITIVE, Text(("auto",)))),
    max_ongoing_requests=POSITIVE,
    max_queued_requests=Number(least=-1, is_whole=True),
    backpressure_config=keyed("", status_code=COUNT, retry_after_s=NUMBER),
    user_config=OPEN,
    autoscaling_config=AUTOSCALING,
    graceful_shutdown_wait_loop_s=NUMBER,
    graceful_shutdown_timeout_s=NUMBER,
    health_check_period_s=NUMBER,
    health_check_timeout_s=NUMBER,
    ray_actor_options=ACTOR,
    placement_group_bundles=Listed(Mapped(NUMBER)),
    placement_group_strategy=Text(("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")),
    placement_group_bundle_label_selector=Listed(LABELS),
    max_replicas_per_node=POSITIVE,
    logging_config=LOGGING,
    request_router_config=ROUTING,
    gang_scheduling_config=OPEN,
    deployment_actors=Listed(OPEN),
    rolling_update_percentage=Number(most=100),
    max_surge_percent=Number(most=100, is_whole=True),
)
APPLICATION = keyed(
    "import_path",
    name=TEXT,
    route_prefix=Text(pattern=r"/\S*", meaning="a path that begins with /"),
    import_path=Text(pattern=_IMPORT_PATH, meaning="module.path:name"),
    runtime_env=RUNTIME_ENV,
    host=TEXT,
    port=PORT,
    deployments=Listed(DEPLOYMENT),
    autoscaling_policy=OPEN,
    args=ANYTHING,
    logging_config=LOGGING,
    external_scaler_enabled=FLAG,
)
HTTP = keyed(
    "",
    host=TEXT,
    port=PORT,
    root_path=TEXT,
    request_timeout_s=NUMBER,
    keep_alive_timeout_s=COUNT,
    ssl_keyfile=TEXT,
    ssl_certfile=TEXT,
    ssl_keyfile_password=TEXT,
    ssl_ca_certs=TEXT,
)
GRPC = keyed("", port=PORT, grpc_servicer_functions=TEXTS, request_timeout_s=NUMBER, enable_reflection=FLAG)
DEPLOY = keyed(
    "applications",
    proxy_location=Text(("Disabled", "HeadOnly", "EveryNode")),
    http_options=HTTP,
    grpc_options=GRPC,
    controller_options=keyed("", runtime_env=RUNTIME_ENV),
    logging_config=LOGGING,
    tracing_config=keyed("", enabled=FLAG, exporter_import_path=TEXT, sampling_ratio=Number(most=1)),
    applications=Listed(APPLICATION, least=1),
    target_capacity=Number(most=100),
)


def check_serve(document: Mapping[str, Any], file: Any = None, variables: Variables | None = None) -> Iterator[Finding]:
    """Return what is wrong with a Serve configuration.

    Args:
        document: The whole of it.
        file: The settings file that its processes read, which the application's arguments go before.
        variables: Their environment.
    """
    found = list(DEPLOY.check(document, ()))
    yield from found
    for number, application in enumerate(_applications(document)):
        place: Place = ("applications", number)
        yield from under(_working_dirs(application), *place)
        yield from under(_variables_of(application), *place)
        if application.get("import_path") in BUILDERS:
            yield from _ours(document, application, place, file, variables)
    for key in ("name", "route_prefix"):
        yield from repeated([item.get(key) for item in _applications(document)], ("applications",), key)


def served_settings(
    document: Mapping[str, Any], file: Any = None, variables: Variables | None = None
) -> Settings | None:
    """Return the settings that our application of a Serve configuration will have, if they are valid."""
    ours = [item for item in _applications(document) if item.get("import_path") in BUILDERS]
    return read_settings(_above(ours[0].get("args"), file), variables)[0] if ours else None


def _applications(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = document.get("applications")
    return [item for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else []


def _ours(
    document: Mapping[str, Any], application: Mapping[str, Any], place: Place, file: Any, variables: Variables | None
) -> Iterator[Finding]:
    args = application.get("args")
    settings, found = read_settings(_above(args, file), variables)
    yield from under(found, *place, "args")
    if application.get("deployments"):
        yield warning(
            (*place, "deployments"), "goes before what `serve` in the settings says", "say it there, in `serve`"
        )
    if settings is not None:
        yield from under(disagreements(settings), *place, "args")
        yield from under(_on_cluster(settings, args, file, variables), *place, "args")
        yield from _request_timeout(document, settings)


def _on_cluster(settings: Settings, args: Any, file: Any, variables: Variables | None) -> Iterator[Finding]:
    """Return what only `lamina up` starts; what nobody says here, the environment on the cluster may say."""
    is_known = file is not None or variables is not None
    for finding in on_cluster(settings):
        section = finding.place[0]
        if is_known or (isinstance(args, Mapping) and section in args):
            yield finding


def _above(args: Any, file: Any) -> Any:
    """Return the arguments over the file, section by section, as the settings' own sources do."""
    if not isinstance(args, Mapping) or not isinstance(file, Mapping):
        return args or file
    merged = dict(file)
    for name, value in args.items():
        merged[name] = _above(value, merged.get(name)) if isinstance(value, Mapping) else value
    return merged


def _request_timeout(document: Mapping[str, Any], settings: Settings) -> Iterator[Finding]:
    options = document.get("http_options") or {}
    timeout = options.get("request_timeout_s") if isinstance(options, Mapping) else None
    longest = max(settings.write.embed_deadline_s, settings.caches.semantic.max_wait_s)
    place = ("http_options", "request_timeout_s")
    if timeout is None:
        yield warning(place, "is missing: requests may last for ever", f"write one above {longest:g}")
    elif isinstance(timeout, int | float) and timeout < longest:
        yield warning(
            place,
            f"is {timeout:g}, less than write.embed_deadline_s or caches.semantic.max_wait_s ({longest:g})",
            "raise it: what still may come would be cut off",
        )


def reachable_host(document: Mapping[str, Any]) -> Iterator[Finding]:
    """Return the address of HTTP, if nobody reaches it from another machine."""
    options = document.get("http_options") or {}
    host = options.get("host") if isinstance(options, Mapping) else None
    if host in _ADDRESS_OF_ONE:
        yield Finding(("http_options", "host"), f"is {host}: no other pod reaches it", "write 0.0.0.0")


def _working_dirs(application: Mapping[str, Any]) -> Iterator[Finding]:
    environment = application.get("runtime_env")
    if not isinstance(environment, Mapping):
        return
    places: list[tuple[Place, Any]] = [(("working_dir",), environment.get("working_dir"))]
    modules = environment.get("py_modules")
    places += [(("py_modules", n), item) for n, item in enumerate(modules if isinstance(modules, list) else [])]
    for place, uri in places:
        if isinstance(uri, str) and not is_uri(uri):
            yield Finding(
                ("runtime_env", *place),
                f"is {shown(uri, place)}",
                f"write local:///a/folder that every node has, or a package: {'|'.join(REMOTE)}://….zip",
            )


def is_uri(uri: str) -> bool:
    """Tell whether Serve takes this as a working directory."""
    return re.fullmatch(_REMOTE_PACKAGE, uri) is not None or re.fullmatch(r"local:///\S+", uri) is not None


def _variables_of(application: Mapping[str, Any]) -> Iterator[Finding]:
    environment = application.get("runtime_env")
    names = environment.get("env_vars") if isinstance(environment, Mapping) else None
    if not isinstance(names, Mapping):
        return
    place = ("runtime_env", "env_vars")
    yield from misspelt(names, place)
    for name in names:
        if str(name).startswith("RAY_"):
            yield warning((*place, str(name)), "comes too late: Ray reads it when it starts", "set it where Ray starts")
