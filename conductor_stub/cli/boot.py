"""``boot``: new servers."""

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import oslo_messaging as messaging
from oslo_messaging.transport import RPCTransport
from sqlalchemy import Connection

from conductor_stub import booting, server_rows, servers, wire_objects
from conductor_stub.booting import BootRequest, Placement, Wishes
from conductor_stub.cli import servers as cli_servers
from conductor_stub.records import Order
from conductor_stub.rpcapi import ComputeTaskAPI, ping
from conductor_stub.servers import summary, unheard_of
from scheduler import errors, exit_codes
from scheduler.cli import api, bus, command
from scheduler.cli.command import argument
from scheduler.db import aggregates, compute_nodes, groups
from scheduler.rpc.context import RequestContext

LOCAL = "admin"
NEWTON = "newton"
CURRENT = "current"
APIS = (NEWTON, CURRENT)


class Boot(cli_servers.OnBus, command.List):
    """Boot servers; with --wait, show where they went."""

    nothing = "No server is left of those."
    columns = ("ID", "Name", "Host", "Attempts", "State", "Fault")

    arguments = (
        argument(
            "name",
            metavar="NAME",
            nargs="?",
            type=api.name_text,
            help="several get numbers behind",
        ),
        argument("--flavor", required=True, metavar="FLAVOR", help="name or id"),
        argument("--image", required=True, metavar="IMAGE", help="any name, or a uuid"),
        argument("--count", type=command.positive, default=1, help="how many"),
        argument(
            "--api",
            choices=APIS,
            default=NEWTON,
            help="ask as the API of Newton (build_instances), or of today "
            "(schedule_and_build_instances)",
        ),
        argument("--availability-zone", metavar="ZONE[:HOST[:NODE]]", help="where"),
        argument("--ignore-host", action="append", default=[], metavar="HOST"),
        argument("--group", metavar="GROUP", help="name or id of a server group"),
        argument(
            "--hint",
            action="append",
            type=command.key_value,
            default=[],
            metavar="KEY=VALUE",
            help="scheduler hint; the same key again makes a list",
        ),
        command.pairs_option("of the servers", dest="property"),
        command.pairs_option("of the image", "--image-property", "image_property"),
        argument("--project", default=LOCAL, help="whose servers"),
        argument("--user", default=LOCAL, help="who boots them"),
        argument(
            "--remote-address",
            default=cli_servers.REMOTE_ADDRESS,
            metavar="ADDRESS",
            help="where the caller is, as the API says in its requests",
        ),
        *cli_servers.wait_arguments("the servers are active or in error"),
    )

    def act(self, parsed_args: argparse.Namespace) -> list[dict[str, Any]]:
        """Write the rows, ask the conductor, and with --wait wait for services and servers.

        The status is FAILURE also when one of the servers is not active in the end.
        """
        with self.bus() as connection:
            if parsed_args.wait:
                await_services(connection, parsed_args.timeout, self.tell)
            conductor = ComputeTaskAPI(connection, retry=bus.BROKER_RETRIES)
            request, wanted = self.database.write_retrying(
                lambda conn: self._create(conn, parsed_args)
            )
            self._ask(conductor, parsed_args, request, wanted)
        uuids = [each.instance_uuid for each in wanted]
        seen = self._wait(uuids, parsed_args.timeout) if parsed_args.wait else self.shown(uuids)
        return [cli_servers.facts(each) for each in seen]

    def _create(
        self, conn: Connection, arguments: argparse.Namespace
    ) -> tuple[BootRequest, list[wire_objects.BuildRequest]]:
        request = boot_request(conn, arguments, self.conf)
        if arguments.api == CURRENT:
            return request, booting.want_servers(conn, request)
        return request, booting.create_servers(conn, request)

    def _ask(
        self,
        conductor: ComputeTaskAPI,
        arguments: argparse.Namespace,
        request: BootRequest,
        wanted: list[wire_objects.BuildRequest],
    ) -> None:
        context = RequestContext(
            user_id=arguments.user,
            project_id=arguments.project,
            remote_address=arguments.remote_address,
        )
        given = {"image": request.image, "security_groups": ["default"]}
        order = Order.from_arguments(context, given)
        try:
            if arguments.api == CURRENT:
                specs = [booting.request_spec(order.context, request, each) for each in wanted]
                conductor.schedule_and_build_instances(order, wanted, specs)
            else:
                servers_asked_for = [each.instance for each in wanted]
                conductor.build_instances(order, servers_asked_for, request.filter_properties())
        except bus.UNDELIVERED as error:
            self._give_up(wanted, error, are_made=arguments.api == NEWTON)
            reason = f"the conductor could not be reached: {errors.message_of(error)}"
            raise cli_servers.Failed(reason=reason) from error

    def _give_up(
        self, wanted: list[wire_objects.BuildRequest], error: Exception, are_made: bool
    ) -> None:
        def record(conn: Connection) -> None:
            for each in wanted:
                if not are_made:
                    server_rows.create_instance(conn, each.instance)
                server_rows.end_build(conn, each.instance_uuid, error, self.conf.host, attempts=0)

        self.database.write_retrying(record)

    def _wait(self, uuids: list[str], timeout: float) -> Sequence[servers.Server]:
        wanted = len(uuids)
        seen, in_time = servers.watch(
            self.database,
            uuids,
            lambda each: each.is_settled,
            timeout,
            lambda seen: summary(seen, wanted),
        )
        if not in_time:
            self.tell(unheard_of(seen, wanted, timeout))
        if len(seen) < wanted or not all(each.is_active for each in seen):
            self.status = exit_codes.FAILURE
        return seen


