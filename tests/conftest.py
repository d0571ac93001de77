"""What all tests share: the threading back end in this process, servers, daemons."""

from __future__ import annotations

from scheduler import concurrency

# Before anything imports oslo.messaging, which would settle on eventlet.  Tests that need the
# other back end run it in a process of its own.
concurrency.activate(concurrency.THREADING)

pytest_plugins = ["tests.servers.fixtures", "tests.daemons.fixtures"]
