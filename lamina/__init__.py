"""Tiered memory for swarms of agents."""

__version__ = "0.1.0"
