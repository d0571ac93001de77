"""Weeks of work in an hour: does anything grow that should not?

    python -m tests.soak --form engine --minutes 10
    python -m tests.soak --form bus --minutes 10

``bus`` is a daemon as operators run it: RabbitMQ, MariaDB, claims, metrics, callers that die,
reloads.  ``engine`` is what answers in it, with a clock that is moved on between requests, by hours
of expiry, purges and full reads.  ``look`` sees either every few seconds; the ``verdict`` is of
the slopes after the warm-up.
"""
