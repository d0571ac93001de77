"""The whole way of twenty servers in one process, on the in-process bus and SQLite.

``scenario`` says what is asked for and what must come of it, and shows the outcome; ``run`` starts
the parts, asks and waits.
"""
