"""The chance driver: any host that is up (reference page scheduling, section 4); the fake driver.

Newton's answer leaves the node open and the compute service then takes its first one; here the
first node is named, because a Selection must name one.
"""

import random
from collections.abc import Sequence
from typing import Any

from scheduler import errors, objects, semantics
from scheduler.drivers.base import Scheduler
from scheduler.drivers.selections import selection_of
from scheduler.engine.record import DecisionRecord
from scheduler.hosts.host_state import HostState


class ChanceScheduler(Scheduler):
    """Draws hosts at random among those up and not ignored; looks at nothing else."""

    USES_ALLOCATION_CANDIDATES = False

    def __init__(self, conf: Any, host_manager: Any) -> None:
        super().__init__(conf, host_manager)
        self.rng: random.Random = random.SystemRandom()
        self.draw = semantics.from_conf(conf).draw

    def select_destinations(
        self,
        context: Any,
        spec_obj: objects.RequestSpec,
        instance_uuids: Sequence[str] | None,
        *_ignored: Any,
        **_also_ignored: Any,
    ) -> list[list[objects.Selection]]:
        """See the base class.  There are never alternates or limits."""
        name, uuids = type(self).__name__, list(instance_uuids or ())
        with self.recorder.decision(name, context, spec_obj, uuids) as record:
            count = len(uuids) or spec_obj.num_instances
            chosen = self._chosen(context, spec_obj, count, record) if count else []
            record.note_chosen(chosen)
            return chosen

    def _chosen(
        self, context: Any, spec: objects.RequestSpec, count: int, record: DecisionRecord
    ) -> list[list[objects.Selection]]:
        hosts = self.hosts_up(context, "compute")
        if not hosts:
            raise errors.NoValidHost(reason="Is the appropriate service running?")
        ignored = set(spec.ignore_hosts or ())
        record.fleet = record.hosts_considered = len(hosts)
        hosts = [host for host in hosts if host not in ignored]
        if len(hosts) < record.fleet:
            record.never_evaluated = {"ignore_hosts.named": record.fleet - len(hosts)}
        if not hosts:
            raise errors.NoValidHost(reason="Could not find another compute")
        record.drawn_from = tuple(hosts)
        manager = self.host_manager
        with manager.lock:
            known = [host for host in hosts if host in manager.table.rows_of_host]
            if not known:
                raise errors.ComputeHostNotFound(host=", ".join(hosts))
            drawn = self.draw(self.rng, known, count)
            return [[_selection(manager.state_of(host))] for host in drawn]


def _selection(state: HostState) -> objects.Selection:
    selection = selection_of(state, {}, "")
    selection.limits = selection.availability_zone = None
    return selection


class FakeScheduler(Scheduler):
    """Always answers with an empty list; for tests of what is around a driver."""

    def select_destinations(self, *_given: Any, **_named: Any) -> list[list[objects.Selection]]:
        """An empty list, whatever is asked."""
        return []
