"""Check that signals to end are heard, and by whom."""

from __future__ import annotations

import signal

import pytest

from reach_otel.demo.stop import asked_to_stop


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_an_answer_and_interrupts_nothing(number: signal.Signals) -> None:
    """The question is false before and true after; what handled the signal before handles it again at the end."""
    before = signal.getsignal(number)
    with asked_to_stop() as asked:
        answers = [asked()]
        signal.raise_signal(number)
        answers.append(asked())
    assert answers == [False, True]
    assert signal.getsignal(number) is before


def test_under_nohup_a_closed_terminal_is_no_reason_to_end() -> None:
    """An ignored SIGHUP stays ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with asked_to_stop() as asked:
            signal.raise_signal(signal.SIGHUP)
            assert not asked()
    finally:
        signal.signal(signal.SIGHUP, before)
