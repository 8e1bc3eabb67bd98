"""forewise measured against its peers, on the same programs, to the same accuracy.

`solver` times scenario programs (`instances`) against `peers`, `cvxpy_bench` problems written in
CVXPY, `learning` steps of training and large tables, `planning` whole files, `smps` classic
stochastic programs. To add a peer, see `peers.base`, or `smps.peers`.
"""

from forewise_lab.bench.cvxpy_bench import run_cvxpy_bench
from forewise_lab.bench.learning import run_deciding_bench, run_training_bench
from forewise_lab.bench.peers import default_peers
from forewise_lab.bench.planning import run_planning_bench
from forewise_lab.bench.results import Measurement, Measurements
from forewise_lab.bench.scale import run_scale_bench
from forewise_lab.bench.smps import run_smps_bench
from forewise_lab.bench.solver import run_solver_bench

__all__ = [
    "Measurement",
    "Measurements",
    "default_peers",
    "run_cvxpy_bench",
    "run_deciding_bench",
    "run_planning_bench",
    "run_scale_bench",
    "run_smps_bench",
    "run_solver_bench",
    "run_training_bench",
]
