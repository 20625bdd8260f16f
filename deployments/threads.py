"""How often the threads of a replica take turns at its interpreter."""

import sys

SWITCH_S = 0.001
"""A loop waits for the interpreter whenever something has arrived; beside a thread that reads a long text, 5 ms, as
Python has it, make 200 ms of a search that waits forty times."""


def take_short_turns() -> None:
    """Have a thread that works give the interpreter to one that waits for it after a millisecond."""
    sys.setswitchinterval(SWITCH_S)
