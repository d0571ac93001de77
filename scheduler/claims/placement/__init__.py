"""Claims as allocations of a Placement service: ``[scheduler] claims = placement``.

``backend`` claims for a request among the hosts that ``offers`` finds; ``candidates`` makes queries
of ``needs``, and of the segments of ``networks``; ``memory`` keeps answers, and ``facts`` what they
tell of hosts; ``client`` talks HTTP over ``connections``, and claims.
Only ``loading`` and the conductor stub import this from outside.
Reference pages scheduling, section 2.5, and conductor, section 7.
"""
