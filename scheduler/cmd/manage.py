"""The entry point ``nova-scheduler-manage``."""

import importlib
import sys

from oslo_config import cfg

from scheduler import concurrency


def main() -> int:
    """Run the command of the command line; return the exit status.

    Commands that ask several workers at once do it in threads, whatever the daemons run on.
    """
    concurrency.activate(concurrency.THREADING)
    return int(importlib.import_module("scheduler.cli.app").main(sys.argv[1:], cfg.CONF))
