"""The compute stub: one process that is many compute hosts."""
