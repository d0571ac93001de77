"""Deciding recorded cases again, with the engine that the daemon runs, and comparing.

A case states configuration, database rows and a request; its answer says which hosts pass each
filter, the limits, the weights and the choice.  ``cases`` reads, ``deciding`` answers on its rows,
``outcome`` judges.  Only ``evaluate`` of the command line imports this package.
"""
