"""An operator's own filter with faults, for requests that ask for them; found by PYTHONPATH."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from scheduler.filters import BaseHostFilter

HINT = "fault"
RAISES, HANGS, NONSENSE, KILLS = "raises", "hangs", "nonsense", "kills"
#: Makes the file whose path follows and hangs until somebody removes it.
IN_HAND = "in hand"
HANGS_SECONDS = 0.3
IN_HAND_SECONDS, LOOK_SECONDS = 20, 0.05


class BadFilter(BaseHostFilter):
    """Lets every host pass, unless the request has the hint."""

    def host_passes(self, host_state: Any, spec_obj: Any) -> Any:
        fault, *rest = (spec_obj.scheduler_hints or {}).get(HINT, [None])
        if fault == RAISES:
            raise RuntimeError("this filter is broken")
        if fault == KILLS:
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == HANGS:
            time.sleep(HANGS_SECONDS)
        if fault == IN_HAND and host_state.host == rest[1]:
            self._wait_in_hand(Path(rest[0]))
        return object() if fault == NONSENSE else True

    @staticmethod
    def _wait_in_hand(sign: Path) -> None:
        sign.touch()
        ends_at = time.monotonic() + IN_HAND_SECONDS
        while sign.exists() and time.monotonic() < ends_at:
            time.sleep(LOOK_SECONDS)
