"""The command ``nova-compute-stub``."""

import sys

from scheduler import concurrency


def main() -> int:
    """Choose the concurrency back end, then run the stub."""
    return concurrency.run_daemon("conductor_stub.compute_daemon", sys.argv[1:])
