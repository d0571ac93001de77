"""The scheduler's interface from Grizzly to Juno (reference page rpc, sections 1 and 7).

One endpoint serves one major version, so there are two beside the one of today.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import oslo_messaging
from oslo_log import log as logging

from scheduler import errors
from scheduler.rpc import arguments as given

LOG = logging.getLogger(__name__)

expected = oslo_messaging.expected_exceptions(errors.NoValidHost, errors.StateUnavailable)


class OlderEndpoint:
    """What both versions have; *tasks* does it."""

    def __init__(self, tasks: Any) -> None:
        self._tasks = tasks

    def _do(self, method: Callable[..., Any], context: Any, arguments: dict[str, Any]) -> Any:
        given.require(method, arguments)
        given.check_forms(arguments)
        return method(context, **arguments)

    @oslo_messaging.expose
    def run_instance(self, context: Any, **arguments: Any) -> None:
        """Find hosts and tell them to build (2.0; ``legacy_bdm_in_spec`` since 2.9)."""
        self._do(self._tasks.run_instance, context, arguments)

    @oslo_messaging.expose
    def prep_resize(self, context: Any, **arguments: Any) -> None:
        """Find a host for a server that changes its size, and tell it (2.0)."""
        self._do(self._tasks.prep_resize, context, arguments)

    @oslo_messaging.expose
    @expected
    def select_hosts(self, context: Any, **arguments: Any) -> Any:
        """Names of hosts (2.6)."""
        return self._do(self._tasks.select_hosts, context, arguments)


class HavanaEndpoint(OlderEndpoint):
    """Version 2.9, which serves every message of 2.0 to 2.9."""

    target = oslo_messaging.Target(version="2.9")

    def __init__(self, tasks: Any, backdoor_port: int | None = None) -> None:
        super().__init__(tasks)
        self._backdoor_port = backdoor_port

    @oslo_messaging.expose
    @expected
    def select_destinations(self, context: Any, **arguments: Any) -> Any:
        """Hosts, nodes and limits (2.7)."""
        return self._do(self._tasks.select_destinations, context, arguments)

    @oslo_messaging.expose
    def update_service_capabilities(self, context: Any, **arguments: Any) -> None:
        """Take what a host says of itself (2.4)."""
        self._do(self._tasks.update_service_capabilities, context, arguments)

    @oslo_messaging.expose
    def show_host_resources(self, context: Any, **arguments: Any) -> Any:
        """What a host has and uses (2.0)."""
        return self._do(self._tasks.show_host_resources, context, arguments)

    @oslo_messaging.expose
    def get_backdoor_port(self, context: Any) -> int | None:
        """The port of the debugging backdoor; None when there is none (2.5)."""
        del context
        return self._backdoor_port

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


class IcehouseEndpoint(OlderEndpoint):
    """Version 3.1, for callers that count the attempts themselves."""

    target = oslo_messaging.Target(version="3.1")

    @oslo_messaging.expose
    @expected
    def select_destinations(self, context: Any, **arguments: Any) -> Any:
        """Hosts, nodes and limits (3.0)."""
        return self._do(self._tasks.select_counted_destinations, context, arguments)
