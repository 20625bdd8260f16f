"""Settings of the log."""

from pydantic import Field

from lamina.settings.section import Section


class LogsSettings(Section):
    """The log of deployments and jobs; it never holds contents."""

    json_lines: bool = Field(default=False, description="Write each line as a JSON object, with the request's id.")
    requests: bool = Field(default=False, description="Write a line for each request: route, status and time.")
    slow_search_ms: float | None = Field(
        2000,
        gt=0,
        description="Write a line for a search that takes longer, with the times of its parts; null: none.",
    )
