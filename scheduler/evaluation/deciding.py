"""Deciding a case: the driver, on a host manager that is fed from the case."""

import datetime
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_log import log as logging

from scheduler import conf as options
from scheduler import drivers, errors, objects, plugins
from scheduler.conf import check, names
from scheduler.drivers.chance_scheduler import ChanceScheduler
from scheduler.drivers.filter_scheduler import FilterScheduler
from scheduler.drivers.loading import host_manager_class
from scheduler.engine.evaluation import NOT_ASKED, PASSES
from scheduler.engine.record import DecisionRecord
from scheduler.evaluation.cases import Answer, Behaviour, Case
from scheduler.filters import trusted_filter
from scheduler.hosts.host_manager import HostManager
from scheduler.hosts.table import HostTable
from scheduler.manager import SchedulerManager
from scheduler.numa import HostTopology
from scheduler.replay.row_fleet import RowFleet, moment
from scheduler.replay.virtual_fleet import VirtualClock

LOG = logging.getLogger(__name__)

COUNTERS = ("free_ram_mb", "free_disk_mb", "vcpus_used", "num_instances", "num_io_ops")


def decide(case: Case, behaviour: Behaviour) -> Answer:
    """The answer to *case* under *behaviour*, with the keys of the format's ``expect``."""
    clock, fleet = VirtualClock(seconds_of(case["now"])), RowFleet(case["fleet"])
    try:
        scheduler = _Scheduler(case, behaviour, fleet, clock)
    except errors.NovaException as error:
        LOG.debug("Case %s: %s", case["name"], error)
        return {"error": type(error).__name__, "stage": "startup", "message": str(error)}
    if "steps" not in case:
        return scheduler.ask(case)
    answers: list[Answer] = []
    for step in case["steps"]:
        if "now" in step:
            clock.advance(seconds_of(step["now"]))
        fleet.change(step)
        if step.get("tick"):
            scheduler.driver.run_periodic_tasks(scheduler.context)
        answers.append(scheduler.ask(step) if "request" in step else {})
    return {"steps": answers}


def seconds_of(now: str) -> float:
    """A time as the format writes it, in seconds since the epoch."""
    return moment(now).replace(tzinfo=datetime.UTC).timestamp()


def configuration(case: Case, behaviour: Behaviour) -> cfg.ConfigOpts:
    """The options of *case*; an error names the one that cannot be used."""
    conf = options.detached()
    given = {("scheduler", "semantics"): behaviour.semantics}
    if "driver" in case:
        given["scheduler", "driver"] = case["driver"]
    for group, values in case.get("config", {}).items():
        given.update(((group, name), value) for name, value in values.items())
    for (group, name), value in given.items():
        try:
            conf.set_default(name, value, group=names.section(group))
        except (cfg.Error, ValueError, TypeError) as error:
            option = f"[{group}] {name}"
            raise errors.ConfigurationError(option=option, reason=str(error)) from error
    check.validate(conf)
    return conf


class RecordedAttestation(trusted_filter.AttestationService):
    """Answers as the case says, whatever it is asked; not at all without an answer."""

    def __init__(self, options: Any, entries: list[dict[str, Any]] | None) -> None:
        super().__init__(options)
        self.entries = entries or []

    def poll(self, nodes: Collection[str], now: float) -> dict[str, trusted_filter.Trust]:
        """The case's entries, whichever nodes are asked for."""
        del nodes
        return trusted_filter.read_entries(self.entries, now)


