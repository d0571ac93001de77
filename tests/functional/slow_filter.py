"""A filter that takes its time, found by the daemon through PYTHONPATH."""

from __future__ import annotations

import time
from typing import Any

from scheduler.filters import BaseHostFilter

HINT = "pause_seconds"


class PausingFilter(BaseHostFilter):
    """Waits per host as long as the hint says, and lets others run meanwhile."""

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        """Every host passes."""
        del host_state
        (pause,) = (spec_obj.scheduler_hints or {}).get(HINT, ["0"])
        if float(pause):
            time.sleep(float(pause))
        return True
