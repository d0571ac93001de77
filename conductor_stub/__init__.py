"""A small conductor and compute hosts that speak Nova's RPC, for use with the scheduler.

``conductor_stub`` imports ``scheduler``; nothing in ``scheduler`` imports this package.
"""
