"""``python -m conductor_stub.demo``."""

import sys

from scheduler import concurrency

if __name__ == "__main__":
    sys.exit(concurrency.run("conductor_stub.demo.run", sys.argv[1:]))
