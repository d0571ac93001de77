"""What can be called on the scheduler's topic, and nothing else (reference page rpc, section 1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import oslo_messaging

from scheduler import errors
from scheduler.rpc import arguments as given


class SchedulerEndpoint:
    """Version 4.5, which serves every message of 4.0 to 4.5.

    One method per RPC method, each handing its arguments to the manager's of the same name, so
    that whatever else the manager has stays out of reach.
    """

    target = oslo_messaging.Target(version="4.5")

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    @oslo_messaging.expose
    def select_destinations(self, context: Any, **arguments: Any) -> Any:
        """Choose hosts (4.0 to 4.5)."""
        try:
            return self._manager.select_destinations(context, **arguments)
        except TypeError:
            given.require(self._manager.select_destinations, arguments)
            raise
        except errors.NovaException as error:
            if errors.code_of(error) == errors.INVALID_REQUEST:
                raise
            raise oslo_messaging.ExpectedException() from error  # the manager has logged it

    @oslo_messaging.expose
    def update_aggregates(self, context: Any, **arguments: Any) -> None:
        """Take changed aggregates (4.1)."""
        self._do(self._manager.update_aggregates, context, arguments)

    @oslo_messaging.expose
    def delete_aggregate(self, context: Any, **arguments: Any) -> None:
        """Forget an aggregate (4.1)."""
        self._do(self._manager.delete_aggregate, context, arguments)

    @oslo_messaging.expose
    def update_instance_info(self, context: Any, **arguments: Any) -> None:
        """Take the instances of a host (4.2)."""
        self._do(self._manager.update_instance_info, context, arguments)

    @oslo_messaging.expose
    def delete_instance_info(self, context: Any, **arguments: Any) -> None:
        """Forget an instance of a host (4.2)."""
        self._do(self._manager.delete_instance_info, context, arguments)

    @oslo_messaging.expose
    def sync_instance_info(self, context: Any, **arguments: Any) -> None:
        """Compare the instances of a host with those known here (4.2)."""
        self._do(self._manager.sync_instance_info, context, arguments)

    def _do(self, method: Callable[..., Any], context: Any, arguments: dict[str, Any]) -> None:
        given.require(method, arguments)
        method(context, **arguments)
