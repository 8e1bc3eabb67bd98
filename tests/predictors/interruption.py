"""Ctrl-C at a known moment of a training."""

from __future__ import annotations

from forewise.predictors import CosineSchedule


def interrupting(monkeypatch, after, error=KeyboardInterrupt):
    """Ctrl-C when so many epochs are over: the schedule is asked at the start of each."""
    original, calls = CosineSchedule.factor, []

    def factor(self, epoch, epochs):
        calls.append(epoch)
        if len(calls) == after + 1:
            raise error
        return original(self, epoch, epochs)

    monkeypatch.setattr(CosineSchedule, "factor", factor)
