"""Contexts from a table of days: what was known before, and nothing else.

Every function takes a table with one row per series and day, and returns a data frame with the
rows of that table, to be put side by side with `pandas.concat(..., axis=1)`. `history` looks back
(lags, moving statistics), `ahead` at what is known or foretold of days to come, `dates` at the
calendar, `encoding` turns names into numbers and fills what is missing, `units` makes series of all
sizes alike. `grid` serves them.

Series are told apart by the columns `by`. Days are counted by date and not by row, so that
missing days, an order of rows or a series that starts late change nothing. A row's own outcome is
never used for it, nor any later one; `forewise.testing.check_no_future` checks that, for these
functions and for your own.

May import: exceptions. To add a function: in the module it belongs to, through `grid`; export it;
add it to the list in its tests.
"""

from forewise.features.ahead import known_ahead, weather_forecast
from forewise.features.dates import calendar
from forewise.features.encoding import fill_missing, one_hot
from forewise.features.history import days_since, lag, rolling, same_weekday
from forewise.features.units import relative_to

__all__ = [
    "calendar",
    "days_since",
    "fill_missing",
    "known_ahead",
    "lag",
    "one_hot",
    "relative_to",
    "rolling",
    "same_weekday",
    "weather_forecast",
]
