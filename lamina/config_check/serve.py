"""Serve's configuration file: the settings in the application's arguments, and its environment.

Its other keys are checked by Ray's own schema, which this package must not import and is handed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from lamina.config_check.consistency import check_consistency, refuse_embedded_servers, refuse_local_archive
from lamina.config_check.documents import mapping_at, mappings_at, value_at
from lamina.config_check.findings import Finding, Place, describe_value, nearest_name, under, warning
from lamina.config_check.ray_variables import PREFIX, find_misspelt
from lamina.config_check.settings_file import Variables, read_settings
from lamina.settings.loading import Settings

# A text and not the function: this package runs where Ray is not installed.
BUILDER = "deployments.app:build"
# Import paths of the application; Ray takes both.
BUILDERS = (BUILDER, BUILDER.replace(":", "."))
LOOPBACK = ("127.0.0.1", "localhost", "::1")
# Checks a whole Serve configuration against Ray's schema.
SchemaCheck = Callable[[Mapping[str, Any]], Iterable[Finding]]


def note_missing_schema(_document: Mapping[str, Any]) -> Iterator[Finding]:
    """Return a note in place of the findings of Ray's schema."""
    remedy = "install lamina-memory[serve]"
    yield Finding((), "keys of Ray Serve are not checked, for which Ray is needed", remedy, "note")


def check_serve(
    document: Mapping[str, Any],
    check_schema: SchemaCheck,
    settings_file: Any = None,
    variables: Variables | None = None,
) -> Iterator[Finding]:
    """Check a Serve configuration.

    Args:
        document: The whole of it.
        check_schema: Finds the mistakes against Ray's schema.
        settings_file: The settings file that its processes read; the application's arguments go before it.
        variables: Their environment.
    """
    yield from check_schema(document)
    for number, application in mappings_at(document, "applications"):
        place: Place = ("applications", number)
        yield from under(_check_environment(application), *place, "runtime_env", "env_vars")
        import_path = application.get("import_path")
        if import_path in BUILDERS:
            yield from under(_check_application(application, settings_file, variables), *place)
            settings = _read_arguments(application, settings_file, variables)[0]
            yield from _check_request_timeout(document, settings) if settings else ()
        elif nearest_name(str(import_path), BUILDERS):
            fault = f"is {describe_value(import_path)}, which is not Lamina's application"
            yield warning((*place, "import_path"), fault, f"did you mean {BUILDER}?")


def served_settings(
    document: Mapping[str, Any], settings_file: Any = None, variables: Variables | None = None
) -> Settings | None:
    """Return the settings that Lamina's application will have, if they are valid."""
    for _, application in mappings_at(document, "applications"):
        if application.get("import_path") in BUILDERS:
            return _read_arguments(application, settings_file, variables)[0]
    return None


def _check_application(
    application: Mapping[str, Any], settings_file: Any, variables: Variables | None
) -> Iterator[Finding]:
    settings, found = _read_arguments(application, settings_file, variables)
    yield from under(found, "args")
    if application.get("deployments"):
        yield warning(("deployments",), "goes before what `serve` in the settings says", "say it there, in `serve`")
    if settings is None:
        return
    yield from under(check_consistency(settings), "args")
    is_complete = settings_file is not None or variables is not None
    for finding in (*refuse_embedded_servers(settings), *refuse_local_archive(settings)):
        # Sections that are not written here may be set by the environment on the cluster.
        if is_complete or finding.place[0] in mapping_at(application, "args"):
            yield finding.under("args")


def _read_arguments(
    application: Mapping[str, Any], settings_file: Any, variables: Variables | None
) -> tuple[Settings | None, list[Finding]]:
    return read_settings(_merge(application.get("args"), settings_file), variables)


def _merge(args: Any, settings_file: Any) -> Any:
    """Return the arguments over the file, section by section, as the settings' own sources do."""
    if not isinstance(args, Mapping) or not isinstance(settings_file, Mapping):
        return args or settings_file
    merged = dict(settings_file)
    for name, value in args.items():
        merged[name] = _merge(value, merged.get(name)) if isinstance(value, Mapping) else value
    return merged


def _check_request_timeout(document: Mapping[str, Any], settings: Settings) -> Iterator[Finding]:
    timeout = value_at(document, "http_options", "request_timeout_s")
    write, documents = settings.write, settings.documents
    waits_s = {
        "write.embed_deadline_s and write.embed_budget_s": write.embed_deadline_s + write.embed_budget_s,
        "write.embed_deadline_s, documents.parse_deadline_s and documents.embed_budget_s": write.embed_deadline_s
        + documents.parse_deadline_s
        + documents.embed_budget_s,
        "caches.semantic.max_wait_s": settings.caches.semantic.max_wait_s,
        "erasure.wait_s": settings.erasure.wait_s,
    }
    named, longest = max(waits_s.items(), key=lambda item: item[1])
    place = ("http_options", "request_timeout_s")
    if timeout is None:
        yield warning(place, "is missing: requests may last for ever", f"write one above {longest:g}")
    elif isinstance(timeout, int | float) and timeout < longest:
        yield warning(
            place,
            f"is {timeout:g}, less than {named} ({longest:g})",
            "raise it: what still may come would be cut off",
        )


def check_reachable_host(document: Mapping[str, Any]) -> Iterator[Finding]:
    """Return an error if no other machine reaches the address of HTTP."""
    host = value_at(document, "http_options", "host")
    if host in LOOPBACK:
        yield Finding(("http_options", "host"), f"is {host}: no other pod reaches it", "write 0.0.0.0")


def _check_environment(application: Mapping[str, Any]) -> Iterator[Finding]:
    names = [str(name) for name in mapping_at(application, "runtime_env", "env_vars")]
    yield from find_misspelt(names)
    for name in names:
        if name.startswith(PREFIX):
            yield warning((name,), "comes too late: Ray reads it when it starts", "set it where Ray starts")
