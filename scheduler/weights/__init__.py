"""The weighers; ``registry`` lists them all, with Nova's paths to them.

``base`` says what a weigher is; ``engine.evaluation`` adds them up.  The engine and all above it
may import this package; it knows no filter.
"""

from scheduler.weights.base import BaseHostWeigher, HostWeigher
from scheduler.weights.registry import all_weighers

__all__ = ["BaseHostWeigher", "HostWeigher", "all_weighers"]
