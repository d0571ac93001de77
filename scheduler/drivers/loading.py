"""From the configured names to a host manager and a driver (scheduling page, section 1.2).

An entry-point name wins; Nova's own dotted paths mean the class of that role here; any other
dotted path is imported, and a name without a dot is a class in a file of the extensions directory.
A driver may be written for Nova: with a constructor without arguments,
and with the ``select_destinations`` of an older release.
"""

import inspect
from collections.abc import Callable
from typing import Any

from scheduler import errors, plugins
from scheduler.claims.backend import Claims
from scheduler.drivers.filter_scheduler import configured_policy
from scheduler.drivers.older_forms import OlderDriver, OlderHostManager, form_of
from scheduler.explain.recorder import Recorder
from scheduler.hosts.host_manager import HostManager
from scheduler.hosts.reservations import Reservations
from scheduler.hosts.table import HostTable

DRIVER_NAMESPACE = "nova.scheduler.driver"
HOST_MANAGER_NAMESPACE = "nova.scheduler.host_manager"

NOVA_PATHS = {
    "nova.scheduler.filter_scheduler.FilterScheduler": "filter_scheduler",
    "nova.scheduler.caching_scheduler.CachingScheduler": "caching_scheduler",
    "nova.scheduler.chance.ChanceScheduler": "chance_scheduler",
    "nova.tests.unit.scheduler.fakes.FakeScheduler": "fake_scheduler",
    "nova.scheduler.host_manager.HostManager": "host_manager",
    "nova.scheduler.ironic_host_manager.IronicHostManager": "ironic_host_manager",
    "nova.scheduler.baremetal_host_manager.BaremetalHostManager": "ironic_host_manager",
}


def driver_class(conf: Any) -> Any:
    """The class that ``[scheduler] driver`` names; ConfigurationError if there is none."""
    return _class_of(conf, DRIVER_NAMESPACE, "driver", "select_destinations")


def host_manager_class(conf: Any) -> Any:
    """The HostManager that ``[scheduler] host_manager`` names; ConfigurationError if none is."""
    found = _class_of(conf, HOST_MANAGER_NAMESPACE, "host_manager", "refresh")
    if not issubclass(found, HostManager):
        reason = f"{conf.scheduler.host_manager!r} is not derived from HostManager"
        raise errors.ConfigurationError(option="[scheduler] host_manager", reason=reason)
    return found


def load_host_manager(
    conf: Any, reader: Any, reservations: Callable[[HostTable], Reservations] = Reservations
) -> Any:
    """The configured host manager, fed by *reader*, with *reservations*; nothing is read yet."""
    given = {} if reservations is Reservations else {"reservations": reservations}
    return host_manager_class(conf)(conf, reader, **given)


def called_class(conf: Any) -> Any:
    """The class that is called to decide: the driver's, or OlderDriver for an older one."""
    cls = driver_class(conf)
    return cls if form_of(cls) is None else OlderDriver


def load(conf: Any, host_manager: Any, **parts: Any) -> Any:
    """The configured driver on the state of *host_manager*; *parts* are attributes of drivers."""
    cls = driver_class(conf)
    own = {"claims": Claims(), "builds": None, "notifier": None, **parts}
    if (form := form_of(cls)) is None:
        return _constructed(cls, conf, host_manager, own)
    older = OlderHostManager(host_manager, configured_policy(conf, host_manager))
    return OlderDriver(_constructed(cls, conf, older, own), form, conf)


def _constructed(cls: Any, conf: Any, host_manager: Any, parts: dict[str, Any]) -> Any:
    """A driver of class *cls*, which has all it needs in any case when its constructor runs."""
    driver = cls.__new__(cls)
    recorder = Recorder(conf.explain.memory_bytes)
    vars(driver).update(conf=conf, host_manager=host_manager, recorder=recorder, **parts)
    try:
        inspect.signature(cls).bind(conf, host_manager)
    except TypeError:
        cls.__init__(driver)
    else:
        cls.__init__(driver, conf, host_manager)
    return driver


def _class_of(conf: Any, namespace: str, of_scheduler: str, method: str) -> Any:
    """The class that the option of ``[scheduler]`` names, which must have *method*."""
    option, value = f"[scheduler] {of_scheduler}", conf.scheduler[of_scheduler]
    name, directory = NOVA_PATHS.get(value, value), conf.filter_scheduler.extensions_directory
    try:
        found = plugins.entry_point(namespace, name)
        if found is None and "." not in name:
            found = plugins.site_class(directory, name, object, option)
        if found is None:
            found = plugins.import_path(name)
    except (ImportError, ValueError) as error:
        names = sorted(plugins.entry_point_names(namespace))
        reason = (
            f"{value!r} is neither one of {', '.join(names)}, nor the path of a class ({error}), "
            f"nor a class in {directory}{errors.did_you_mean(value, names)}"
        )
        raise errors.ConfigurationError(option=option, reason=reason) from error
    if not (inspect.isclass(found) and hasattr(found, method)):
        reason = f"{value!r} is not a class with a method {method}"
        raise errors.ConfigurationError(option=option, reason=reason)
    return found
