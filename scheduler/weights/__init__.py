"""One small module per weigher, named as in Nova; ``registry`` lists them all.

``base`` says what a weigher is, ``weighing`` adds them up.
"""

from scheduler.weights.base import BaseHostWeigher, HostWeigher
from scheduler.weights.registry import all_weighers

__all__ = ["BaseHostWeigher", "HostWeigher", "all_weighers"]
