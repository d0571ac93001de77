"""Records of decisions, and the explanations made of them.

``recorder`` keeps a worker's records and ``store`` writes them to the database.  ``refusal`` finds
the closest hosts by the numbers and words of ``measures``.  ``answer`` makes a record plain data,
``sentences`` puts that into sentences, ``rendering`` prints it.
Nothing here decides.  Drivers and all above them may import this package, the engine may not.
"""
