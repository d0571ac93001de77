"""Questions that operators ask a running worker, beside its work: ``endpoint`` lists them.

The daemon serves them; the command line uses ``host_dump`` for what it reads itself.  Large
answers are made of a copy of the state, so that decisions wait only while it is copied.
"""
