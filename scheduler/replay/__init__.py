"""A workload decided anew on a fleet in memory, and what became of the hosts.

``virtual_fleet`` keeps the hosts, ``description`` makes them from a sentence.
Everything runs in virtual time, without threads, database or bus.
"""
