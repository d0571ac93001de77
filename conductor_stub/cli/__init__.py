"""The commands of ``nova-conductor-stub``, for people without an API.

``boot`` makes servers; ``servers`` has the commands on those there are, and what all share.
Only ``conductor_daemon`` imports this package.
"""
