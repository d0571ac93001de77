"""Plans of moves: which servers to move so that hosts are empty, have room, or obey the rules.

``mover`` decides single moves with the daemon's engine, ``plans`` makes plans of them.  Advice
only: nothing here talks to a hypervisor.  Used by the command line.
"""
