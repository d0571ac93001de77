"""Builds that the scheduler itself sends to hosts, as it did until Icehouse.

``direct`` and ``tasks`` have the RPC methods; ``choosing`` asks the driver for hosts, and ``rows``
writes the instances.  The daemon serves it and ``nova_compat`` names it; nothing that serves
select_destinations may import this package.
"""
