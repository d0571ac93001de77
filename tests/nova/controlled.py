"""A shadow with a control: of each request it also compares outcomes that are drawn.

It stands before the program's name.  The file that ``SHADOW_CONTROL`` names counts the results.
"""

import importlib
import json
import os
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scheduler import concurrency
from scheduler.hosts.table import Key
from scheduler.shadow import Result, ShadowScheduler, Waiting

VARIABLE = "SHADOW_CONTROL"


class ControlledScheduler(ShadowScheduler):
    """Compares two more outcomes: a host that Placement offered, and one that it did not."""

    def __init__(self, conf: Any, host_manager: Any) -> None:
        super().__init__(conf, host_manager)
        self._draws = random.Random(1)
        self._drawn: dict[str, Counter[str]] = defaultdict(Counter)

    def compare(self, waiting: Waiting, outcome: Sequence[Key]) -> Result:
        then = waiting.then
        table, offered = then.table, then.nodes or ()
        kinds: dict[str, list[Key]] = {"offered": [], "not offered": []}
        for key, row in table.rows.items():
            if key not in (*outcome, *waiting.decided):
                is_offered = table.value(row, "uuid") in offered
                kinds["offered" if is_offered else "not offered"].append(key)
        for kind, keys in kinds.items():
            if keys:
                result = super().compare(waiting, [self._draws.choice(keys)])
                self._drawn[kind][result.value] += 1
        Path(os.environ[VARIABLE]).write_text(json.dumps(self._drawn), encoding="utf-8")
        return super().compare(waiting, outcome)


if __name__ == "__main__":
    concurrency.activate(concurrency.THREADING)
    shadow = importlib.import_module("scheduler.daemon.shadow")
    service = importlib.import_module("scheduler.daemon.service")
    shadow.DRIVER = "tests.nova.controlled.ControlledScheduler"
    sys.exit(service.main(sys.argv[2:]))
