"""The check of a configuration before anything starts: no Ray, no server."""

from lamina.config_check.check import ConfigFile, check_files
from lamina.config_check.findings import Finding
from lamina.config_check.settings_yaml import settings_as_yaml

__all__ = ["ConfigFile", "Finding", "check_files", "settings_as_yaml"]
