"""How urgent a thread is to the processors."""

import os
import sys
import threading

NICENESS = 5
"""Beside a thread of the usual urgency on the same processor, one that stands back has a quarter of it."""


def stand_back() -> None:
    """Make this thread less urgent than the rest; on Linux alone, where a thread has its own niceness."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + NICENESS)
