"""The drivers: the loop from a request to its answer.

``base`` is the interface, ``filter_scheduler`` has the loop, ``loading`` turns the configured name
into a driver, ``older_forms`` serves drivers written for older releases.  ``selections`` makes the
reply.  The manager, builds, evaluation, introspection, the daemon and the CLI may import this
package; a driver knows neither bus nor SQL.
"""

from scheduler.drivers.base import Scheduler
from scheduler.drivers.loading import called_class, load, load_host_manager

__all__ = ["Scheduler", "called_class", "load", "load_host_manager"]
