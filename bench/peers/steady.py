# SPDX-License-Identifier: BSD-3-Clause
"""Waiting for a count that no longer changes."""
import time

STEADY_S = 0.5


def until_steady(contender, count):
    """Until `count` has been the same, and above 0, for a while."""
    last, since = count(), time.monotonic()

    def same():
        nonlocal last, since
        now = count()
        if now != last or now == 0:
            last, since = now, time.monotonic()
        return time.monotonic() - since >= STEADY_S

    contender.until(same, "as many flows as before")