class _Scheduler:
    """One scheduler process that has just started."""

    def __init__(
        self, case: Case, behaviour: Behaviour, fleet: RowFleet, clock: VirtualClock
    ) -> None:
        """Start with the configuration of *case*; raises errors that name the option."""
        conf = configuration(case, behaviour)
        plugins.prepare(conf)
        self._name, self._behaviour = case["name"], behaviour
        self._wants_alternates = bool(case.get("return_alternates"))
        manager: HostManager = host_manager_class(conf)(conf, fleet, clock, behaviour.reservations)
        self.driver = drivers.load(conf, manager)
        if isinstance(self.driver, FilterScheduler):
            for each in self.driver.settings.policy.chain.filters:
                if isinstance(each, trusted_filter.TrustedFilter):
                    recorded = case.get("attestation")
                    each.service = RecordedAttestation(conf.trusted_computing, recorded)
        self._manager = SchedulerManager(conf, self.driver)
        self.context = oslo_context.RequestContext(overwrite=False)

    def ask(self, content: Mapping[str, Any]) -> Answer:
        before = self.driver.recorder.records.last_sequence
        failure: errors.NovaException | None = None
        try:
            self._select(content)
        except errors.NovaException as error:
            failure = error
        record = next(iter(self.driver.recorder.records.since(before)), None)
        answer: Answer = {} if record is None else _recorded(record, self.driver)
        if failure is not None:
            self._failed(answer, failure)
        elif record is not None and record.by_weight_alone and len(set(record.drawn_from)) <= 1:
            self._choice(answer, record)
        if not answer.get("limits"):
            answer.pop("limits", None)
        return answer

    def _failed(self, answer: Answer, error: errors.NovaException) -> None:
        """Note the end of a request that was not served; a *crash* cannot be served anywhere."""
        if type(error) is errors.NovaException:  # a fault, which the manager has logged
            LOG.error("Case %s cannot be decided", self._name)
            cause = error.__cause__
            if isinstance(cause, errors.ExtensionFailed):
                cause = cause.__cause__ or cause
            answer.update(error=type(cause).__name__, crash=True, message=f"{cause}")
            return
        LOG.debug("Case %s: %s", self._name, error)
        answer["error"] = type(error).__name__
        if isinstance(error, errors.InvalidRequest):
            answer.update(crash=True, message=str(error))
        if isinstance(error, errors.NoValidHost):
            answer.setdefault("passed", [])

    def _select(self, content: Mapping[str, Any]) -> None:
        arguments: dict[str, Any] = dict(content.get("legacy", {}))
        if "request" in content:
            arguments["spec_obj"] = objects.from_primitive(content["request"])
            if self._behaviour.names_instances:
                arguments["instance_uuids"] = content.get("instance_uuids")
        self._manager.select_destinations(
            self.context, **arguments, return_objects=True, return_alternates=self._wants_alternates
        )

    def _choice(self, answer: Answer, record: DecisionRecord) -> None:
        if isinstance(self.driver, ChanceScheduler):  # which leaves the node open
            answer["selected"] = [[host, None] for host, _node in record.chosen]
            return
        answer["selected"] = [list(pair) for pair in record.chosen]
        if self._wants_alternates:
            answer["alternates"] = [[list(pair) for pair in row] for row in record.alternates]
        answer["state_after"] = {
            f"{host}/{node}": self._state(host, node) for host, node in answer["selected"]
        }

    def _state(self, host: str, node: str) -> dict[str, Any]:
        table = self.driver.host_manager.table
        row = table.rows[host, node]
        state = {name: table.value(row, name) for name in COUNTERS}
        topology, pools = table.value(row, "numa_topology"), table.value(row, "pci_stats")
        if isinstance(topology, HostTopology):
            state["numa"] = cells_in_use(topology)
        if pools is not None and pools.pools:
            state["pci"] = pools.to_dicts()
        return state


def cells_in_use(host: HostTopology) -> list[dict[str, Any]]:
    return [
        {
            "id": cell.id,
            "cpu_usage": cell.cpu_usage,
            "memory_usage": cell.memory_usage_mb,
            "pinned_cpus": sorted(cell.pinned),
            "pages_used": {str(pages.size_kb): pages.used for pages in cell.pages},
        }
        for cell in host.cells
    ]


def _recorded(record: DecisionRecord, driver: Any) -> Answer:
    """The record of the first instance: hosts left, their limits and weights."""
    if record.drawn_from:
        return {"passed": [[host, None] for host in sorted(record.drawn_from)]}
    verdicts = record.verdicts
    if verdicts is None:
        return {}
    table: HostTable = driver.host_manager.table
    filter_of = np.array([-1, *(number for number, _code in verdicts.reasons)])
    asked = np.flatnonzero(verdicts.of_row != NOT_ASKED)
    removed_by = filter_of[verdicts.of_row[asked]]
    answer: Answer = {"filters": []}
    for number, count in enumerate(record.filters):
        left = asked[(removed_by < 0) | (removed_by > number)]
        answer["filters"].append({"name": count.name, "passed": _pairs(table, left)})
    passed = np.flatnonzero(verdicts.of_row == PASSES)
    answer["passed"] = _pairs(table, passed)
    answer["limits"] = _limits(record, driver, passed)
    if len(passed) and len(verdicts.totals):
        rows = verdicts.ranked().tolist()
        answer["weights"] = {_name(table, row): float(verdicts.totals[row]) for row in rows}
    return answer


def _limits(record: DecisionRecord, driver: Any, rows: np.ndarray) -> dict[str, Any]:
    if record.filters_skipped:
        return {}
    policy, table = driver.settings.policy, driver.host_manager.table
    scope = policy.scope(table, 0.0)
    limits = {
        _name(table, row): policy.chain.limits(scope.state(row), record.request)
        for row in rows.tolist()
    }
    return {name: objects.to_plain(each) for name, each in limits.items() if each}


def _name(table: HostTable, row: int) -> str:
    """The name of a host in the format, where pairs cannot stand."""
    return "{}/{}".format(*table.keys[row])


def _pairs(table: HostTable, rows: np.ndarray) -> list[list[str | None]]:
    return sorted(list(table.keys[row]) for row in rows.tolist())
