"""Every host passes."""

from __future__ import annotations

from scheduler.filters.all_hosts_filter import AllHostsFilter
from tests.builders import a_conf, a_host, a_request, verdict


def test_any_host_passes_any_request():
    host = a_host(total_usable_ram_mb=0, service={"disabled": True, "forced_down": True})

    assert verdict(AllHostsFilter(a_conf()), host, a_request(flavor={"memory_mb": 9**9})) == []
