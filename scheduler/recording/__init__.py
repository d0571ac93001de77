"""Recordings: every decision of a worker with all that it depends on, in files.

``journal`` watches the driver, ``segments`` writes and reads files, ``checking`` decides again.
"""
