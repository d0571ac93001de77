"""The engine: evaluation, choice and consumption of one request, and the record of the decision.

A pure function of policy, host table, request, random source and clock.  It imports numpy, the
standard library and the rooms below (hosts, filters, weights), nothing of rpc, db, conf or oslo.
Drivers, what-if, evaluate, explain and benchmarks call ``decide``; nothing else filters or weighs.
"""

from scheduler.engine.decision import Placement, decide
from scheduler.engine.evaluation import Evaluation, Policy, evaluate
from scheduler.engine.record import DecisionRecord

__all__ = ["DecisionRecord", "Evaluation", "Placement", "Policy", "decide", "evaluate"]
