"""A request decided twice on copies that are thrown away: as things are, and with changes.

The configuration in force stays: ``Overlay`` is one with some options set otherwise.
"""

import dataclasses
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Self

from oslo_log import log as logging

from scheduler import errors, objects
from scheduler.conf import DECISION_OPTIONS, check, names
from scheduler.conf.names import Name
from scheduler.drivers.filter_scheduler import FilterScheduler
from scheduler.engine.record import DecisionRecord
from scheduler.explain.answer import explained
from scheduler.explain.recorder import error_text
from scheduler.filters.registry import names_available
from scheduler.hosts.reservations import Reservations
from scheduler.hosts.rows import apply_ratios
from scheduler.introspection import hypothetical_hosts
from scheduler.introspection.state import Subject, copied, require_texts
from scheduler.replay.virtual_fleet import VirtualFleet
from scheduler.semantics import Ratios

LOG = logging.getLogger(__name__)

#: Longest time that both decisions together may take.
MOST_SECONDS: Final = 60.0
_NOT_LOADED: Final = (
    errors.ConfigurationError,
    errors.ClassNotFound,
    errors.SchedulerHostFilterNotFound,
)


@dataclasses.dataclass(eq=False, repr=False)
class Overlay:
    """A configuration or a group of it, with some values in their place."""

    _options: Any
    _values: Mapping[str, Any]

    @classmethod
    def from_values(cls, conf: Any, values: Mapping[Name, Any]) -> Self:
        groups: dict[str, dict[str, Any]] = {}
        for (group, name), value in values.items():
            groups.setdefault(group, {})[name] = value
        own = groups.pop(names.DEFAULT, {})
        return cls(conf, own | {group: cls(conf[group], of) for group, of in groups.items()})

    def __getattr__(self, name: str) -> Any:
        return self[name]

    def __getitem__(self, name: str) -> Any:
        return self._values[name] if name in self._values else getattr(self._options, name)


def values_of(settings: Sequence[str], where: str = "--set") -> dict[Name, Any]:
    """Values of texts ``[group.]option=value``; InvalidRequest for what no decision can read."""
    found = {}
    for text in settings:
        spelt, separator, value = text.partition("=")
        argument = f"{where} {spelt.strip()}"
        if not separator:
            raise errors.InvalidRequest(field=argument, reason="no value: give option=value")
        name = _name_of(spelt.strip(), argument)
        parse = DECISION_OPTIONS[name].type
        with errors.as_invalid(argument, ValueError):
            is_list = DECISION_OPTIONS[name].multi
            texts = value.split(",") if is_list else [value]
            parts = [check.finite(parse(each.strip())) for each in texts]
        found[name] = parts if is_list else parts[0]
    return found


def _name_of(spelt: str, argument: str) -> Name:
    """Group and name of what is spelt so, also as older releases did."""
    group, _dot, name = spelt.rpartition(".")
    spellings: dict[str, set[Name]] = {}
    for today, option in DECISION_OPTIONS.items():
        for _group, spelling in names.spellings(today[0], option):
            spellings.setdefault(spelling, set()).add(today)
    fitting = sorted(each for each in spellings.get(name, ()) if group in ("", each[0]))
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        several = " or ".join(f"{group}.{name}" for group, name in fitting)
        raise errors.InvalidRequest(field=argument, reason=f"which one: {several}?")
    reason = f"no decision reads an option of this name{errors.did_you_mean(name, spellings)}"
    raise errors.InvalidRequest(field=argument, reason=reason)


def chain_of(
    conf: Any, option: str, known: Iterable[str], enable: Sequence[str], disable: Sequence[str]
) -> dict[Name, Any]:
    """The filters without *disable*, then *enable*; InvalidRequest for names not among them."""
    chain = list(conf.filter_scheduler[option])
    for each in disable:
        if each not in chain:
            reason = f"not one of the enabled filters{errors.did_you_mean(each, chain)}"
            raise errors.InvalidRequest(field=f"--disable {each}", reason=reason)
        chain = [name for name in chain if name != each]
    known = {*known, *chain}
    for each in enable:
        if each not in known:
            reason = f"no filter of this name is available{errors.did_you_mean(each, known)}"
            raise errors.InvalidRequest(field=f"--enable {each}", reason=reason)
        if each not in chain:
            chain.append(each)
    return {("filter_scheduler", option): chain}


