"""A workload decided anew on a fleet in memory, and what became of the hosts.

``virtual_fleet`` keeps the hosts, which ``description`` makes of words; ``workload`` and ``azure``
read arrivals, ``run`` plays them, ``measures`` and ``report`` tell of the result.
``sizing`` finds the smallest fleet.  Everything runs in virtual time, without database or bus.
"""
