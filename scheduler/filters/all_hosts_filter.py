"""AllHostsFilter: every host passes.  Copy this module to start a filter of your own.

A filter that ships here is a class with three parts:

* class attributes: when it runs, and ``reasons``, one per condition;
* a constructor, only if it has options: read them there, once;
* ``conditions``: yields (reason, mask) pairs over columns such as ``hosts.free_ram_mb``.

Add the class to ``registry.MODULES`` and a test module of the same name.  Outside this tree a
filter may instead implement ``host_passes(host_state, spec_obj)``, as in Nova.  Reference page
filters, section 6.1.
"""

from collections.abc import Iterator
from typing import Any

from scheduler.filters.base import Condition, HostFilter
from scheduler.hosts.candidates import Candidates


class AllHostsFilter(HostFilter):
    """Passes every host."""

    run_filter_once_per_request = True
    reasons = ()

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        return iter(())
