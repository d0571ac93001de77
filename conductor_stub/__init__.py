"""A small conductor and compute hosts that speak Nova's RPC, for use with the scheduler.

``manager`` has the conductor's methods: ``planning`` and ``building`` are the halves of a build,
``moving`` is for servers that exist, ``alternates`` claims hosts of a reply.  ``booting`` and
``servers`` do the part of Nova's API.  ``compute`` is the hosts, ``cli`` the commands, ``demo`` all
of it in one process.
``conductor_stub`` imports ``scheduler``; nothing in ``scheduler`` imports this package.
"""
