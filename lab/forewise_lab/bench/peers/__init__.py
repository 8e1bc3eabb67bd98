"""The solvers that are measured: `base` is the contract, every other module is one peer.

Packages that forewise does not depend on are imported inside the functions that use them, so
that a missing one costs a line and not the run.
"""

from forewise_lab.bench.peers.base import Answer, Gradient, Peer, PeerFailedError, Prepared
from forewise_lab.bench.peers.clarabel_loop import ClarabelLoop
from forewise_lab.bench.peers.cvxpylayers_layer import CvxpyLayersPeer
from forewise_lab.bench.peers.forewise_peer import ForewisePeer
from forewise_lab.bench.peers.highs_loop import HighsLoop
from forewise_lab.bench.peers.moreau_batch import MoreauBatch
from forewise_lab.bench.peers.qpth_dense import QpthDense

__all__ = [
    "Answer",
    "ClarabelLoop",
    "CvxpyLayersPeer",
    "ForewisePeer",
    "Gradient",
    "HighsLoop",
    "MoreauBatch",
    "Peer",
    "PeerFailedError",
    "Prepared",
    "QpthDense",
    "default_peers",
]


def default_peers() -> tuple[Peer, ...]:
    """Every peer, forewise first."""
    return (
        ForewisePeer(),
        ClarabelLoop(),
        HighsLoop(),
        MoreauBatch(),
        CvxpyLayersPeer(),
        QpthDense(),
    )
