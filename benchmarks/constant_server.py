"""The floor of the bus: a server that decodes nothing, decides nothing, and answers the same.

    python -m benchmarks.constant_server --config-file FILE

The library's server as it is, on the scheduler's topic; the answer is as long as a real one.
"""

import sys

from scheduler import concurrency


def main() -> int:
    """Serve until the process is told to end."""
    return concurrency.run("benchmarks.constant_daemon", sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
