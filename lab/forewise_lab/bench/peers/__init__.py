"""The solvers that are measured: `base` is the contract, the other modules are the peers.

Packages that forewise does not depend on are imported inside the functions that use them, so
that a missing one costs a line and not the run.
"""

from forewise_lab.bench.peers.base import Answer, Gradient, Peer, PeerFailedError, Prepared
from forewise_lab.bench.peers.cvxpylayers_layer import CvxpyLayersPeer
from forewise_lab.bench.peers.moreau_batch import MoreauBatch
from forewise_lab.bench.peers.qpth_dense import QpthDense
from forewise_lab.bench.peers.solvers import ClarabelLoop, ForewisePeer, HighsLoop

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
    peers = (ForewisePeer, ClarabelLoop, HighsLoop, MoreauBatch, CvxpyLayersPeer, QpthDense)
    return tuple(peer() for peer in peers)
