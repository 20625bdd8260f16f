"""The HTTP clients, plain and awaited; they need neither Ray nor the stores.

The answers of `Lamina` and `AsyncLamina` are values (`lamina.client.models`), those of `Client` and `AsyncClient` JSON.
"""

from lamina.client.client import AsyncClient, AsyncLamina, Client, Lamina

__all__ = ["AsyncClient", "AsyncLamina", "Client", "Lamina"]
