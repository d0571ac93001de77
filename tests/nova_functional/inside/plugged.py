"""Filters and weighers that Nova's tests bring along, or mock."""

import importlib
from collections.abc import Sequence
from typing import Any
from unittest import mock

from nova import filters as nova_filters
from nova import weights as nova_weights

from scheduler import plugins
from scheduler.filters.base import BaseHostFilter
from scheduler.weights.base import BaseHostWeigher

#: Tests ask of these whether they were called.
_MOCKED = {
    "numa_topology_filter": "NUMATopologyFilter",
    "pci_passthrough_filter": "PciPassthroughFilter",
}


def install() -> None:
    """Let plug-ins derive from Nova's classes, as ``nova_compat_imports`` does elsewhere."""
    import_path = plugins.import_path

    def import_adapted(path):
        found = import_path(path)
        if isinstance(found, type) and issubclass(found, nova_weights.BaseWeigher):
            return adapted_weigher(found)
        if isinstance(found, type) and issubclass(found, nova_filters.BaseFilter):
            return adapted_filter(found)
        return found

    plugins.import_path = import_adapted


def adapted_weigher(theirs: type) -> type:
    class Adapted(BaseHostWeigher):
        def __init__(self):
            super().__init__()
            self._theirs = theirs()
            self.minval, self.maxval = self._theirs.minval, self._theirs.maxval

        def weight_multiplier(self, host_state):
            return self._theirs.weight_multiplier(host_state)

        def _weigh_object(self, host_state, weight_properties):
            return self._theirs._weigh_object(host_state, weight_properties)

    Adapted.__name__ = Adapted.__qualname__ = theirs.__name__
    return Adapted


def adapted_filter(theirs: Any) -> type:
    class Adapted(BaseHostFilter):
        RUN_ON_REBUILD = getattr(theirs, "RUN_ON_REBUILD", False)
        run_filter_once_per_request = theirs.run_filter_once_per_request

        def __init__(self):
            super().__init__()
            self._theirs = theirs()

        def host_passes(self, host_state, spec):
            return self._theirs.host_passes(host_state, spec)

    Adapted.__name__ = Adapted.__qualname__ = theirs.__name__
    return Adapted


def tell_mocks(records: Sequence[Any]) -> None:
    """Say of Nova's mocked filters that they were called, if ours looked at a host."""
    for module_name, name in _MOCKED.items():
        module = importlib.import_module(f"nova.scheduler.filters.{module_name}")
        mocked = getattr(module, name).__dict__.get("host_passes")
        if records and isinstance(mocked, mock.NonCallableMock):
            reached = _reached(records[-1], name)
            mocked.called |= bool(reached)
            mocked.call_count += bool(reached)


def _reached(record: Any, name: str) -> int:
    """Number of hosts that the filter of that *name* looked at."""
    left = record.hosts_considered
    for each in record.filters:
        if each.name == name:
            return int(left)
        left = each.end
    return 0
