"""Ctrl-C at a known moment of a training."""

from __future__ import annotations

from forewise.predictors import CosLogSchedule, Schedule


def interrupting(monkeypatch, after, error=KeyboardInterrupt):
    """Ctrl-C when so many epochs are over: the schedule is asked at the start of each."""
    calls = []

    def patch(kind):
        original = kind.factors

        def factors(self, epoch, epochs, n_steps):
            calls.append(epoch)
            if len(calls) == after + 1:
                raise error
            return original(self, epoch, epochs, n_steps)

        monkeypatch.setattr(kind, "factors", factors)

    patch(Schedule)
    patch(CosLogSchedule)
