"""Weeks of work in an hour: does anything grow that should not?

    python -m tests.soak --form engine --minutes 10
    python -m tests.soak --form bus --minutes 10

``bus`` is a daemon as operators run it: RabbitMQ, MariaDB, claims, metrics, callers that come and
die, reloads.  ``engine`` is what answers in that daemon, on MariaDB with claims, with a clock that
is moved on between two requests, so that hours of expiry, purges and full reads pass.  Either is
looked at every few seconds (``look``); the ``verdict`` is made of the slopes after the warm-up.
"""
