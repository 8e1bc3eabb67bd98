"""How long a fit takes, guessed before any like it has been measured: for the first time left.

Constants are those of one core of 2026. May import: its sibling `methods`.
"""

from __future__ import annotations

from itertools import pairwise

from forewise_lab.experiments.methods import Method

_OVERHEAD = 2e-3  # of a step
_DRAW = 1.8e-8  # of a weight, in every draw of them
_PASS = 1.2e-10  # of a row through a weight, forward and back
_SOLVE = {"nv": 2.5e-3, "nvqp": 0.02, "pop": 0.012, "pop2": 0.012}  # of a batch, and back
_OUTCOMES = {"nv": 1, "nvqp": 6, "pop": 15, "pop2": 5}


def rough_seconds(method: Method, problem: str, n_train: int, m_train: int) -> float:
    """Seconds of a fit, right to a factor of three or so."""
    predictor = method.predictor
    if method.is_network:
        combined = method.learner["kind"] != "decoupled"
        solving = _SOLVE.get(problem, 0.0) if combined else 0.0
        own = predictor.get("n_scenarios", m_train)
        draws = _draws(method, m_train if combined else own)
        seconds = _training_seconds(method, method.training, n_train, draws, solving)
        if "pretraining" in method.learner:
            first = method.training | method.learner["pretraining"]
            seconds += _training_seconds(method, first, n_train, _draws(method, own), 0.0)
        return 1.0 + seconds
    if predictor.get("kind") == "gaussian-process":
        rows = min(n_train, predictor.get("max_rows", n_train))
        searches = 1 + predictor.get("n_restarts", 0)
        return 1.0 + searches * _OUTCOMES.get(problem, 1) * (rows / 1500) ** 3
    return 1.0


def _draws(method: Method, of_weights: int) -> int:
    """Networks that a batch passes through in a step."""
    kind = method.predictor.get("kind")
    if kind == "ensemble":
        return int(method.predictor.get("n_members", 5))
    return of_weights if kind in ("bayesian", "mixture") else 1


def _training_seconds(
    method: Method, training: dict[str, int], n_train: int, draws: int, solving: float
) -> float:
    n_weights = sum(a * b for a, b in pairwise(method.hidden_sizes))
    batch_size = training.get("batch_size", 128)
    step = _OVERHEAD + draws * n_weights * (_DRAW + _PASS * batch_size) + solving
    return training.get("epochs", 200) * n_train / batch_size * step
