"""Drivers for the daemon's tests, found by it through PYTHONPATH."""

import os
import pathlib
import time
import uuid
from typing import Any

from scheduler import errors, objects
from scheduler.drivers import Scheduler

FOLDER_VARIABLE = "GATE_DRIVER_FOLDER"
OPEN = "open"
BEGUN_PREFIX = "begun-"
PERIODIC_PREFIX = "periodic-"


class GateDriver(Scheduler):
    """Leaves a file ``begun-…`` for each request, and answers once there is a file ``open``."""

    def select_destinations(self, context: Any, *args: Any, **kwargs: Any) -> Any:
        folder = pathlib.Path(os.environ[FOLDER_VARIABLE])
        (folder / f"{BEGUN_PREFIX}{uuid.uuid4()}").touch()
        while not (folder / OPEN).exists():
            time.sleep(0.02)
        return [[objects.Selection(service_host="cmp1", nodename="cmp1", limits=None)]]

    def run_periodic_tasks(self, context: Any) -> None:
        """Leaves a file ``periodic-…`` if it is called with the rights that it needs."""
        if context.is_admin:
            folder = pathlib.Path(os.environ[FOLDER_VARIABLE])
            (folder / f"{PERIODIC_PREFIX}{uuid.uuid4()}").touch()


class StatelessDriver(Scheduler):
    """Has no state and cannot get any."""

    def __init__(self, conf: Any, host_manager: Any) -> None:
        super().__init__(conf, host_manager)
        host_manager.refresh = self._refuse

    def _refuse(self) -> None:
        raise errors.StateUnavailable(reason="there is none")
