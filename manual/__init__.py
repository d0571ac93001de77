"""Manual pages and shell completion, made from the programs' own parsers: ``make manual``."""

from scheduler import concurrency

# Before anything imports oslo.messaging, which would settle on eventlet.
concurrency.activate(concurrency.THREADING)
