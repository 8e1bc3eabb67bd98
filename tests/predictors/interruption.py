"""Ctrl-C at a known moment of a training."""

from __future__ import annotations

from forewise.predictors.networks import training as loop


def interrupting(monkeypatch, after):
    """Ctrl-C when so many epochs are over."""
    original, calls = loop._epoch, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == after + 1:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(loop, "_epoch", interrupted)
