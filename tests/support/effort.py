"""How much a run of the tests tries, and what its workers may not do at the same time."""

import os

import pytest

IS_LONG = bool(os.environ.get("LAMINA_TEST_LONG"))
"""Whether what is tried again and again is tried as often as `make test-long` does."""
NEEDS_RAY = pytest.mark.xdist_group("ray")
"""One worker has all these: each starts a dozen processes, more than two cores are quick enough for twice."""
