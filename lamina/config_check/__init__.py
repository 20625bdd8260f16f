"""Says what is wrong with a configuration before anything starts: no I/O, no Ray, no server."""

from lamina.config_check.check import Source, check
from lamina.config_check.findings import Finding
from lamina.config_check.show import lines_of

__all__ = ["Finding", "Source", "check", "lines_of"]
