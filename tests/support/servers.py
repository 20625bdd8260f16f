"""Servers that are there already: their URLs stand in ``LAMINA_TEST_…_URL``."""

from lamina.embedded import EmbeddedPostgres


class GivenPostgres(EmbeddedPostgres):
    """A server in the place of an embedded one, which nobody starts or stops.

    Args:
        url: URL of a database there whose user may make others.
    """

    def __init__(self, url: str) -> None:
        self._given = url

    @property
    def url(self) -> str:
        """Return the connection URL."""
        return self._given
