"""Builds that the scheduler itself sends to hosts, as it did until Icehouse.

``tasks`` has the RPC methods, ``direct`` asks the driver for hosts, sends the builds and
writes the instances.  The daemon serves it and ``nova_compat`` names it; nothing that serves
select_destinations may import this package.
"""
