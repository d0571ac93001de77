"""Modules of Nova for code written for it, where there is no Nova: see ``MODULES``."""

import functools
import importlib
import importlib.util
import logging
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

from oslo_config import cfg
from oslo_log import log as oslo_log

from scheduler import plugins
from scheduler.builds.direct import SERVICE, InstanceRows
from scheduler.db.database import Database
from scheduler.drivers.base import Scheduler
from scheduler.filters import registry as filter_registry
from scheduler.hosts import aggregate_metadata
from scheduler.notifications import Notifier
from scheduler.rpc.client import ComputeClient
from scheduler.rpc.transport import get_notification_transport, get_transport
from scheduler.weights import registry as weigher_registry

LOG = oslo_log.getLogger(__name__)

ROOT: Final = "nova"


def as_written(message: str) -> str:
    """Nova's ``_`` and its siblings: this project has no translations."""
    return message


class AuditingLogger(oslo_log.KeywordArgumentAdapter):
    """A logger that knows ``audit``, which is INFO here, and ``warn`` on every Python."""

    def audit(self, msg: object, *args: Any, **kwargs: Any) -> None:
        self.log(logging.INFO, msg, *args, **kwargs)

    def warn(self, msg: object, *args: Any, **kwargs: Any) -> None:
        self.log(logging.WARNING, msg, *args, **kwargs)


def get_logger(name: str = "unknown", version: str = "unknown") -> AuditingLogger:
    return AuditingLogger(logging.getLogger(name), {"version": version})


# For filters that read the metadata of aggregates (reference page filters, 5.3).


def aggregate_values_from_key(host_state: Any, key_name: str) -> set[str]:
    """The values of *key_name* over all aggregates of the host, as they are."""
    return aggregate_metadata.values(host_state.aggregates, key_name)


def aggregate_metadata_get_by_host(host_state: Any, key: str | None = None) -> dict[str, set[str]]:
    """Values by key of the host's aggregates, split and stripped; with *key*, of those with it."""
    chosen = [each for each in host_state.aggregates if key is None or key in each.metadata]
    names = aggregate_metadata.keys(chosen)
    return {name: aggregate_metadata.split_values(chosen, name) for name in names}


def validate_num_values(
    vals: Collection[str],
    default: Any = None,
    cast_to: Callable[[str], Any] = int,
    based_on: Callable[[Iterable[Any]], Any] = min,
) -> Any:
    """The smallest of *vals* as a number, *default* without any; ValueError if one is none."""
    if not vals:
        return default
    if len(vals) > 1:
        which = "maximum" if based_on is max else "minimum"
        LOG.info("%d values found, of which the %s value will be used.", len(vals), which)
    return based_on(cast_to(value) for value in vals)


def compute_rpcapi(conf: cfg.ConfigOpts) -> Mapping[str, Any]:
    """``compute.rpcapi`` in a process configured by *conf*: its API is made without arguments."""

    class ComputeAPI(ComputeClient):
        """Casts on the bus that is configured; connects with its first cast."""

        def __init__(self) -> None:
            super().__init__(get_transport(conf), conf.compute_topic)

    return {"ComputeAPI": ComputeAPI}


def driver(conf: cfg.ConfigOpts) -> Mapping[str, Any]:
    """``scheduler.driver``, whose functions connect when first called (page scheduling, 13.1)."""

    @functools.cache
    def rows() -> InstanceRows:
        notifier = Notifier(get_notification_transport(conf), f"{SERVICE}.{conf.host}")
        return InstanceRows(Database.from_conf(conf), notifier, conf.host)

    def later(name: str) -> Callable[..., Any]:
        return lambda *given, **named: getattr(rows(), name)(*given, **named)

    functions = ("instance_update_db", "handle_schedule_error")
    return {"Scheduler": Scheduler, **{name: later(name) for name in functions}}


Source = str | Mapping[str, str] | Callable[[cfg.ConfigOpts], Mapping[str, Any]]
"""A module with all its public names, or names and the paths of what they stand for, or a function
that makes names for a process that is configured in a certain way."""

