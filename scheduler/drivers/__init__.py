"""The drivers, their shared steps, and the interface they share.

``base`` is the interface, ``pipeline`` the engine that filter and caching driver run, ``loading``
turns the configured name into a driver.
"""

from scheduler.drivers.base import Scheduler
from scheduler.drivers.loading import load, load_host_manager

__all__ = ["Scheduler", "load", "load_host_manager"]
