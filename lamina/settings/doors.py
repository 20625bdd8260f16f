"""Settings of the doors beside the HTTP API."""

from typing import Annotated

from pydantic import AfterValidator, Field

from lamina.settings.section import Section


def _lower(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower().strip("[]") for name in names)


class McpSettings(Section):
    """The MCP server at `/mcp`."""

    hosts: Annotated[tuple[str, ...], AfterValidator(_lower)] = Field(
        ("localhost", "127.0.0.1", "::1"),
        description="Names and addresses, without a port, by which clients ask for `/mcp`; others are answered 421.",
    )
    origins: tuple[str, ...] = Field(
        (), description="Pages of other sites that may ask, as `https://app.example.com`; others are answered 403."
    )
