"""Settings of a predictor by the out-of-fold cost of decisions, with Optuna (extra `tune`).

`tune` is the way in, `TunedLearner` the learner behind it. `space` says which settings there are,
`search` asks Optuna, evaluates and prunes, `result` is what comes of it;
`forewise.plots.TuningDisplay` draws it.
"""

from forewise.tuning.result import Tuning
from forewise.tuning.search import Search, TunedLearner, tune
from forewise.tuning.space import Between, OneOf, default_space

__all__ = ["Between", "OneOf", "Search", "TunedLearner", "Tuning", "default_space", "tune"]
