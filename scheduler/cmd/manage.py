"""The entry point ``nova-scheduler-manage``."""

import sys
from typing import Final

from oslo_config import cfg

from scheduler import concurrency

#: First words of commands that load the message bus or the engine.
ON_A_BACK_END: Final = frozenset(
    (
        *("config", "broker", "upgrade", "explain", "state"),
        *("what-if", "shadow", "evaluate", "replay", "plan", "complete"),
    )
)


def main() -> int:
    """Run the command of the command line; return the exit status.

    Commands that ask several workers at once do it in threads, whatever the daemons run on.
    """
    argv = sys.argv[1:]
    if concurrency.is_version_asked(argv):
        return 0
    concurrency.open_standard_streams()
    if not ON_A_BACK_END.isdisjoint(argv):
        concurrency.activate(concurrency.THREADING)
    return concurrency.call_main("scheduler.cli.app", argv, cfg.CONF)
