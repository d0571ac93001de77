"""PrefixScheduler: what ``ip_scheduler.py`` does, in this project's own style.

[scheduler]
driver = prefix_scheduler.PrefixScheduler
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from oslo_log import log as logging

from scheduler import errors, objects
from scheduler.drivers import Scheduler
from scheduler.drivers.selections import selection_of

LOG = logging.getLogger(__name__)

DEPARTMENTS = {"10.1": "doc", "10.2": "ops"}
DEPARTMENT_OF_OTHERS = "dev"


class PrefixScheduler(Scheduler):
    """A random host of the department that the caller's address belongs to."""

    def __init__(self, conf: Any, host_manager: Any) -> None:
        super().__init__(conf, host_manager)
        self.rng = random.SystemRandom()

    def select_destinations(
        self,
        context: Any,
        spec_obj: objects.RequestSpec,
        instance_uuids: Sequence[str] | None,
        alloc_reqs_by_rp_uuid: Any = None,
        provider_summaries: Any = None,
        allocation_request_version: str | None = None,
        return_alternates: bool = False,
    ) -> list[list[objects.Selection]]:
        """See the base class.  There are never alternates or limits."""
        del alloc_reqs_by_rp_uuid, provider_summaries, allocation_request_version
        del return_alternates
        count = len(instance_uuids or ()) or spec_obj.num_instances
        hosts = self._hosts(context, set(spec_obj.ignore_hosts or ())) if count else []
        self.host_manager.refresh()
        return [[self._selection(self.rng.choice(hosts))] for _ in range(count)]

    def _hosts(self, context: Any, ignored: set[str]) -> list[str]:
        department = department_of(context.remote_address)
        up = self.hosts_up(context, "compute")
        hosts = [host for host in up if host.startswith(department) and host not in ignored]
        LOG.debug("%s may have %d of %d hosts", context.remote_address, len(hosts), len(up))
        if not hosts:
            raise errors.NoValidHost(reason=f"No host of {department} is up.")
        return hosts

    def _selection(self, host: str) -> objects.Selection:
        state = self.host_manager.state_of(host)
        return selection_of(state, {}, self.conf.default_availability_zone)


def department_of(address: str | None) -> str:
    """The department of the caller at *address*, which is None for requests from inside."""
    for prefix, department in DEPARTMENTS.items():
        if (address or "").startswith(prefix):
            return department
    return DEPARTMENT_OF_OTHERS
