"""What tests with real processes share: programs, fleets, callers, load, and results of long runs.

``deployment`` and ``process`` run the project's programs, ``fleet`` and ``usage`` write and read
rows, ``bus``, ``calling``, ``connection`` and ``load`` ask, ``runs`` keeps the results of nightly
runs.  Functional tests, race, soak, faults and benchmarks import from here, never the reverse.
"""
