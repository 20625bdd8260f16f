"""Waiting in bounded ways: coalescing, write-behind, circuit breaker, probing."""
