"""forewise measured against its peers, on the same programs, to the same accuracy.

    instances, lifted < peers < accuracy, results < measure, growth < bars < tables, plot
        < report < runner

`plan` says what is measured, `runner` measures it; `training` times steps of learning,
`deciding` large tables and `modelling` problems written in CVXPY, apart from all that. To add a
peer, see `peers.base`; to add an instance, see `instances`.
"""

from forewise_lab.bench.deciding import run_deciding_bench
from forewise_lab.bench.modelling import run_cvxpy_bench
from forewise_lab.bench.peers import default_peers
from forewise_lab.bench.results import Measurement, Results
from forewise_lab.bench.runner import run_solver_bench
from forewise_lab.bench.training import run_training_bench

__all__ = [
    "Measurement",
    "Results",
    "default_peers",
    "run_cvxpy_bench",
    "run_deciding_bench",
    "run_solver_bench",
    "run_training_bench",
]
