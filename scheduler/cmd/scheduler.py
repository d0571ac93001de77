"""The entry point ``nova-scheduler``."""

import sys

from scheduler import concurrency


def main() -> int:
    return concurrency.run_daemon("scheduler.daemon.service", sys.argv[1:])
