"""Find hosts, send them builds, change rows (pages scheduling, 13.1 and 13.3, conductor, 13)."""

import contextlib
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oslo_log import log as logging
from sqlalchemy import Connection

from scheduler import errors, notifications, objects
from scheduler.db import instances
from scheduler.db.database import Database
from scheduler.drivers.selections import as_dict, todays_answer
from scheduler.notifications import Notifier
from scheduler.rpc.client import ComputeClient

LOG = logging.getLogger(__name__)

SERVICE = "scheduler"
RUN_INSTANCE = "run_instance"
EVENT = f"{SERVICE}.{RUN_INSTANCE}"
LIMITS_VERSION = "1.0"
ANTI_AFFINITY = "anti-affinity"


@dataclass(frozen=True)
class InstanceRows:
    """Changes rows of instances, and notifies of failed builds; *host* is named in faults."""

    database: Database
    notifier: Notifier
    host: str

    def instance_update_db(
        self, context: Any, instance_uuid: str, extra_values: Mapping[str, Any] | None = None
    ) -> objects.Instance:
        """The instance, now on no host, with *extra_values* set; raises InstanceNotFound."""

        def taken_off_its_host(conn: Connection) -> objects.Instance:
            instances.update(
                conn, instance_uuid, **{"host": None, "node": None, **(extra_values or {})}
            )
            return instances.get(conn, instance_uuid)

        return self.database.write_retrying(taken_off_its_host)

    def handle_schedule_error(
        self, context: Any, ex: BaseException, instance_uuid: str, request_spec: Mapping[str, Any]
    ) -> None:
        """End the build of the instance with *ex*: state ERROR, a fault, a notification."""
        if not isinstance(ex, errors.NoValidHost):
            LOG.error("Exception during %s.%s", SERVICE, RUN_INSTANCE, exc_info=ex)
        extra = {"instance_uuid": instance_uuid}
        LOG.warning("Setting instance to ERROR state.", extra=extra)
        self.end(context, ex, instance_uuid, request_spec, RUN_INSTANCE, vm_state="error")

    def end(
        self,
        context: Any,
        ex: BaseException,
        instance_uuid: str,
        request_spec: Mapping[str, Any],
        method: str,
        vm_state: str,
    ) -> None:
        """Record that *method* ended with *ex*, and notify; the instance is left *vm_state*."""
        fault, host = errors.Fault.from_error(ex), self.host

        def write(conn: Connection) -> None:
            instances.update(conn, instance_uuid, vm_state=vm_state, task_state=None)
            instances.add_fault(conn, instance_uuid, fault.code, fault.message, fault.details, host)

        try:
            self.database.write_retrying(write)
        except errors.InstanceNotFound:
            LOG.warning("Instance %s disappeared during scheduling", instance_uuid)
            return
        payload = notifications.legacy_failure(request_spec, instance_uuid, method, ex, vm_state)
        self.notifier.error(context, f"{SERVICE}.{method}", payload)

    def join_group(self, instance_uuid: str, group: str) -> None:
        """Note in the system metadata that the instance belongs to *group*."""
        self.database.write_retrying(
            lambda conn: instances.set_system_metadata(conn, instance_uuid, "group", group)
        )

    def group_members(self, group: str) -> dict[str, str | None]:
        """The living instances whose system metadata names *group*, each with its host."""
        with self.database.read() as connection:
            return instances.homes_by_system_metadata(connection, "group", group)


