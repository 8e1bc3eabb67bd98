"""Where independent tasks are computed: a `Map` is a value that is passed as ``map=``.

`Processes` are those of this computer, or what `joblib.parallel_config` names; `RayMap` is a Ray
cluster. Results are the same to the bit: a task has its seed and one thread, wherever it runs. To
add an engine: a frozen dataclass that derives from `Map`.
"""

from forewise.parallel.base import Map, WorkerLostError
from forewise.parallel.cluster import RayMap
from forewise.parallel.processes import Processes

__all__ = ["Map", "Processes", "RayMap", "WorkerLostError"]
