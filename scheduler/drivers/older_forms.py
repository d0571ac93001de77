"""Drivers written for older releases of Nova, offered as today's (scheduling page, 1.1 and 13.1).

The signature of ``select_destinations`` says how it is called, once, when the driver is loaded.
Its answer is converted by what it is, whatever the form: ``selections.todays_answer``.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler import errors, objects
from scheduler.drivers.filter_scheduler import configured_policy
from scheduler.engine.evaluation import Policy, evaluate, log_counts
from scheduler.hosts.candidates import Candidates, narrow
from scheduler.hosts.host_state import HostState

OPTION = "[scheduler] driver"

Form = Callable[[Any, objects.RequestSpec, list[str]], tuple[Any, ...]]
"""Makes a driver's arguments of context, request (whose ``num_instances`` counts) and uuids."""


def form_of(cls: Any) -> Form | None:
    """The form in which a driver of class *cls* wants to be called; None: as today's are.

    Raises ConfigurationError when its ``select_destinations`` has none of the known forms.
    """
    method = cls.select_destinations
    names = list(inspect.signature(method).parameters)
    if "filter_properties" in names:
        return _havanas
    if _takes(method, "self", "context", "spec", "uuids", return_alternates=False):
        return None
    if "instance_uuids" in names and _takes(method, "self", "context", "spec", "uuids", None, None):
        return lambda context, spec, uuids: (context, spec, uuids, None, None)
    if _takes(method, "self", "context", "spec"):
        return lambda context, spec, _uuids: (context, spec)
    reason = f"{cls.__name__}.select_destinations takes {', '.join(names)}"
    raise errors.ConfigurationError(
        option=OPTION,
        reason=f"{reason}; neither (context, spec_obj, instance_uuids, ...), nor "
        "(context, spec_obj), nor (context, request_spec, filter_properties)",
    )


class OlderDriver:
    """Calls *driver* in its *form*; everything else is the driver's own."""

    notifies_of_selections = False
    USES_ALLOCATION_CANDIDATES = False
    CLAIMS_HOSTS = False

    def __init__(self, driver: Any, form: Form, conf: Any) -> None:
        self.driver = driver
        self.conf = conf
        self._form = form

    def __getattr__(self, name: str) -> Any:
        return getattr(self.driver, name)

    def reconfigured(self, conf: Any) -> Callable[[], None]:
        """See ``Scheduler``; a driver without this method has its host manager's policy alone."""
        driver = self.driver
        takes = [driver.host_manager.reconfigured(conf)]
        if hasattr(driver, "reconfigured"):
            takes.append(driver.reconfigured(conf))

        def take() -> None:
            for each in takes:
                each()
            self.conf = conf

        return take

    def select_destinations(
        self,
        context: Any,
        spec_obj: objects.RequestSpec,
        instance_uuids: Sequence[str] | None,
        *_ignored: Any,
        **_also_ignored: Any,
    ) -> Any:
        """The driver's own answer, in any form; there are no alternates."""
        uuids = list(instance_uuids or ())
        spec = spec_obj.copy()
        spec.num_instances = len(uuids) or spec.num_instances
        try:
            return self.driver.select_destinations(*self._form(context, spec, uuids))
        except errors.NovaException:
            raise
        except Exception as error:
            name = type(self.driver).__name__
            raise errors.ExtensionFailed.from_error(error, name) from error


def _takes(method: Callable[..., Any], *arguments: Any, **named: Any) -> bool:
    try:
        inspect.signature(method).bind(*arguments, **named)
    except TypeError:
        return False
    return True


def _havanas(context: Any, spec: objects.RequestSpec, uuids: list[str]) -> tuple[Any, ...]:
    request_spec = spec.to_legacy_request_spec_dict()
    if uuids:
        request_spec["instance_uuids"] = uuids
    filter_properties = spec.to_legacy_filter_properties_dict()
    filter_properties["instance_type"] = request_spec["instance_type"]
    return context, request_spec, filter_properties


# --- what such drivers ask their host manager (scheduling page, 5.2, 5.6 and 7.1) -------------


@dataclass(frozen=True, slots=True)
class WeighedHost:
    """A host and its weight, under the names of Nova's class."""

    obj: HostState
    weight: float

    def to_dict(self) -> dict[str, Any]:
        return {"weight": self.weight, "host": self.obj.host}


class OlderHostManager:
    """All that *host_manager* is, and the steps of a decision that Nova's offers.

    HostStates of one ``get_all_host_states`` belong together; those that are chosen are to be
    applied by their ``consume_from_request``, and keep that until their host reports again.
    """

    def __init__(self, host_manager: Any, policy: Policy) -> None:
        self.host_manager = host_manager
        self.policy = policy

    def __getattr__(self, name: str) -> Any:
        return getattr(self.host_manager, name)

    def reconfigured(self, conf: Any) -> Callable[[], None]:
        """Return the function that puts *conf*'s policy in force."""
        policy = configured_policy(conf, self.host_manager)

        def take() -> None:
            self.policy = policy

        return take

    def get_all_host_states(self, context: Any) -> list[HostState]:
        """Every host that has a service, as of now."""
        own = self.host_manager
        own.refresh(getattr(context, "arrived_at", None))
        with own.lock:
            scope = self.policy.scope(own.table, own.clock())
            return Candidates(scope, own.table.order).states()

    def get_filtered_hosts(
        self, hosts: Iterable[HostState], spec_obj: Any, index: int = 0
    ) -> list[HostState]:
        """Those of *hosts* that the request does not exclude and all filters let pass, in order.

        What the filters demand of their compute services is in their ``limits``.
        """
        states = list(hosts)
        if not states:
            return []
        policy = self.policy
        with self.host_manager.lock:
            narrowed = narrow(_together(states), spec_obj, policy.semantics)
            if narrowed.skip_filters:
                return narrowed.hosts.states()
            found = policy.chain.run(narrowed.hosts, spec_obj, index)
            log_counts(found.counts, spec_obj.instance_uuid)
            left = found.hosts.states()
            for state in left:
                state.limits = policy.chain.limits(state, spec_obj)
            return left

    def get_weighed_hosts(self, hosts: Sequence[HostState], spec_obj: Any) -> list[WeighedHost]:
        """*hosts* best first, with their weights."""
        if not hosts:
            return []
        with self.host_manager.lock:
            evaluation = evaluate(self.policy, _together(hosts), spec_obj, skip_filters=True)
        order = np.argsort(-evaluation.totals, kind="stable")
        states = evaluation.hosts.take(order).states()
        return [
            WeighedHost(state, weight)
            for state, weight in zip(states, evaluation.totals[order].tolist(), strict=True)
        ]


def _together(states: Sequence[HostState]) -> Candidates:
    rows = np.array([state.row for state in states], dtype=np.int64)
    return Candidates(states[0].scope, rows)