@dataclass
class DirectBuilds:
    """Builds that a driver finds the hosts for; it passes itself.

    A failure of one server ends its build alone: its row has it, and a notification is sent.
    """

    rows: InstanceRows
    compute: ComputeClient
    max_attempts: int

    def schedule_run_instance(
        self,
        driver: Any,
        context: Any,
        request_spec: Mapping[str, Any],
        filter_properties: Mapping[str, Any] | None,
        **order: Any,
    ) -> None:
        """Build every server of ``request_spec["instance_uuids"]``.

        *order* are arguments of the message to a host besides the server.  Raises NoValidHost,
        and builds none, when this would be one attempt too many.
        """
        uuids = instance_uuids(request_spec)
        spec = copy.deepcopy(dict(request_spec))
        self._notify("start", context, {"request_spec": spec})
        LOG.info("Attempting to build %d instance(s) uuids: %s", len(uuids), uuids)
        properties = self._counted(filter_properties, uuids)
        del spec["instance_uuids"]
        properties.setdefault("instance_type", spec.get("instance_type"))
        chooser = Chooser(driver, self.rows, context, spec, properties)
        for number, uuid in enumerate(uuids):
            if not isinstance(spec.get("instance_properties"), objects.WireObject):
                own = spec.get("instance_properties") or {}
                spec["instance_properties"] = {**own, "launch_index": number}
            try:
                self._build(uuid, chooser, order)
            except Exception as error:
                LOG.debug("Instance %s cannot be built", uuid, exc_info=True)
                self.rows.handle_schedule_error(context, error, uuid, spec)
            if properties.get("retry"):
                properties["retry"]["hosts"] = []
        self._notify("end", context, {"request_spec": spec})

    def select_hosts(
        self,
        driver: Any,
        context: Any,
        request_spec: Mapping[str, Any],
        filter_properties: Mapping[str, Any],
    ) -> list[str]:
        """Names of hosts, as many as there are for the servers; NoValidHost for none at all."""
        uuids = instance_uuids(request_spec)
        properties = self._counted(filter_properties, uuids)
        chooser = Chooser(driver, self.rows, context, dict(request_spec), properties)
        names: list[str] = []
        with contextlib.suppress(errors.NoValidHost):
            for uuid in uuids:
                names.append(chooser.choose(uuid)["host"])
        if not names:
            raise errors.NoValidHost(reason="")
        return names

    def _counted(
        self, filter_properties: Mapping[str, Any] | None, uuids: list[str]
    ) -> dict[str, Any]:
        """A copy that may be changed, without the context that old callers leave in it."""
        given = filter_properties or {}
        own = copy.deepcopy({key: value for key, value in given.items() if key != "context"})
        count_attempt(own, uuids, self.max_attempts)
        return own

    def _build(self, uuid: str, chooser: "Chooser", order: Mapping[str, Any]) -> None:
        context, spec, properties = chooser.context, chooser.request_spec, chooser.properties
        chosen = chooser.choose(uuid)
        LOG.info("Choosing host %s for instance %s", chosen["host"], uuid)
        spec["instance_uuids"] = [uuid]
        weighted = {"weight": None, "host": chosen["host"]}
        payload = {"request_spec": spec, "weighted_host": weighted, "instance_id": uuid}
        self._notify("scheduled", context, payload)
        try:
            if chooser.group is not None:
                self.rows.join_group(uuid, chooser.group)
            instance = self.rows.instance_update_db(context, uuid)
        except errors.InstanceNotFound:
            LOG.warning("Instance %s disappeared during scheduling", uuid)
            return
        record_choice(properties, chosen)
        self.compute.run_instance(
            context,
            instance=instance,
            host=chosen["host"],
            request_spec=spec,
            filter_properties=properties,
            node=chosen["nodename"],
            **order,
        )

    def _notify(self, phase: str, context: Any, payload: dict[str, Any]) -> None:
        if self.rows.notifier.enabled:
            self.rows.notifier.info(context, f"{EVENT}.{phase}", objects.to_plain(payload))


