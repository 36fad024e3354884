"""Check what is said seldom."""

from __future__ import annotations

import time

from reach_otel.clock import Seldom


def test_it_is_said_once_in_its_time_for_each_key() -> None:
    """At first always, then not until the time is over; one key takes nothing from another."""
    may = Seldom(0.2)
    assert [may("a"), may("a"), may("b"), may(), may("a")] == [True, False, True, True, False]
    time.sleep(0.25)
    assert [may("a"), may("a")] == [True, False]
    assert [Seldom()() for _ in range(2)] == [True, True]
