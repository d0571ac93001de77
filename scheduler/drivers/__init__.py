"""The drivers, their shared steps, and the interface they share.

``base`` is the interface, ``pipeline`` the engine that filter and caching driver run, ``loading``
turns the configured name into a driver.
"""

from scheduler.drivers.base import Parts, Scheduler
from scheduler.drivers.loading import called_class, load, load_host_manager

__all__ = ["Parts", "Scheduler", "called_class", "load", "load_host_manager"]
