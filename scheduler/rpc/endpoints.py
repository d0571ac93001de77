"""The methods of the scheduler's topic, and nothing else (reference page rpc, 1, 7 and 8).

One endpoint serves one major version.  A call goes to the method of the same name of what is
behind the endpoint; whatever else that has stays out of reach.  Versions are those in which
a method appeared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import oslo_messaging
from oslo_log import log as logging

from scheduler import errors
from scheduler.objects import WireObject
from scheduler.rpc.dispatcher import require

LOG = logging.getLogger(__name__)

FORMS: Final[Mapping[str, tuple[type, ...]]] = {
    "request_spec": (dict,),
    "filter_properties": (dict, type(None)),
}
"""Types of arguments below 4.3, where the request is two dicts and no object."""


def forwarded(name: str, to: str = "") -> Any:
    """An RPC method *name* that hands its arguments to the method *to*, by default of its name."""

    @oslo_messaging.expose
    def method(self: _Endpoint, context: Any, **arguments: Any) -> Any:
        return self.call(to or name, context, arguments)

    method.__name__ = name
    return method


class _Endpoint:
    """Hands calls on to *behind*."""

    def __init__(self, behind: Any) -> None:
        self._behind = behind

    def call(self, name: str, context: Any, arguments: dict[str, Any]) -> Any:
        """Call the method *name*, if *arguments* are its own."""
        method = getattr(self._behind, name)
        require(method, arguments)
        return method(context, **arguments)


class SchedulerEndpoint(_Endpoint):
    """Version 4.5, which serves every message of 4.0 to 4.5, in front of the manager."""

    target = oslo_messaging.Target(version="4.5")

    @oslo_messaging.expose
    def select_destinations(self, context: Any, **arguments: Any) -> Any:
        """Choose hosts (4.0 to 4.5)."""
        try:
            return self.call("select_destinations", context, arguments)
        except errors.NovaException as error:
            if errors.code_of(error) == errors.INVALID_REQUEST:
                raise
            raise oslo_messaging.ExpectedException() from error  # the manager has logged it

    update_aggregates = forwarded("update_aggregates")  # 4.1
    delete_aggregate = forwarded("delete_aggregate")  # 4.1
    update_instance_info = forwarded("update_instance_info")  # 4.2
    delete_instance_info = forwarded("delete_instance_info")  # 4.2
    sync_instance_info = forwarded("sync_instance_info")  # 4.2


class _OlderEndpoint(_Endpoint):
    """Methods of both versions from Grizzly to Juno, in front of the older tasks."""

    def call(self, name: str, context: Any, arguments: dict[str, Any]) -> Any:
        """Check the types of the dicts before the call; refusals are no errors of this service."""
        try:
            _check_forms(arguments)
            return super().call(name, context, arguments)
        except (errors.NoValidHost, errors.StateUnavailable) as error:
            raise oslo_messaging.ExpectedException() from error

    run_instance = forwarded("run_instance")  # 2.0; ``legacy_bdm_in_spec`` since 2.9
    prep_resize = forwarded("prep_resize")  # 2.0
    select_hosts = forwarded("select_hosts")  # 2.6


class HavanaEndpoint(_OlderEndpoint):
    """Version 2.9, which serves every message of 2.0 to 2.9."""

    target = oslo_messaging.Target(version="2.9")

    select_destinations = forwarded("select_destinations")  # 2.7
    update_service_capabilities = forwarded("update_service_capabilities")  # 2.4
    show_host_resources = forwarded("show_host_resources")  # 2.0

    @oslo_messaging.expose
    def get_backdoor_port(self, context: Any) -> None:
        """No port of a debugging backdoor: there is none (2.5)."""

    @oslo_messaging.expose
    def create_volume(self, context: Any, **arguments: Any) -> None:
        """Nothing: volumes have their own scheduler since Folsom (2.3)."""
        del context
        LOG.info("Nothing done for create_volume of %s", arguments.get("volume_id"))

    @oslo_messaging.expose
    def live_migration(self, context: Any, **arguments: Any) -> None:
        """Always refused: no release since Havana sends it, the conductor migrates (2.0)."""
        del context, arguments
        raise errors.InvalidRequest(
            field="method",
            reason="live_migration is not done by this scheduler; ask the conductor to migrate",
        )


class IcehouseEndpoint(_OlderEndpoint):
    """Version 3.1, for callers that count the attempts themselves."""

    target = oslo_messaging.Target(version="3.1")

    select_destinations = forwarded("select_destinations", to="select_counted_destinations")  # 3.0


class BaseAPI:
    """The methods of every service of this family: namespace ``baseapi``, version 1.1."""

    target = oslo_messaging.Target(namespace="baseapi", version="1.1")

    def __init__(self, service_name: str) -> None:
        self._service_name = service_name

    @oslo_messaging.expose
    def ping(self, context: Any, arg: Any) -> dict[str, Any]:
        """Show that the service is there."""
        del context
        return {"service": self._service_name, "arg": arg}

    @oslo_messaging.expose
    def get_backdoor_port(self, context: Any) -> None:
        """No port of a debugging backdoor: there is none."""


def _check_forms(arguments: Mapping[str, Any]) -> None:
    """Raise InvalidRequest naming the first of *arguments* that is not of its form."""
    for name, forms in FORMS.items():
        if name in arguments and not isinstance(arguments[name], forms):
            given = type(arguments[name]).__name__
            raise errors.InvalidRequest(field=name, reason=f"dict expected, {given} given")
    spec = arguments.get("request_spec") or {}
    if not isinstance(spec.get("instance_properties"), Mapping | WireObject | None):
        raise errors.InvalidRequest(
            field="request_spec.instance_properties", reason="a dict is needed"
        )