def boot_request(conn: Connection, arguments: argparse.Namespace, conf: Any) -> BootRequest:
    """The request of the command line; raises an error that names missing things."""
    ignored = tuple(arguments.ignore_host)
    placement = Placement.parse(arguments.availability_zone, conf.default_schedule_zone, ignored)
    check_placement(conn, placement, conf.default_availability_zone)
    hints: dict[str, list[str]] = {}
    for key, value in arguments.hint:
        hints.setdefault(key, []).append(value)
    flavor = api.find_flavor(conn, arguments.flavor)
    image = booting.image_of(arguments.image, dict(arguments.image_property))
    return BootRequest(
        name=arguments.name,
        count=arguments.count,
        flavor=flavor,
        image=image,
        user_id=arguments.user,
        project_id=arguments.project,
        placement=placement,
        group=groups.get(conn, arguments.group) if arguments.group else None,
        hints={key: each[0] if len(each) == 1 else each for key, each in hints.items()},
        metadata=dict(arguments.property),
        wishes=Wishes.from_flavor(flavor, image, conf),
    )


def check_placement(conn: Connection, placement: Placement, default_zone: str) -> None:
    """Raise InvalidRequest or ComputeHostNotFound for a place that does not exist."""
    zones = {each.availability_zone for each in aggregates.list_all(conn)} | {default_zone}
    if placement.zone is not None and placement.zone not in zones:
        reason = f"there is no zone {placement.zone!r}"
        raise errors.InvalidRequest(field="availability zone", reason=reason)
    if placement.host is None:
        return
    nodes = {each.hypervisor_hostname for each in compute_nodes.list_all(conn, placement.host)}
    if not nodes:
        raise errors.ComputeHostNotFound(host=placement.host)
    if placement.node is not None and placement.node not in nodes:
        raise errors.ComputeHostNotFound(host=f"{placement.host}:{placement.node}")


PROGRAMS: Final = {
    "conductor": "nova-conductor-stub serve",
    "scheduler": "nova-scheduler",
    "compute": "nova-compute-stub",
}
"""The program of each service; its topic has that name unless configured."""

PATIENCE_SECONDS: Final = 30.0
PING_SECONDS: Final = 1.0


def await_services(
    transport: RPCTransport, timeout_seconds: float, tell: Callable[[str], None]
) -> None:
    """Return once each service has answered; raises Failed that names the silent one."""
    patience = min(timeout_seconds, PATIENCE_SECONDS)
    for service, program in PROGRAMS.items():
        topic = transport.conf.scheduler_topic if service == "scheduler" else service
        deadline = time.monotonic() + patience
        was_told = False
        while True:
            try:
                ping(transport, topic, PING_SECONDS, bus.BROKER_RETRIES)
                break
            except messaging.MessagingTimeout:
                if time.monotonic() >= deadline:
                    reason = (
                        f"nothing answers on topic {topic!r}: is {program} running on this bus?"
                    )
                    raise cli_servers.Failed(reason=reason) from None
            except bus.UNDELIVERED as error:
                raise cli_servers.Failed(
                    reason=f"the message bus cannot be used: {error}"
                ) from error
            if not was_told:
                tell(f"waiting for {program}")
                was_told = True
