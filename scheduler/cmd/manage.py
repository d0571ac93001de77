"""``nova-scheduler-manage``: neither back end of concurrency is needed, so none is chosen."""

from __future__ import annotations

import sys

from scheduler.cli import app


def main() -> int:
    """Run the command of the command line; return the exit status."""
    return app.main(sys.argv[1:])
