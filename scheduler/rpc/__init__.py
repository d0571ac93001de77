"""The message bus: the methods served on it, and calls to other services.

``transport`` and ``connection`` connect; ``server`` says who answers on which topic, and
``dispatcher`` takes a message to its method; ``in_flight`` watches those begun.  ``client`` calls
workers and compute hosts.  ``messages`` and ``context`` are the wire forms; ``fastpath`` replaces
slow parts of oslo.messaging.  ``library_options`` keeps older names of options.
The rooms above the drivers may import this package; whatever decides may not.
"""
