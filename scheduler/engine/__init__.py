"""The engine: evaluation, choice and consumption of one request, and the record of the decision.

A pure function of policy, host table, request, random source and clock.  It imports numpy, the
standard library, errors, semantics and the rooms below (hosts, filters, weights), nothing of rpc,
db, conf or oslo.  ``decision`` has ``decide``, which drivers, what-if, evaluate, plan, recording
and benchmarks call, and consumes; ``evaluation`` filters and weighs, ``choice`` chooses a host and
``batch`` those of several instances, ``record`` is what is kept. Nothing else filters or weighs:
explaining asks the same chain about one host.
"""

from scheduler.engine.decision import Placement, decide
from scheduler.engine.evaluation import Evaluation, Policy, evaluate
from scheduler.engine.record import DecisionRecord

__all__ = ["DecisionRecord", "Evaluation", "Placement", "Policy", "decide", "evaluate"]
