"""One small module per weigher, named as in Nova; ``registry`` lists them all.

``base`` says what a weigher is; ``engine.evaluation`` adds them up.  The engine and all above it
may import this package; it knows no filter.  Reference page scheduling, section 7.3.
"""

from scheduler.weights.base import BaseHostWeigher, HostWeigher
from scheduler.weights.registry import all_weighers

__all__ = ["BaseHostWeigher", "HostWeigher", "all_weighers"]
