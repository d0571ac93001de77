"""Claims as allocations of a Placement service: ``[scheduler] claims = placement``.

``backend`` claims for a request, ``candidates`` asks what there is, with the ``query`` of its
needs; ``allocations`` claims for one instance, ``client`` talks HTTP.  Only ``loading`` and the
conductor stub import this from outside.
Reference pages scheduling, section 2.5, and conductor, section 7.
"""
