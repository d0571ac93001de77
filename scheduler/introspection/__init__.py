"""Questions that operators ask a running worker, beside its work: ``endpoint`` lists them.

``state`` shows what it knows.  ``what_if`` decides again, with other options and with the hosts of
``hypothetical_hosts``.  Large answers are made of a copy of the state, so that decisions wait only
while it is copied.  The daemon serves this package.
"""
