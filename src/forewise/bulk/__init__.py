"""Decisions for folders of files: part by part, on this computer, Ray or Dask.

`decide_files` is the way in; `parts` says which files there are and which are done, `job` decides
one of them in a worker, `engines` where workers are. To add an engine: a frozen dataclass that
derives from `Engine`, in `ENGINES`.
"""

from forewise.bulk.engines import DaskEngine, Engine, LocalEngine, RayEngine
from forewise.bulk.run import Summary, decide_files

__all__ = ["DaskEngine", "Engine", "LocalEngine", "RayEngine", "Summary", "decide_files"]
