"""Measured comparisons, side by side in one run.  Never timed tests.

    python -m benchmarks decision refresh      # some workloads
    tox -e bench                               # all, and docs/performance.md anew

A workload (``workloads/*.yaml``) names subjects, which take turns, and rows, which are quantities
made of what the subjects' rounds gave.  ``workload`` reads them, ``runner`` runs them, ``report``
and ``plots`` show them; ``subjects`` has one module per kind of subject.
"""
