"""Deterministic simulation of claims: the product's own code, everything around it made of seeds.

``kernel`` runs tasks of one thread and chooses who goes on, ``patches`` puts its time and locks
into the product, ``server`` and ``statements`` are a database server, ``fleet`` and ``world`` the
computes, callers and faults, ``checks`` and ``spec`` say what must hold.
"""
