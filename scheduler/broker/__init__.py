"""The message broker from outside: connections, and the exchanges and queues it should have.

``expected`` is what the configuration wants, ``queues`` compares it with the broker, and
``management`` asks RabbitMQ's management API.  No request passes through here: the daemon's checks
and the command line may import this package.
"""
