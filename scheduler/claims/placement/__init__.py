"""Claims as allocations of a Placement service: ``[scheduler] claims = placement``.

``demand.py`` and ``query.py`` say what a request needs, ``client.py`` talks HTTP, ``offers.py``
reads what comes back, ``allocating.py`` claims for one instance, ``booking.py`` for a request.
Reference pages scheduling, section 2.5, and conductor, section 7.
"""
