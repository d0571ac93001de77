"""Find hosts and send them builds (reference pages scheduling, 13.3, and conductor, 13)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from scheduler import errors, objects
from scheduler.builds.choosing import (
    Chooser,
    count_attempt,
    hinted_group,
    instance_uuids,
    record_choice,
)
from scheduler.builds.rows import RUN_INSTANCE, SERVICE, InstanceRows
from scheduler.notifications.notifier import Notifier
from scheduler.rpc.client import ComputeClient

LOG = logging.getLogger(__name__)

EVENT = f"{SERVICE}.{RUN_INSTANCE}"


@dataclass
class DirectBuilds:
    """Builds that a driver finds the hosts for; it passes itself.

    A failure of one server ends the build of that one only; it is written to its row, and a
    notification is sent.
    """

    rows: InstanceRows
    compute: ComputeClient
    notifier: Notifier
    max_attempts: int

    def reconfigure(self, conf: cfg.ConfigOpts) -> None:
        """Count attempts from now on as *conf* says."""
        self.max_attempts = conf.scheduler.max_attempts

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
        properties = _own(filter_properties)
        self._notify("start", context, {"request_spec": spec})
        LOG.info("Attempting to build %d instance(s) uuids: %s", len(uuids), uuids)
        count_attempt(properties, uuids[0] if uuids else None, self.max_attempts)
        del spec["instance_uuids"]
        properties.setdefault("instance_type", spec.get("instance_type"))
        chooser = Chooser(driver, self.rows, context, spec, properties)
        for number, uuid in enumerate(uuids):
            if not isinstance(spec.get("instance_properties"), objects.WireObject):
                own = spec.get("instance_properties") or {}
                spec["instance_properties"] = {**own, "launch_index": number}
            self._build_one(context, uuid, chooser, spec, properties, order)
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
        properties = _own(filter_properties)
        count_attempt(properties, uuids[0] if uuids else None, self.max_attempts)
        names = list(Chooser(driver, self.rows, context, request_spec, properties).names(uuids))
        if not names:
            raise errors.NoValidHost(reason="")
        return names

    def _build_one(
        self,
        context: Any,
        uuid: str,
        chooser: Chooser,
        spec: dict[str, Any],
        properties: dict[str, Any],
        order: Mapping[str, Any],
    ) -> None:
        try:
            chosen = chooser.choose(uuid)
            LOG.info("Choosing host %s for instance %s", chosen["host"], uuid)
            spec["instance_uuids"] = [uuid]
            self._provision(context, uuid, chosen, spec, properties, order)
        except Exception as error:
            LOG.debug("Instance %s cannot be built", uuid, exc_info=True)
            self.rows.handle_schedule_error(context, error, uuid, spec)

    def _provision(
        self,
        context: Any,
        uuid: str,
        chosen: Mapping[str, Any],
        spec: dict[str, Any],
        properties: dict[str, Any],
        order: Mapping[str, Any],
    ) -> None:
        weighted = {"weight": None, "host": chosen["host"]}
        payload = {"request_spec": spec, "weighted_host": weighted, "instance_id": uuid}
        self._notify("scheduled", context, payload)
        try:
            group = hinted_group(properties)
            if group is not None:
                self.rows.join_group(uuid, group)
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
        if self.notifier.enabled:
            self.notifier.info(context, f"{EVENT}.{phase}", objects.to_plain(payload))


def _own(filter_properties: Mapping[str, Any] | None) -> dict[str, Any]:
    """A copy that may be changed, without the context that old callers leave in it."""
    given = filter_properties or {}
    return copy.deepcopy({key: value for key, value in given.items() if key != "context"})
