"""A filter that takes its time, found by the daemon through PYTHONPATH."""

import time
from typing import Any

from scheduler.filters import BaseHostFilter

PAUSE_HINT = "pause_seconds"
COMPUTE_HINT = "compute_seconds"


class PausingFilter(BaseHostFilter):
    """Takes per host as long as the hints say: waiting, or computing without a pause."""

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        del host_state
        hints = spec_obj.scheduler_hints or {}
        if PAUSE_HINT in hints:
            time.sleep(float(hints[PAUSE_HINT][0]))
        if COMPUTE_HINT in hints:
            end = time.monotonic() + float(hints[COMPUTE_HINT][0])
            while time.monotonic() < end:
                pass
        return True
