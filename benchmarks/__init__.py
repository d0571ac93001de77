"""Measured comparisons, side by side in one run.  Never timed tests."""
