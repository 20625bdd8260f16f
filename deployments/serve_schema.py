"""Ray's own schema for Serve's configuration files, which `lamina config check` uses where Ray is installed."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from ray.runtime_env import RuntimeEnv
from ray.serve.schema import ServeDeploySchema

from lamina.config_check.documents import mapping_at, mappings_at
from lamina.config_check.findings import Finding, suggest_name
from lamina.config_check.model_errors import describe_errors


def check_serve_schema(document: Mapping[str, Any]) -> Iterator[Finding]:
    """Check a Serve configuration against Ray's schema, in which unknown keys are errors: Serve ignores them."""
    try:
        ServeDeploySchema.model_validate(document, extra="forbid")
    except ValidationError as error:
        yield from describe_errors(error, ServeDeploySchema, document)
    # Ray's schema leaves an application's environment open, and Ray only logs that it ignores a key.
    known = sorted(name for name in RuntimeEnv.known_fields if not name.startswith("_"))
    for number, application in mappings_at(document, "applications"):
        for name in mapping_at(application, "runtime_env").keys() - set(known):
            place = ("applications", number, "runtime_env", str(name))
            yield Finding(place, "is not known", suggest_name(str(name), known))
