"""`python -m benchmarks.livez_pulse URL`: ask for `/livez` all the time, and print when and how long each took.

In a process of its own, so that whatever the benchmark does meanwhile does not count.
"""

import sys
import time

import httpx

PAUSE_S = 0.02
TIMEOUT_S = 150.0


def main() -> None:
    """Print a line for each answer: the moment it was asked for on the system's clock, and its milliseconds."""
    with httpx.Client(base_url=sys.argv[1], timeout=TIMEOUT_S) as client:
        while True:
            begin = time.monotonic()
            try:
                client.get("/livez").raise_for_status()
                elapsed_s = time.monotonic() - begin
            except httpx.HTTPError:
                elapsed_s = TIMEOUT_S
            print(begin, elapsed_s * 1000, flush=True)
            time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
