"""Private instances of the real servers: RabbitMQ, MariaDB and PostgreSQL.

One module per server, what they share in ``private``, what must be installed in ``programs``,
and the fixtures that hand them to tests in ``fixtures``.
"""
