"""Networks that requests name."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any

from scheduler import errors


def network_near(request: Any) -> str:
    """The network of hints ``build_near_host_ip`` and ``cidr``; empty without them."""
    near = request.get_scheduler_hint("build_near_host_ip")
    return f"{near}{request.get_scheduler_hint('cidr', '/24')}" if near else ""


def within(network: str) -> Callable[[str | None], bool]:
    """Test for addresses in *network* (``10.0.0.7/24``; bits of a host do not matter).

    A text that is no address is in no network.  Raises InvalidRequest when *network* is none.
    """
    try:
        wanted = ipaddress.ip_network(network, strict=False)
    except ValueError as error:
        field = "scheduler_hints.build_near_host_ip and cidr"
        raise errors.InvalidRequest(field=field, reason=str(error)) from error

    def test(address: str | None) -> bool:
        try:
            return ipaddress.ip_address(address or "") in wanted
        except ValueError:
            return False

    return test
