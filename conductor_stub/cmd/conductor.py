"""The entry point ``nova-conductor-stub``."""

import sys

from scheduler import concurrency


def main() -> int:
    """Run the command of the command line; returns the exit status."""
    return concurrency.run_daemon("conductor_stub.conductor_daemon", sys.argv[1:])
