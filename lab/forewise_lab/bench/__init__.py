"""forewise measured against its peers, on the same programs, to the same accuracy.

`solver` times scenario programs (`instances`) against `peers`, `cvxpy_bench` problems written in
CVXPY, `learning` steps of training and large tables, `planning` whole files, `scale` engines
and workers, `smps` classic stochastic programs. To add a peer, see `peers.base`, or `smps.peers`.
"""
