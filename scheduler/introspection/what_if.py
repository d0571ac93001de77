"""The same request decided twice on copies of a worker's state: as it is, and with changes.

Nothing is kept, claimed, notified or counted: the copies are thrown away, and filters and
weighers are made anew, so that those at work learn nothing of it.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from oslo_log import log as logging

from scheduler import errors, objects
from scheduler.drivers.filter_scheduler import FilterScheduler, Settings
from scheduler.engine.decision import decide
from scheduler.engine.evaluation import NOT_ASKED, bounds_of, restore_bounds
from scheduler.engine.record import DecisionRecord
from scheduler.explain.answer import to_dict
from scheduler.explain.recorder import error_text
from scheduler.explain.refusal import closest_hosts, note_refusal
from scheduler.filters.registry import names_available
from scheduler.hosts import columns
from scheduler.hosts.candidates import Scope
from scheduler.hosts.reservations import Reservations
from scheduler.hosts.rows import Ratios
from scheduler.hosts.table import HostTable, Key
from scheduler.introspection import hypothetical_hosts, overlay, worker
from scheduler.introspection.state import copied, in_order
from scheduler.introspection.worker import Subject

LOG = logging.getLogger(__name__)

#: The longest that both decisions together may take.
MOST_SECONDS: Final = 60.0
#: So many hosts are named that the changes let in or keep out.
MOST_NAMED: Final = 50


@dataclass(frozen=True)
class Asked:
    """The request: *uuids* may be empty; *seed* makes what is drawn the same both times."""

    spec: objects.RequestSpec
    uuids: tuple[str, ...]
    count: int
    seed: int
    decided: Mapping[str, Any] | None = None
    """The outcome of the request when it was a real one."""


@dataclass(frozen=True)
class Changes:
    """Changes for the second decision; see ``what_if``."""

    values: Mapping[overlay.Name, Any]
    added: Sequence[Mapping[str, Any]]
    removed: Sequence[str]


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
    ``option=value``), with hosts made from the profiles *add_hosts*, and *without_hosts*.
    Raises InvalidRequest naming what cannot be understood, or what is not remembered here.
    """
    worker.require_seconds("max_seconds", max_seconds)
    driver = _driver(subject)
    asked = _asked(subject, request, remembered)
    changes = _changes(driver, enable, disable, settings, add_hosts, without_hosts)
    hypothetical = _WhatIf(driver, asked, float(min(max_seconds, MOST_SECONDS)))
    LOG.info("Trying out request %s for an operator; nothing is kept of it", asked.uuids)
    driver.bring_state_up_to_date(None)
    with copied(subject) as (table, reservations):
        notes, second = list(_without_own_reservations(reservations, asked)), table.copy()
        before = hypothetical.decide(driver.conf, table, reservations)
        after = hypothetical.changed(second, reservations.copy(second), changes, notes)
    if subject.conf.scheduler.claims == "placement":
        notes.append("Placement was not asked: hosts that it would not offer are among these.")
    return {
        "worker": subject.number,
        "host": subject.host,
        "state_age_seconds": subject.known_host_manager.state_age_seconds,
        "decided": asked.decided,
        "before": before.record,
        "after": after.record,
        "passing": _passing(before, after),
        "notes": notes,
    }


def _driver(subject: Subject) -> FilterScheduler:
    """The worker's driver; InvalidRequest if it decides without filters or in its own way."""
    driver = subject.manager.driver
    if isinstance(driver, FilterScheduler):
        return driver
    name = type(getattr(driver, "driver", driver)).__name__
    reason = f"{name} decides in a way of its own, which cannot be tried out"
    raise errors.InvalidRequest(field="[scheduler] driver", reason=reason)


@dataclass(frozen=True)
class Outcome:
    """A decision as ``answer.to_dict`` has it, and for each host that was left why not or "" ."""

    record: dict[str, Any]
    verdicts: dict[Key, str]


