"""Give every test the same start: a fixed Hypothesis profile, and no settings from the machine's own environment."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run, so that a red test is a change in the code. HYPOTHESIS_PROFILE=explore looks further.
settings.register_profile(
    "fixed", derandomize=True, max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", settings.get_profile("fixed"), derandomize=False, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("REACH_", "OTEL_")) and not name.startswith("REACH_TEST_"):
            monkeypatch.delenv(name)
