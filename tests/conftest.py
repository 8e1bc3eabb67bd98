"""Each test process computes in one thread, and so do the processes that it starts.

Two workers with a thread per core each wait for one another at every barrier of OpenMP: small
fits of trees and networks then take a hundred times as long.
"""

from __future__ import annotations

import os

# Read when the libraries are loaded: pytest imports this file before any test.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"
