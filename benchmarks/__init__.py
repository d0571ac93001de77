"""Measured comparisons, side by side in one run.  Never timed tests.

    python -m benchmarks decision refresh      # some workloads
    tox -e bench                               # all, and docs/evidence/benchmarks.md anew

A workload (``workloads/*.yaml``) names subjects, which take turns, and rows, which are quantities
made of what the subjects' rounds gave.  ``workload`` reads them, ``runner`` runs them, ``report``
keeps and shows them; ``subjects`` has one module per kind of subject.  The workload ``bounds`` has
what a decision may cost.
"""
