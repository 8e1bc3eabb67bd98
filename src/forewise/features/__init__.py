"""Contexts from a table with one row per series and day, without looking into the future.

Every function returns a data frame with the rows of the table, to be joined by
`pandas.concat(..., axis=1)`: `history` (lags and moving statistics), `covariates` (calendar,
known-future covariates, weather forecasts) and `encoding` (categories, missing values, units);
`grid` serves them. `Columns` is the encoding that learners apply to data frames by themselves.

Series are distinguished by the columns `by`. Lags go by date and not by row, so that missing days,
the order of rows or a late start change nothing. A row's own outcome is never used for it, nor any
later one; `forewise.testing.check_no_future` checks that, for these functions and for your own.
"""

from forewise.features.covariates import calendar, known_ahead, weather_forecast
from forewise.features.encoding import fill_missing, one_hot, relative_to
from forewise.features.history import days_since, lag, rolling, same_weekday
from forewise.validation.columns import Columns

__all__ = [
    "Columns",
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
