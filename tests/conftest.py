"""One thread per test process: two on each of two busy cores are up to 20 times slower."""

import os

# Before torch and scikit-learn are imported, and for the processes that tests start.
for _library in ("OMP", "MKL", "OPENBLAS"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
