"""The commands of ``nova-conductor-stub``, for people without an API.

``boot`` makes servers and ``servers`` has the commands on those there are, both on ``base``.
Only ``conductor_daemon`` imports this package.
"""
