"""How much a run of the tests tries."""

import os

# Whether what is tried again and again is tried as often as `make test-long` does.
IS_LONG = bool(os.environ.get("LAMINA_TEST_LONG"))
