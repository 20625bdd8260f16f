"""How urgent a thread is to the processors."""

import os
import sys
import threading
from contextlib import suppress

NICENESS = 5
"""Beside a thread of the usual urgency on the same processor, one that stands back has a quarter of it."""


def stand_back() -> None:
    """Make this thread less urgent than the rest, where that can be: on Linux a thread has its own niceness."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        with suppress(OSError):  # A hardened unit or container may forbid the call.
            os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + NICENESS)
