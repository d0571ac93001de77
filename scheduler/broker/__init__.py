"""The message broker, as an operator or a check looks at it.

``nodes`` has the brokers of the configuration and connections to them, ``queues`` compares their
exchanges and queues with those expected.  The daemon's checks and the CLI may import this.
"""
