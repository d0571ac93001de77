"""The driver interface (reference page scheduling, sections 1.1 and 13.1)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scheduler import objects
from scheduler.claims.backend import Claims
from scheduler.explain.recorder import Recorder


class Scheduler:
    """Base of every driver: a host manager, the hosts that are up, no periodic task.

    The constructor of a driver written for Nova takes no arguments.  The loader has set ``conf``,
    ``host_manager`` and the parts below when it runs.
    """

    conf: Any
    host_manager: Any

    #: Where its decisions are written down.
    recorder: Recorder

    #: Where the hosts that it chooses are claimed.
    claims = Claims()

    #: Sender of builds to hosts (``scheduler.builds``), and that of legacy notifications.
    builds: Any = None
    notifier: Any = None

    notifies_of_selections = False
    """True when the start and the end of select_destinations are sent as notifications."""

    USES_ALLOCATION_CANDIDATES = True
    """True when Placement is asked for candidates, where it keeps the claims."""

    CLAIMS_HOSTS = False
    """True when the chosen hosts are claimed, so that no host is given away twice."""

    def __init__(self, conf: Any = None, host_manager: Any = None) -> None:
        if host_manager is not None:
            self.conf = conf
            self.host_manager = host_manager
        if not hasattr(self, "recorder"):
            self.recorder = Recorder()

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
        """Per instance a list of Selections: the chosen host, then its alternates.

        Raises NoValidHost when not every instance gets a host.
        """
        raise NotImplementedError("Driver must implement select_destinations")

    def reconfigured(self, conf: Any) -> Callable[[], None]:
        """Build what *conf*, a configuration that was read again, makes necessary.

        What is returned puts it in force, between two decisions, and cannot fail; until then
        nothing has changed.  Raises an error that names the option where *conf* cannot be used.
        """

        def take() -> None:
            self.conf = conf

        return take

    def run_periodic_tasks(self, context: Any) -> None:
        """Called every ``[scheduler] periodic_task_interval`` seconds."""

    def hosts_up(self, context: Any, topic: str) -> list[str]:
        """Names of the hosts whose service on *topic* is enabled and alive."""
        names: list[str] = self.host_manager.hosts_up(topic)
        return names

    def group_hosts(self, context: Any, group: str) -> list[str]:
        """Host of every instance whose system metadata names *group*, as in Havana."""
        if self.builds is None:
            raise NotImplementedError("Driver must implement group_hosts")
        members: dict[str, str | None] = self.builds.rows.group_members(group)
        return [host for host in members.values() if host is not None]

    def update_service_capabilities(
        self, service_name: str, host: str, capabilities: Mapping[str, Any]
    ) -> None:
        """Take what *host* says of itself, as in Havana; read it in ``HostState.capabilities``."""
        self.host_manager.update_service_capabilities(service_name, host, capabilities)

    def schedule_run_instance(
        self,
        context: Any,
        request_spec: dict[str, Any],
        admin_password: str | None,
        injected_files: list[Any] | None,
        requested_networks: list[Any] | None,
        is_first_time: bool,
        filter_properties: dict[str, Any],
        legacy_bdm_in_spec: bool,
    ) -> None:
        """Find hosts and tell them to build, as in Havana: one after the other, each or none.

        Raises NoValidHost, and builds none, when this would be one attempt too many.
        """
        if self.builds is None:
            raise NotImplementedError("Driver must implement schedule_run_instance")
        self.builds.schedule_run_instance(
            self,
            context,
            request_spec,
            filter_properties,
            injected_files=injected_files,
            requested_networks=requested_networks,
            admin_password=admin_password,
            is_first_time=is_first_time,
            legacy_bdm_in_spec=legacy_bdm_in_spec,
        )

    def select_hosts(
        self, context: Any, request_spec: dict[str, Any], filter_properties: dict[str, Any]
    ) -> list[str]:
        """Names of the hosts chosen, as in Havana; NoValidHost when there is none at all."""
        if self.builds is None:
            raise NotImplementedError("Driver must implement select_hosts")
        names: list[str] = self.builds.select_hosts(self, context, request_spec, filter_properties)
        return names
