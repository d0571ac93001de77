"""A whole Nova without hypervisors: API, conductor, computes with the fake driver, Placement.

RabbitMQ and MariaDB are private instances, Glance and Neutron are stand-ins, and the scheduler is
this project's or Nova's own.  ``python -m tests.nova.cloud`` is ``make demo-nova``.
"""
