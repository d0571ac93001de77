"""The entry point ``nova-conductor-stub``."""

from __future__ import annotations

import sys

from scheduler import concurrency


def main() -> int:
    """Run the command of the command line; returns the exit status."""
    return concurrency.run("conductor_stub.conductor_daemon", sys.argv[1:])
