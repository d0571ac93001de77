"""Nova's modules that are provided, and the contents of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from oslo_config import cfg

from scheduler.filters import registry as filter_registry
from scheduler.nova_compat import modules
from scheduler.weights import registry as weigher_registry

Source = str | Mapping[str, str] | Callable[[cfg.ConfigOpts], Mapping[str, Any]]
"""A module with all its public names, or names and the paths of what they stand for, or a function
that makes names for a process that is configured in a certain way."""

_TRANSLATIONS: Final = dict.fromkeys(
    ("_", "_LI", "_LW", "_LE", "_LC"), "scheduler.nova_compat.modules.as_written"
)

MODULES: Final[Mapping[str, Source]] = {
    # Filters and weighers
    "nova.filters": {"BaseFilter": "scheduler.filters.BaseHostFilter"},
    "nova.weights": {"BaseWeigher": "scheduler.weights.BaseHostWeigher"},
    "nova.scheduler.filters": "scheduler.filters",
    "nova.scheduler.weights": "scheduler.weights",
    "nova.scheduler.filters.utils": "scheduler.nova_compat.filter_functions",
    "nova.scheduler.filters.extra_specs_ops": "scheduler.filters.extra_specs_ops",
    **{
        f"nova.scheduler.filters.{name}": f"scheduler.filters.{name}"
        for name in filter_registry.MODULES
    },
    **{
        f"nova.scheduler.weights.{name}": f"scheduler.weights.{name}"
        for name in weigher_registry.MODULES
    },
    # Drivers
    "nova.scheduler.driver": modules.driver,
    "nova.scheduler.filter_scheduler": "scheduler.drivers.filter_scheduler",
    "nova.scheduler.caching_scheduler": "scheduler.drivers.filter_scheduler",
    "nova.scheduler.chance": "scheduler.drivers.chance_scheduler",
    "nova.scheduler.host_manager": {
        "HostManager": "scheduler.hosts.host_manager.HostManager",
        "HostState": "scheduler.hosts.host_state.HostState",
    },
    "nova.compute.rpcapi": modules.compute_rpcapi,
    # What all of Nova's code uses
    "nova.conf": {"CONF": "oslo_config.cfg.CONF"},
    "nova.context": "scheduler.rpc.context",
    "nova.exception": "scheduler.errors",
    "nova.i18n": _TRANSLATIONS,
    "nova.objects": "scheduler.objects",
    "nova.openstack.common.gettextutils": _TRANSLATIONS,
    "nova.openstack.common.log": {"getLogger": "scheduler.nova_compat.modules.get_logger"},
    # The library's name until Kilo
    "oslo.config": "oslo_config",
    "oslo.config.cfg": "oslo_config.cfg",
}
