"""Methods that the scheduler had until Juno (reference page rpc, sections 1 and 2.4)."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from oslo_log import log as logging

from scheduler import errors, objects
from scheduler.builds import direct
from scheduler.db import compute_nodes, instance_events, instances
from scheduler.db.database import Database
from scheduler.drivers.base import Scheduler

LOG = logging.getLogger(__name__)

PREP_RESIZE = "prep_resize"


@dataclass(frozen=True)
class OlderTasks:
    """The work behind the endpoints of 2.x and 3.x."""

    builds: direct.DirectBuilds
    manager: Any
    database: Database

    def run_instance(
        self,
        context: Any,
        request_spec: dict[str, Any],
        admin_password: str | None,
        injected_files: list[Any] | None,
        requested_networks: list[Any] | None,
        is_first_time: bool,
        filter_properties: dict[str, Any],
        legacy_bdm_in_spec: bool = True,
    ) -> None:
        """Have the driver find hosts and send them the builds.

        NoValidHost ends all the builds and is not raised; any other error does and is.
        """
        uuids = self._uuids(context, request_spec)
        with self._recorded(context, uuids):
            try:
                self._check(request_spec, filter_properties)
                self.manager.driver.schedule_run_instance(
                    context,
                    request_spec,
                    admin_password,
                    injected_files,
                    requested_networks,
                    is_first_time,
                    filter_properties,
                    legacy_bdm_in_spec,
                )
            except Exception as error:
                for uuid in uuids:
                    self.builds.rows.handle_schedule_error(context, error, uuid, request_spec)
                if not isinstance(error, errors.NoValidHost):
                    raise

    def prep_resize(
        self,
        context: Any,
        image: dict[str, Any] | None,
        request_spec: dict[str, Any],
        filter_properties: dict[str, Any],
        instance: Any,
        instance_type: dict[str, Any],
        reservations: list[str] | None,
    ) -> None:
        """Find another host for a server that changes its size, and send it there.

        NoValidHost leaves the server as it was and is not raised; any other error leaves it in
        ERROR and is.  The *reservations* of quota are left to expire.
        """
        uuid, state = _uuid_and_state(instance)
        with self._recorded(context, self._uuids(context, request_spec)):
            properties = {k: v for k, v in (filter_properties or {}).items() if k != "context"}
            try:
                chosen = self.select_destinations(context, request_spec, properties)[0]
                direct.record_choice(properties, chosen)
                self.builds.compute.prep_resize(
                    context,
                    instance=instance,
                    instance_type=instance_type,
                    image=image,
                    host=chosen["host"],
                    reservations=reservations,
                    request_spec=request_spec,
                    filter_properties=properties,
                    node=chosen["nodename"],
                )
            except Exception as error:
                LOG.warning("Failed to schedule %s: %s", PREP_RESIZE, error)
                is_expected = isinstance(error, errors.NoValidHost)
                left_in = (state or "active") if is_expected else "error"
                rows = self.builds.rows
                rows.end(context, error, uuid, request_spec, PREP_RESIZE, left_in)
                if not is_expected:
                    raise

    def _recorded(self, context: Any, uuids: list[str]) -> AbstractContextManager[None]:
        return instance_events.recorded(self.database, context.request_id, uuids, "schedule")

    def select_destinations(
        self, context: Any, request_spec: dict[str, Any], filter_properties: dict[str, Any]
    ) -> list[Any]:
        """Host, node name and limits for each server; counts as an attempt in the properties."""
        properties = {} if filter_properties is None else filter_properties
        named = request_spec.get("instance_uuids") is not None
        uuids = self._uuids(context, request_spec) if named else []
        direct.count_attempt(properties, uuids, self.builds.max_attempts)
        return self.select_counted_destinations(context, request_spec, properties)

    def select_counted_destinations(
        self, context: Any, request_spec: dict[str, Any], filter_properties: dict[str, Any]
    ) -> list[Any]:
        """The same for callers that have counted the attempt."""
        return self.manager.select_destinations(
            context,
            request_spec=request_spec,
            filter_properties=filter_properties,
            instance_uuids=request_spec.get("instance_uuids"),
        )

    def select_hosts(
        self, context: Any, request_spec: dict[str, Any], filter_properties: dict[str, Any]
    ) -> list[str]:
        """Names of the hosts chosen."""
        self._uuids(context, request_spec)
        self._check(request_spec, filter_properties)
        driver: Scheduler = self.manager.driver
        return driver.select_hosts(context, request_spec, filter_properties)

    def _uuids(self, context: Any, request_spec: dict[str, Any]) -> list[str]:
        """The servers; InvalidRequest for too many, or for what no column of a database holds."""
        uuids, limits = direct.instance_uuids(request_spec), self.manager.limits
        limits.check_instances("request_spec.instance_uuids", len(uuids))
        limits.check_columns(context, objects.RequestSpec(), uuids)
        return uuids

    def _check(self, request_spec: dict[str, Any], filter_properties: dict[str, Any]) -> None:
        """Raise InvalidRequest for a request that is larger than it may be, or is none."""
        spec = objects.RequestSpec.from_primitives(request_spec, filter_properties or {})
        self.manager.limits.check(spec)

    def update_service_capabilities(
        self, context: Any, service_name: str, host: str, capabilities: Any
    ) -> None:
        """Pass on the capabilities that *host* reports: one dict, or a list of them."""
        several = capabilities if isinstance(capabilities, list) else [capabilities]
        for each in several:
            reason = f"a dict expected, {type(each).__name__} given"
            direct.require(isinstance(each, Mapping | None), "capabilities", reason)
            self.manager.driver.update_service_capabilities(service_name, host, each or {})

    def show_host_resources(self, context: Any, host: str) -> dict[str, Any]:
        """Resources of the nodes of *host*, and usage by project; raises ComputeHostNotFound."""
        with self.database.read() as connection:
            nodes = compute_nodes.list_all(connection, host)
            servers = instances.list_all(connection, host=host, parts=False)
        if not nodes:
            raise errors.ComputeHostNotFound(host=host)
        usage: dict[str, dict[str, int]] = {}
        for server in servers:
            _add(usage.setdefault(server.project_id, {}), server, USED)
        resource: dict[str, int] = {}
        for node in nodes:
            _add(resource, node, HAD)
        return {"resource": resource, "usage": usage}


def _uuid_and_state(instance: Any) -> tuple[str, str | None]:
    known: Any = instance if isinstance(instance, Mapping | objects.WireObject) else {}
    uuid, state = known.get("uuid"), known.get("vm_state")
    direct.require(isinstance(uuid, str), "instance.uuid", "a text is needed")
    direct.require(isinstance(state, str | None), "instance.vm_state", "a text is needed")
    return uuid, state


HAD = ("vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used", "local_gb_used")
USED = ("vcpus", "memory_mb", "root_gb", "ephemeral_gb")


def _add(sums: dict[str, int], source: Any, names: tuple[str, ...]) -> None:
    for name in names:
        sums[name] = sums.get(name, 0) + (getattr(source, name) or 0)