class _WhatIf:
    """Decides one request on copies."""

    def __init__(self, driver: FilterScheduler, asked: Asked, seconds: float) -> None:
        self._driver = driver
        self._asked = asked
        self._ends_at = time.monotonic() + seconds
        self._now = driver.host_manager.clock()

    def changed(
        self, table: HostTable, reservations: Reservations, changes: Changes, notes: list[str]
    ) -> Outcome:
        """The decision with *changes*; *notes* learn what they did."""
        manager, conf = self._driver.host_manager, self._driver.conf
        if changes.values:
            conf = overlay.Overlay.from_values(conf, changes.values)
        ratios = Ratios.from_conf(conf)
        notes.extend(_apply_ratios(table, ratios, changes.values))
        with manager.lock:
            aggregates = manager.aggregates
        if changes.added:
            builder = hypothetical_hosts.Builder(
                table, aggregates, manager.decode, ratios, self._now
            )
            names = builder.add(changes.added)
            notes.append(f"{len(names)} host(s) added: {names[0]} to {names[-1]}")
        hypothetical_hosts.without(table, changes.removed)  # which the added ones may be like
        return self.decide(conf, table, reservations)

    def decide(self, conf: Any, table: HostTable, reservations: Reservations) -> Outcome:
        """The decision under *conf*, on a state that it may change."""
        asked = self._asked
        settings = _settings(conf, self._driver)
        record = DecisionRecord(None, asked.uuids, asked.count, asked.seed, "FilterScheduler")
        record.wants_detail = True
        record.state_age_seconds = self._driver.host_manager.state_age_seconds
        spec = settings.own_spec(asked.spec)
        left = max(0.0, self._ends_at - time.monotonic())
        policy = dataclasses.replace(settings.policy, most_seconds=left)
        began = time.perf_counter()
        try:
            placement = decide(
                policy,
                reservations,
                spec,
                asked.uuids,
                asked.count,
                settings.max_attempts - 1,
                now=self._now,
                record=record,
                on_refusal=functools.partial(note_refusal, record, policy, spec),
            )
        except errors.DecisionGivenUp as error:
            reason = f"not decided in time; {error_text(error)}"
            raise errors.InvalidRequest(field="max_seconds", reason=reason) from error
        except errors.NoValidHost as error:
            record.outcome, record.failure = errors.code_of(error), error_text(error)
        else:
            if record.verdicts is not None:
                scope = Scope(table, self._now, policy.service_down_time_seconds)
                record.closest = closest_hosts(record.verdicts, scope, spec)
            record.chosen = [(each.host, each.nodename) for each in placement.hosts]
            record.alternates = [
                [(each.host, each.nodename) for each in several] for several in placement.alternates
            ]
        record.elapsed_ms = (time.perf_counter() - began) * 1000
        return Outcome(to_dict(record), _verdicts(record, table))


def _asked(subject: Subject, request: objects.RequestSpec | None, remembered: str | None) -> Asked:
    if (request is None) == (remembered is None):
        raise errors.InvalidRequest(field="request", reason="give it, or what is remembered")
    if remembered is None:
        if not isinstance(request, objects.RequestSpec):
            raise errors.InvalidRequest(field="request", reason="not a RequestSpec")
        bounds = subject.manager.limits
        bounds.check_instances("num_instances", request.num_instances, least=1)
        bounds.check(request)
        return Asked(request, (), request.num_instances, 0)
    records = [
        r for r in subject.manager.recorder.records.find(remembered) if r.request is not None
    ]
    if not records:
        raise errors.InvalidRequest(field=str(remembered), reason="not remembered here")
    latest = records[0]
    uuids = latest.instance_uuids if len(latest.instance_uuids) == latest.num_instances else ()
    decided = {
        "outcome": latest.outcome,
        "chosen": [{"host": host, "node": node} for host, node in latest.chosen],
    }
    return Asked(latest.request, uuids, latest.num_instances, latest.seed, decided)


def _changes(
    driver: FilterScheduler,
    enable: Sequence[str],
    disable: Sequence[str],
    settings: Sequence[str],
    add_hosts: Sequence[Mapping[str, Any]],
    without_hosts: Sequence[str],
) -> Changes:
    texts = {"enable": enable, "disable": disable, "settings": settings}
    for field, names in {**texts, "without_hosts": without_hosts}.items():
        worker.require_texts(field, names)
    worker.require_list("add_hosts", add_hosts)
    values = overlay.values_of(settings)
    if enable or disable:
        changed = overlay.Overlay.from_values(driver.conf, values)
        option = driver.host_manager.option_of_filters(driver.conf)
        values |= overlay.chain_of(changed, option, names_available(changed), enable, disable)
    return Changes(values, add_hosts, without_hosts)


