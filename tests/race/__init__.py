"""Many schedulers race for the last MiB: is any host ever promised twice, is anything lost?

``python -m tests.race`` starts a broker, database and schedulers, plays callers and compute hosts,
and kills schedulers.  Triggers in the database write down every change (``journal``); the verdict
(``replay``) is made from that, without any code of the schedulers.
"""
