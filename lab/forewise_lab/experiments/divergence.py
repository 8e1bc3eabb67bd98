"""What a weight of the divergence from the prior means, in the paper's words and in forewise's.

May import: nothing of forewise.
"""

from __future__ import annotations

import math


def paper_kl_weight(
    K: float, *, n_rows: int, batch_size: int, n_outcomes: int, n_weights: int, unit: float = 2.0
) -> float:
    """The `kl_weight` that weighs the divergence as the paper's K does.

    The paper minimises ``loss + K · KL / (n_weights · n_batches)``, forewise
    ``loss / unit + kl_weight · KL / (n_rows · n_outcomes)``. They are the same up to the factor
    `unit` if

        kl_weight = K · n_rows · n_outcomes / (unit · n_weights · n_batches)

    Decoupled, the paper's loss per outcome is twice the negative log-likelihood: `unit` is 2.
    Combined, its loss is the cost itself, which forewise divides by the regret of ignoring the
    context: that is the `unit` then.

    Parameters
    ----------
    K : float
    n_rows, batch_size, n_outcomes : int
        Of the training data.
    n_weights : int
        Weights and biases of the network.
    unit : float

    Examples
    --------
    The decoupled newsvendor, with the authors' own network (64, 32, 32): far below 1.

    >>> weight = paper_kl_weight(1.0, n_rows=1800, batch_size=32, n_outcomes=1, n_weights=3330)
    >>> round(weight, 4)
    0.0047
    """
    n_batches = math.ceil(n_rows / batch_size)
    return K * n_rows * n_outcomes / (unit * n_weights * n_batches)