def _settings(conf: Any, driver: FilterScheduler) -> Settings:
    """New ones under *conf*, that have learnt what the driver's have; nothing stands for them."""
    try:
        settings = Settings.from_conf(conf, driver.host_manager)
    except (errors.ConfigurationError, errors.ClassNotFound) as error:
        raise errors.InvalidRequest(field="--set", reason=str(error)) from error
    except errors.SchedulerHostFilterNotFound as error:
        raise errors.InvalidRequest(field="--enable", reason=str(error)) from error
    weighers = driver.settings.policy.weighers
    if [type(each) for each in weighers] == [type(each) for each in settings.policy.weighers]:
        restore_bounds(settings.policy.weighers, bounds_of(weighers))
    return settings


def _without_own_reservations(reservations: Reservations, asked: Asked) -> Iterator[str]:
    """Release what is reserved for the servers of the request, as if they were not placed yet."""
    uuids = set(asked.uuids)
    own = [pick for pick in reservations if pick.uuid in uuids]
    for pick in own:
        reservations.release(pick)
    if own:
        yield f"{len(own)} open promise(s) to these servers are left out of both decisions."
    homes = sorted(uuids & reservations.table.host_of_instance.keys())
    if homes:
        yield f"{len(homes)} of these servers are on hosts already and count there, both times."


def _apply_ratios(
    table: HostTable, ratios: Ratios, values: Mapping[overlay.Name, Any]
) -> Iterator[str]:
    """Give rows that leave a ratio to the configuration the one of the changed configuration."""
    if not any(name.endswith("_allocation_ratio") for _group, name in values):
        return
    new = dict(zip(("cpu", "ram", "disk"), (ratios.cpu, ratios.ram, ratios.disk), strict=True))
    left_open = table.column("ratios_left_open")
    for resource, ratio in new.items():
        name = f"{resource}_allocation_ratio"
        bit = columns.RATIO_BITS[name]
        rows = [row for row in table.rows.values() if left_open[row] & bit]
        for row in rows:
            table.update(row, {name: ratio})
        stated = len(table) - len(rows)
        if stated and any(each.endswith(name) for _group, each in values):
            yield f"{stated} of {len(table)} hosts state a {name} of their own."


def _verdicts(record: DecisionRecord, table: HostTable) -> dict[Key, str]:
    """For each host that filters were asked about what removed it; "" for those that passed."""
    verdicts = record.verdicts
    if verdicts is None:
        return {}
    reasons = [f"{verdicts.filters[number].name} {code}" for number, code in verdicts.reasons]
    texts = ["", *reasons]
    asked = np.flatnonzero(verdicts.of_row != NOT_ASKED)
    return {
        (table.text(row, "host"), table.text(row, "nodename")): texts[number]
        for row, number in zip(asked.tolist(), verdicts.of_row[asked].tolist(), strict=True)
    }


def _passing(before: Outcome, after: Outcome) -> dict[str, Any]:
    """Hosts that pass only without, or only with the changes, and what keeps them out else."""
    now_pass = _only_in(after, before, "before")
    no_longer = _only_in(before, after, "after")
    return {
        "gained": len(now_pass),
        "lost": len(no_longer),
        "now": now_pass[:MOST_NAMED],
        "no_longer": no_longer[:MOST_NAMED],
    }


def _only_in(one: Outcome, other: Outcome, when: str) -> list[dict[str, Any]]:
    """The hosts that pass in *one* only, with what keeps them out of the *other*."""
    passing = sorted((key for key, why in one.verdicts.items() if not why), key=in_order)
    reasons = ((key, other.verdicts.get(key, "not among the hosts")) for key in passing)
    return [{"host": key[0], "node": key[1], when: why} for key, why in reasons if why]
