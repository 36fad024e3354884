"""Check which error texts count as timeouts."""

from __future__ import annotations

import pytest

from reach_otel.publish.timeouts import is_timeout


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        ("TimeoutError", True),
        ("connect ETIMEDOUT 10.0.0.1:443", True),
        ("The read operation timed out", True),
        ("Request time-out", True),
        ("DEADLINE_EXCEEDED", True),
        ("504 Gateway Timeout", True),
        ("HTTP status 504", True),
        ("请求超时", True),
        ("order 504 not found", False),
        ("the deadline for returns is over", False),
        ("permission denied", False),
        ("", False),
        (None, False),
    ],
)
def test_an_error_text_tells_a_timeout(error: str | None, verdict: bool) -> None:
    """Texts of common libraries are known; numbers alone prove nothing."""
    assert is_timeout(error) is verdict