def what_if(
    subject: Subject,
    request: objects.RequestSpec | None = None,
    remembered: str | None = None,
    enable: Sequence[str] = (),
    disable: Sequence[str] = (),
    settings: Sequence[str] = (),
    add_hosts: Sequence[Mapping[str, Any]] = (),
    without_hosts: Sequence[str] = (),
    max_seconds: float = MOST_SECONDS,
) -> dict[str, Any]:
    """Decide *request*, or the latest *remembered* one of a request id or instance, twice.

    The second time with the filters *enable* and without *disable*, with *settings* (texts
    ``option=value``), with hosts of the profiles *add_hosts*, and *without_hosts*.
    InvalidRequest names what cannot be understood, or is not remembered here.
    """
    driver = _driver(subject)
    asked = _asked(subject, request, remembered)
    conf = _changed(driver, settings, enable, disable)
    LOG.info("Trying out request %s for an operator; nothing is kept of it", asked.instance_uuids)
    driver.bring_state_up_to_date(None)
    with copied(subject) as (_table, reservations):
        notes = list(_without_own_reservations(driver.conf, reservations, asked))
        first = VirtualFleet.from_driver(driver, reservations, most_seconds=_half(max_seconds))
        with errors.as_invalid("--set", *_NOT_LOADED):
            second = first.copy(conf)
        before = _decided(first, asked)
        apply_ratios(second.table, Ratios.from_conf(conf))
        hypothetical_hosts.add(second, add_hosts)
        hypothetical_hosts.without(second, without_hosts)  # which the added ones may be like
        after = _decided(second, asked)
    return {
        "worker": subject.number,
        "host": subject.conf.host,
        "state_age_seconds": subject.host_manager.state_age_seconds,
        "before": before,
        "after": after,
        "notes": notes,
    }


def _half(value: Any) -> float:
    """Seconds for each of the two decisions."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        reason = f"not a number of seconds: {value!r:.50}"
        raise errors.InvalidRequest(field="max_seconds", reason=reason)
    return float(min(value, MOST_SECONDS)) / 2


def _driver(subject: Subject) -> FilterScheduler:
    """The worker's driver; InvalidRequest if it decides without filters or in its own way."""
    driver = subject.manager.driver
    if isinstance(driver, FilterScheduler):
        return driver
    name = type(getattr(driver, "driver", driver)).__name__
    reason = f"{name} decides in a way of its own, which cannot be tried out"
    raise errors.InvalidRequest(field="[scheduler] driver", reason=reason)


def _asked(
    subject: Subject, request: objects.RequestSpec | None, remembered: str | None
) -> DecisionRecord:
    """The record of the request; one that was not decided yet has no instances by name."""
    if (request is None) == (remembered is None):
        raise errors.InvalidRequest(field="request", reason="give it, or what is remembered")
    if remembered is None:
        if not isinstance(request, objects.RequestSpec):
            raise errors.InvalidRequest(field="request", reason="not a RequestSpec")
        bounds = subject.manager.limits
        bounds.check_instances("num_instances", request.num_instances, least=1)
        bounds.check(request)
        return DecisionRecord(None, (), request.num_instances, 0, request=request)
    records = subject.manager.recorder.records.find(remembered)
    latest = next((each for each in records if each.request is not None), None)
    if latest is None:
        raise errors.InvalidRequest(field=str(remembered), reason="not remembered here")
    uuids = latest.instance_uuids
    is_complete = len(uuids) == latest.num_instances
    return dataclasses.replace(latest, instance_uuids=uuids if is_complete else ())


def _changed(
    driver: FilterScheduler, settings: Sequence[str], enable: Sequence[str], disable: Sequence[str]
) -> Any:
    for field, several in (("settings", settings), ("enable", enable), ("disable", disable)):
        require_texts(field, several)
    values = values_of(settings)
    conf = Overlay.from_values(driver.conf, values)
    if enable or disable:
        option = driver.host_manager.option_of_filters(driver.conf)
        values |= chain_of(conf, option, names_available(conf), enable, disable)
    return Overlay.from_values(driver.conf, values) if values else driver.conf


def _without_own_reservations(
    conf: Any, reservations: Reservations, asked: DecisionRecord
) -> Iterator[str]:
    """Release what the servers of the request hold; yield notes for the reader of the answer."""
    uuids = set(asked.instance_uuids)
    own = reservations.of(uuids)
    reservations.release_all(own)
    if own:
        yield f"{len(own)} reservation(s) of these servers are left out of both decisions."
    homes = sorted(uuids & reservations.table.host_of_instance.keys())
    if homes:
        yield f"{len(homes)} of these servers are on hosts already and count there, both times."
    if conf.scheduler.claims == "placement":
        yield "Placement was not asked: hosts that it would not offer are among these."


def _decided(fleet: VirtualFleet, asked: DecisionRecord) -> dict[str, Any]:
    """The decision on the state of *fleet*, which it changes, as ``answer.to_dict`` has it."""
    began = time.perf_counter()
    try:
        record = fleet.place(
            asked.request,
            asked.instance_uuids,
            seed=asked.seed,
            with_alternates=True,
            wants_detail=True,
        ).record
    except errors.DecisionGivenUp as error:
        reason = f"not decided in time; {error_text(error)}"
        raise errors.InvalidRequest(field="max_seconds", reason=reason) from error
    record.elapsed_ms = (time.perf_counter() - began) * 1000
    return explained(record, fleet.driver)
