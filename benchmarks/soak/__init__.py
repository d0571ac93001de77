"""Weeks of work in an hour: does anything grow that should not?

    python -m benchmarks.soak --minutes 10
    python -m benchmarks.soak --decisions 2000000

Two forms run side by side, each in a process of its own.  ``bus`` is a daemon as operators run it:
RabbitMQ, MariaDB, claims, metrics, callers that come and die, reloads.  ``engine`` is what answers
in that daemon, on MariaDB with claims, with a clock that is moved on between two requests, so that
hours of expiry, purges and full reads pass.  Both are looked at every few seconds (``look``); the
``verdict`` is made of the slopes after the warm-up.
"""
