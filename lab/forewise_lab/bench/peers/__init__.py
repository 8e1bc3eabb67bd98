"""The solvers that are measured: `base` is the contract, the other modules are the peers.

Packages that forewise does not depend on are imported inside the functions that use them, so
that a missing one costs a line and not the run.
"""

from forewise_lab.bench.peers import cvxpylayers_layer, moreau_batch, qpth_dense, solvers
from forewise_lab.bench.peers.base import Peer


def default_peers() -> tuple[Peer, ...]:
    """Every peer, forewise first."""
    trusted = solvers.ForewisePeer(), solvers.ClarabelLoop(), solvers.HighsLoop()
    layer = cvxpylayers_layer.CvxpyLayersPeer()
    return *trusted, moreau_batch.MoreauBatch(), layer, qpth_dense.QpthDense()
