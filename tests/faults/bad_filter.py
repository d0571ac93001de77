"""An operator's own filter with faults, for requests that ask for them; found by PYTHONPATH."""

from __future__ import annotations

import time
from typing import Any

from scheduler.filters import BaseHostFilter

HINT = "fault"
RAISES, HANGS, NONSENSE = "raises", "hangs", "nonsense"
HANGS_SECONDS = 0.3


class BadFilter(BaseHostFilter):
    """Lets every host pass, unless the request has the hint."""

    def host_passes(self, host_state: Any, spec_obj: Any) -> Any:
        """Whatever the hint says."""
        (fault,) = (spec_obj.scheduler_hints or {}).get(HINT, [None])
        if fault == RAISES:
            raise RuntimeError("this filter is broken")
        if fault == HANGS:
            time.sleep(HANGS_SECONDS)
        return object() if fault == NONSENSE else True
