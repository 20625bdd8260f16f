"""Says what is wrong with a configuration before anything starts: no I/O, no Ray, no server."""

from lamina.configuration.checking import Source, check
from lamina.configuration.findings import Finding
from lamina.configuration.showing import lines_of

__all__ = ["Finding", "Source", "check", "lines_of"]
