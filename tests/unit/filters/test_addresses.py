"""(network, address) -> inside or not."""

from __future__ import annotations

import pytest

from scheduler import errors
from scheduler.filters import addresses


@pytest.mark.parametrize(
    ("network", "address", "inside"),
    [
        ("10.0.0.7/24", "10.0.0.255", True),
        ("10.0.0.7/24", "10.0.1.0", False),
        ("10.0.0.7", "10.0.0.7", True),
        ("10.0.0.7/0", "192.0.2.1", True),
        ("fd00::/8", "fd12::1", True),
        ("fd00::/8", "10.0.0.1", False),
        ("10.0.0.0/8", None, False),
        ("10.0.0.0/8", "", False),
        ("10.0.0.0/8", "10.0.0", False),
    ],
)
def test_within(network, address, inside):
    assert addresses.within(network)(address) is inside


@pytest.mark.parametrize("network", ["", "10.0.0.1/33", "10.0.0.256/8", "/24"])
def test_no_network(network):
    with pytest.raises(errors.InvalidRequest):
        addresses.within(network)


def test_a_network_that_is_none_is_told_with_its_field():
    with pytest.raises(errors.InvalidRequest, match=r"hints\.build_near_host_ip and cidr: "):
        addresses.within("nowhere/24")