_TRANSLATIONS: Final = dict.fromkeys(("_", "_LI", "_LW", "_LE", "_LC"), f"{__name__}.as_written")

MODULES: Final[Mapping[str, Source]] = {
    # Filters and weighers
    "nova.filters": {"BaseFilter": "scheduler.filters.BaseHostFilter"},
    "nova.weights": {"BaseWeigher": "scheduler.weights.BaseHostWeigher"},
    "nova.scheduler.filters": "scheduler.filters",
    "nova.scheduler.weights": "scheduler.weights",
    "nova.scheduler.filters.utils": {
        each.__name__: f"{__name__}.{each.__name__}"
        for each in (aggregate_values_from_key, aggregate_metadata_get_by_host, validate_num_values)
    },
    "nova.scheduler.filters.extra_specs_ops": "scheduler.filters.extra_specs_ops",
    **{
        f"nova.scheduler.{kind}.{name}": f"scheduler.{kind}.{name}"
        for kind, registry in (("filters", filter_registry), ("weights", weigher_registry))
        for name in registry.MODULES
    },
    # Drivers
    "nova.scheduler.driver": driver,
    "nova.scheduler.filter_scheduler": "scheduler.drivers.filter_scheduler",
    "nova.scheduler.caching_scheduler": "scheduler.drivers.filter_scheduler",
    "nova.scheduler.chance": "scheduler.drivers.chance_scheduler",
    "nova.scheduler.host_manager": {
        "HostManager": "scheduler.hosts.host_manager.HostManager",
        "HostState": "scheduler.hosts.host_state.HostState",
    },
    "nova.compute.rpcapi": compute_rpcapi,
    # What all of Nova's code uses
    "nova.conf": {"CONF": "oslo_config.cfg.CONF"},
    "nova.context": "scheduler.rpc.context",
    "nova.exception": "scheduler.errors",
    "nova.i18n": _TRANSLATIONS,
    "nova.objects": "scheduler.objects",
    "nova.openstack.common.gettextutils": _TRANSLATIONS,
    "nova.openstack.common.log": {"getLogger": f"{__name__}.get_logger"},
    # The library's name until Kilo
    "oslo.config.cfg": "oslo_config.cfg",
    "oslo.config.types": "oslo_config.types",
}


def install(conf: cfg.ConfigOpts) -> None:
    """Let imports of the table's modules succeed in this process, unless a real Nova is there."""
    if any(isinstance(each, NovaFinder) for each in sys.meta_path):
        return
    if importlib.util.find_spec(ROOT) is not None:
        LOG.info("Nova itself is installed: code written for it uses that")
        return
    # Last, so that whatever else there is by such a name is found first.
    sys.meta_path.append(NovaFinder(conf))


class NovaFinder(MetaPathFinder, Loader):
    """Finds and fills the table's modules; any other module of Nova's is an ImportError."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._sources: dict[str, Source] = {}
        for name in MODULES:
            while name := name.rpartition(".")[0]:
                self._sources[name] = {}
        self._sources.update(MODULES)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module if it is in the table, None if it is not Nova's."""
        del path, target
        if fullname in self._sources:
            return ModuleSpec(fullname, self, is_package=True)
        if fullname.partition(".")[0] != ROOT:
            return None
        raise ImportError(
            f"{fullname} is not among what this scheduler provides of Nova "
            "([scheduler] nova_compat_imports; scheduler.nova_compat has the list)",
            name=fullname,
        )

    def exec_module(self, module: ModuleType) -> None:
        """Fill *module* with the names that its source stands for."""
        source = self._sources[module.__name__]
        if isinstance(source, str):
            names = {
                name: found
                for name, found in vars(importlib.import_module(source)).items()
                if not (name.startswith("_") or f"{source}.{name}" in sys.modules)
            }
        elif isinstance(source, Mapping):
            names = {name: plugins.import_path(path) for name, path in source.items()}
        else:
            names = dict(source(self._conf))
        vars(module).update(names)
