"""Many schedulers race for the last MiB: is any host ever promised twice, is anything lost?

``python -m tests.race`` starts a broker, a database and schedulers, plays the callers and the
compute hosts, kills schedulers, and compares everything that happened with what may happen.  What
happened is told by the database itself: triggers write down every change (``journal``), and the
verdict (``replay``) is made from that, without any code of the schedulers.
"""
