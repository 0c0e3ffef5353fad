"""Conditions that tests wait for."""
import sys
import time

SECONDS = 300  # what has not happened after these never will


def comes_true(condition):
    """Waits for `condition`; False if it never holds."""
    end = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def wait_until(condition, what):
    """Returns when `condition` holds; the test fails if it never does."""
    if not comes_true(condition):
        sys.exit(f"{what}: not within {SECONDS} s")