@dataclass
class Chooser:
    """Asks *driver* for one server at a time, so that some may get a host while others do not."""

    driver: Any
    rows: InstanceRows
    context: Any
    request_spec: dict[str, Any]
    properties: dict[str, Any]

    def __post_init__(self) -> None:
        self.group = hinted_group(self.properties)
        known = self.properties.get("group_hosts") or []
        field = "filter_properties.group_hosts"
        self._hosts = list(_texts(known, field, "a list of texts is needed"))
        self._members: list[str] = []
        if self.group is not None:
            self._hosts += self.driver.group_hosts(self.context, self.group)
            self._members += self.rows.group_members(self.group)

    def choose(self, uuid: str) -> dict[str, Any]:
        """Host, node name and limits for one server; NoValidHost when there is none."""
        instance = self.request_spec.get("instance_properties")
        own = {**instance, "uuid": uuid} if isinstance(instance, Mapping) else instance
        request_spec = {**self.request_spec, "instance_properties": own, "num_instances": 1}
        properties = dict(self.properties)
        if self.group is not None:
            properties.update(
                group_updated=True,
                group_hosts=self._hosts,
                group_members=self._members,
                group_policies=[ANTI_AFFINITY],
            )
        spec = objects.RequestSpec.from_primitives(request_spec, properties)
        answer = self.driver.select_destinations(self.context, spec, [uuid])
        found = as_dict(todays_answer(self.driver, answer, 1)[0], LIMITS_VERSION)
        if self.group is not None:
            self._hosts.append(found["host"])
            self._members.append(uuid)
        return found


def require(is_right: bool, field: str, reason: str) -> None:
    if not is_right:
        raise errors.InvalidRequest(field=field, reason=reason)


def instance_uuids(request_spec: Mapping[str, Any]) -> list[str]:
    """The servers that *request_spec* names; raises InvalidRequest unless it is a list of texts."""
    require(isinstance(request_spec, Mapping), "request_spec", "a dict is needed")
    uuids = request_spec.get("instance_uuids")
    return _texts(uuids, "request_spec.instance_uuids", "a list of uuids is needed")


def _texts(found: Any, field: str, reason: str) -> list[str]:
    are_texts = isinstance(found, list) and all(isinstance(each, str) for each in found)
    require(are_texts, field, reason)
    return found


def hinted_group(filter_properties: Mapping[str, Any]) -> str | None:
    """The group that the hints name, if any; raises InvalidRequest for hints that are no dict."""
    hints = filter_properties.get("scheduler_hints") or {}
    field = "filter_properties.scheduler_hints"
    require(isinstance(hints, Mapping), field, "a dict is needed")
    group = hints.get("group")
    return str(group[0] if isinstance(group, list) else group) if group else None


def count_attempt(
    filter_properties: dict[str, Any], uuids: Sequence[str], max_attempts: int
) -> None:
    """Count one attempt more in *filter_properties*, as Havana's scheduler did itself.

    Nothing is counted where a failed build is final: one attempt configured, or a forced host.
    Raises NoValidHost when it is one more than *max_attempts*, InvalidRequest for a ``retry`` that
    cannot be counted on.
    """
    if max_attempts == 1 or _is_forced(filter_properties):
        filter_properties.pop("retry", None)
        return
    field = "filter_properties.retry"
    retry = filter_properties.get("retry") or {"hosts": []}
    is_right = isinstance(retry, dict) and isinstance(retry.get("hosts"), list | None)
    require(is_right, field, "a dict with a list of hosts is needed")
    try:
        attempts = int(retry.get("num_attempts") or 0) + 1
    except (OverflowError, TypeError, ValueError):
        reason = "not a whole number"
        raise errors.InvalidRequest(field=f"{field}.num_attempts", reason=reason) from None
    retry["num_attempts"] = attempts
    filter_properties["retry"] = retry
    if attempts > max_attempts:
        instance = uuids[0] if uuids else None
        raise errors.NoValidHost(
            reason=f"Exceeded max scheduling attempts {max_attempts} for instance {instance}",
            error_code=errors.ATTEMPTS_EXHAUSTED,
        )


def record_choice(filter_properties: dict[str, Any], chosen: Mapping[str, Any]) -> None:
    """Record the host *chosen* and its limits in *filter_properties*, unless it is forced."""
    if _is_forced(filter_properties):
        return
    retry = filter_properties.get("retry")
    if retry:
        retry["hosts"] = [*(retry.get("hosts") or ()), [chosen["host"], chosen["nodename"]]]
    filter_properties["limits"] = chosen["limits"] or {}


def _is_forced(filter_properties: Mapping[str, Any]) -> bool:
    return bool(filter_properties.get("force_hosts") or filter_properties.get("force_nodes"))
