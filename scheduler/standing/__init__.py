"""Results of filters and weighers that are kept between decisions.

Requests that no filter and no weigher can tell apart are of one class.  What the filters said of
every host for a class (``verdicts``) and what the weighers did (``scores``) stands until the
journal of the host table tells of a change; then only the changed rows are asked about again.
"""

from scheduler.standing.apart import Left, left_of_all
from scheduler.standing.classes import Standing, StandingResults
from scheduler.standing.history import History
from scheduler.standing.own_totals import Asked, OwnTotals, own_totals
from scheduler.standing.run import Run
from scheduler.standing.verdicts import ReasonNumbers

__all__ = [
    "Asked",
    "History",
    "Left",
    "OwnTotals",
    "ReasonNumbers",
    "Run",
    "Standing",
    "StandingResults",
    "left_of_all",
    "own_totals",
]
