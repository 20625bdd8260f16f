"""The HTTP client, sync and async; it needs neither Ray nor the stores."""

from lamina.client.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]
