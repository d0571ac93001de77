"""Methods that the scheduler had until Juno (reference page rpc, sections 1 and 2.4)."""

import functools
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final

import oslo_messaging
from oslo_log import log as logging

from scheduler import errors, objects
from scheduler.builds import direct
from scheduler.db import compute_nodes, instances
from scheduler.drivers.base import Scheduler

LOG = logging.getLogger(__name__)

PREP_RESIZE = "prep_resize"

#: Types of arguments below 4.3, where the request is two dicts and no object.
FORMS: Final[Mapping[str, tuple[type, ...]]] = {
    "request_spec": (dict,),
    "filter_properties": (dict, type(None)),
    "host": (str,),
}
HAD = ("vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used", "local_gb_used")
USED = ("vcpus", "memory_mb", "root_gb", "ephemeral_gb")


def exposed(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let *method* be called by messages whose arguments are of their forms."""

    @oslo_messaging.expose
    @functools.wraps(method)
    def checked(self: Any, context: Any, **arguments: Any) -> Any:
        for name, forms in FORMS.items():
            given = arguments.get(name, forms[0]())
            reason = f"{forms[0].__name__} expected, {type(given).__name__} given"
            direct.require(isinstance(given, forms), name, reason)
        instance = (arguments.get("request_spec") or {}).get("instance_properties")
        is_right = isinstance(instance, Mapping | objects.WireObject | None)
        direct.require(is_right, "request_spec.instance_properties", "a dict is needed")
        return method(self, context, **arguments)

    return checked


@dataclass(frozen=True)
class OlderTasks:
    """Methods of both versions from Grizzly to Juno."""

    builds: direct.DirectBuilds
    manager: Any

    @exposed
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
        """Have the driver find hosts and send them the builds (2.0; the last argument 2.9).

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

    @exposed
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
        """Find another host for a server that changes its size, and send it there (2.0).

        NoValidHost leaves the server as it was and is not raised; any other error leaves it in
        ERROR and is.  The *reservations* of quota are left to expire.
        """
        uuid, state = _uuid_and_state(instance)
        with self._recorded(context, self._uuids(context, request_spec)):
            properties = {k: v for k, v in (filter_properties or {}).items() if k != "context"}
            try:
                chosen = self._select_counting(context, request_spec, properties)[0]
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
        database = self.builds.rows.database
        return instances.recorded_event(database, context.request_id, uuids, "schedule")

    def _select_counting(
        self, context: Any, request_spec: dict[str, Any], filter_properties: dict[str, Any]
    ) -> list[Any]:
        """Host, node name and limits for each server; counts as an attempt in the properties."""
        properties = {} if filter_properties is None else filter_properties
        named = request_spec.get("instance_uuids") is not None
        uuids = self._uuids(context, request_spec) if named else []
        direct.count_attempt(properties, uuids, self.builds.max_attempts)
        return self._select(context, request_spec, properties)

    def _select(
        self, context: Any, request_spec: dict[str, Any], filter_properties: dict[str, Any]
    ) -> Any:
        return self.manager.select_destinations(
            context,
            request_spec=request_spec,
            filter_properties=filter_properties,
            instance_uuids=request_spec.get("instance_uuids"),
        )

    @exposed
    def select_hosts(
        self, context: Any, request_spec: dict[str, Any], filter_properties: dict[str, Any]
    ) -> list[str]:
        """Names of the hosts chosen (2.6)."""
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


class HavanaTasks(OlderTasks):
    """Version 2.9, which serves every message of 2.0 to 2.9."""

    target = oslo_messaging.Target(version="2.9")

    @exposed
    def select_destinations(
        self, context: Any, request_spec: dict[str, Any], filter_properties: dict[str, Any]
    ) -> list[Any]:
        """Host, node name and limits for each server (2.7)."""
        return self._select_counting(context, request_spec, filter_properties)

    @exposed
    def update_service_capabilities(
        self, context: Any, service_name: str, host: str, capabilities: Any
    ) -> None:
        """Pass on the capabilities that *host* reports: one dict, or a list of them (2.4)."""
        several = capabilities if isinstance(capabilities, list) else [capabilities]
        for each in several:
            reason = f"a dict expected, {type(each).__name__} given"
            direct.require(isinstance(each, Mapping | None), "capabilities", reason)
            self.manager.driver.update_service_capabilities(service_name, host, each or {})

    @exposed
    def show_host_resources(self, context: Any, host: str) -> dict[str, Any]:
        """Resources of the nodes of *host*, and usage by project; or ComputeHostNotFound (2.0)."""
        with self.builds.rows.database.read() as connection:
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

    @oslo_messaging.expose
    def get_backdoor_port(self, context: Any) -> None:
        """No port of a debugging backdoor: there is none (2.5)."""

    @oslo_messaging.expose
    def create_volume(self, context: Any, **arguments: Any) -> None:
        """Nothing: volumes have their own scheduler since Folsom (2.3)."""
        LOG.info("Nothing done for create_volume of %s", arguments.get("volume_id"))

    @oslo_messaging.expose
    def live_migration(self, context: Any, **arguments: Any) -> None:
        """Always refused: no release since Havana sends it, the conductor migrates (2.0)."""
        reason = "live_migration is not done by this scheduler; ask the conductor to migrate"
        raise errors.InvalidRequest(field="method", reason=reason)


class IcehouseTasks(OlderTasks):
    """Version 3.1, for callers that count the attempts themselves."""

    target = oslo_messaging.Target(version="3.1")

    @exposed
    def select_destinations(
        self, context: Any, request_spec: dict[str, Any], filter_properties: dict[str, Any]
    ) -> list[Any]:
        """Host, node name and limits for each server (3.0)."""
        return self._select(context, request_spec, filter_properties)


def _uuid_and_state(instance: Any) -> tuple[str, str | None]:
    known: Any = instance if isinstance(instance, Mapping | objects.WireObject) else {}
    uuid, state = known.get("uuid"), known.get("vm_state")
    direct.require(isinstance(uuid, str), "instance.uuid", "a text is needed")
    direct.require(isinstance(state, str | None), "instance.vm_state", "a text is needed")
    return uuid, state


def _add(sums: dict[str, int], source: Any, names: tuple[str, ...]) -> None:
    for name in names:
        sums[name] = sums.get(name, 0) + (getattr(source, name) or 0)
