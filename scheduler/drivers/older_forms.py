"""Drivers written for older releases of Nova, offered as today's (scheduling page, 1.1 and 13.1).

Which form ``select_destinations`` has is read from its signature, once, when the driver is loaded.
The answer may be dicts, HostStates or Selections; it leaves here as lists of Selections.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scheduler import errors, objects
from scheduler.drivers.selections import selection_of
from scheduler.engine.decision import NOT_ENOUGH_HOSTS

OPTION = "[scheduler] driver"

Ask = Callable[[Any, Any, objects.RequestSpec, list[str]], Sequence[Any]]
"""Calls a driver with context, request (whose ``num_instances`` counts) and uuids, if known."""


def form_of(cls: Any) -> Ask | None:
    """How a driver of class *cls* wants to be called; None: as today's are.

    Raises ConfigurationError when its ``select_destinations`` has none of the known forms.
    """
    method = cls.select_destinations
    if _takes(method, "self", "context", "spec", "uuids", return_alternates=False):
        return None
    names = list(inspect.signature(method).parameters)
    if "filter_properties" in names:
        return _as_havana
    if "instance_uuids" in names and _takes(method, "self", "context", "spec", "uuids", None, None):
        return _as_pike
    if _takes(method, "self", "context", "spec"):
        return _as_newton
    reason = f"{cls.__name__}.select_destinations takes {', '.join(names)}"
    raise errors.ConfigurationError(
        option=OPTION,
        reason=f"{reason}; neither (context, spec_obj, instance_uuids, ...), nor "
        "(context, spec_obj), nor (context, request_spec, filter_properties)",
    )


class OlderDriver:
    """Calls *driver* by means of *ask*; everything else is the driver's own."""

    tells_of_selections = False
    USES_ALLOCATION_CANDIDATES = False
    CLAIMS_HOSTS = False

    def __init__(self, driver: Any, ask: Ask, conf: Any) -> None:
        self.driver = driver
        self._ask = ask
        self._zone_if_none = conf.default_availability_zone

    def __getattr__(self, name: str) -> Any:
        return getattr(self.driver, name)

    def reconfigured(self, conf: Any) -> Callable[[], None]:
        """As today's drivers; one that does not know of this sees nothing but its host manager."""
        driver = self.driver
        takes = [driver.host_manager.reconfigured(conf)]
        if hasattr(driver, "reconfigured"):
            takes.append(driver.reconfigured(conf))

        def take() -> None:
            for each in takes:
                each()
            self._zone_if_none = conf.default_availability_zone

        return take

    def select_destinations(
        self,
        context: Any,
        spec_obj: objects.RequestSpec,
        instance_uuids: Sequence[str] | None,
        *_ignored: Any,
        **_also_ignored: Any,
    ) -> list[list[objects.Selection]]:
        """Per instance the Selection that the driver's answer stands for; no alternates.

        Raises NoValidHost when the driver found fewer hosts than instances, and
        ComputeHostNotFound when it names a host that has no compute node.
        """
        uuids = list(instance_uuids or ())
        spec = spec_obj.copy()
        spec.num_instances = len(uuids) or spec.num_instances
        chosen = self._ask(self.driver, context, spec, uuids)
        if len(chosen) < spec.num_instances:
            raise errors.NoValidHost(reason=NOT_ENOUGH_HOSTS)
        self.driver.host_manager.refresh()
        return [self._selections(each) for each in chosen]

    def _selections(self, chosen: Any) -> list[objects.Selection]:
        if isinstance(chosen, list):
            return chosen
        if isinstance(chosen, objects.Selection):
            return [chosen]
        if not isinstance(chosen, Mapping):  # a HostState
            chosen = {name: getattr(chosen, name) for name in ("host", "nodename", "limits")}
        state = self.driver.host_manager.state_of(chosen["host"], chosen.get("nodename"))
        limits = chosen.get("limits")
        selection = selection_of(state, limits or {}, self._zone_if_none)
        if limits is None:
            selection.limits = None
        return [selection]


def _takes(method: Callable[..., Any], *arguments: Any, **named: Any) -> bool:
    try:
        inspect.signature(method).bind(*arguments, **named)
    except TypeError:
        return False
    return True


def _as_havana(
    driver: Any, context: Any, spec: objects.RequestSpec, uuids: list[str]
) -> Sequence[Any]:
    request_spec = spec.to_legacy_request_spec_dict()
    if uuids:
        request_spec["instance_uuids"] = uuids
    filter_properties = spec.to_legacy_filter_properties_dict()
    filter_properties["instance_type"] = request_spec["instance_type"]
    chosen: Sequence[Any] = driver.select_destinations(context, request_spec, filter_properties)
    return chosen


def _as_newton(
    driver: Any, context: Any, spec: objects.RequestSpec, _uuids: list[str]
) -> Sequence[Any]:
    chosen: Sequence[Any] = driver.select_destinations(context, spec)
    return chosen


def _as_pike(
    driver: Any, context: Any, spec: objects.RequestSpec, uuids: list[str]
) -> Sequence[Any]:
    chosen: Sequence[Any] = driver.select_destinations(context, spec, uuids, None, None)
    return chosen
