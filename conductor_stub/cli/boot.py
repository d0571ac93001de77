"""``boot``: new servers."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection

from conductor_stub import booting, failure, servers
from conductor_stub.booting import BootRequest, Placement, Wishes
from conductor_stub.cli import base
from conductor_stub.conductor_rpcapi import ComputeTaskAPI
from conductor_stub.records import Order
from conductor_stub.servers import Watch, summary, unheard_of
from scheduler import errors, exit_codes, objects
from scheduler.cli import bus, command
from scheduler.cli.command import Table, argument
from scheduler.db import aggregates, compute_nodes, groups, instances
from scheduler.rpc.context import RequestContext

NEWTON = "newton"
CURRENT = "current"
APIS = (NEWTON, CURRENT)
COLUMNS = ("ID", "Name", "Host", "Attempts", "State", "Fault")


class Boot(base.OnBus, command.List):
    """Boot servers; with --wait, show where they went."""

    arguments = (
        argument("name", metavar="NAME", nargs="?", help="several get numbers behind"),
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
        argument("--project", default=base.LOCAL_PROJECT, help="whose servers"),
        argument("--user", default=base.LOCAL_USER, help="who boots them"),
        *base.wait_arguments("the servers are active or in error"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Write the rows, ask the conductor, and with --wait wait for services and servers.

        The status is FAILURE also when one of the servers is not active in the end.
        """
        with self.bus() as connection:
            if parsed_args.wait:
                base.await_services(connection, parsed_args.timeout, self.tell)
            conductor = ComputeTaskAPI(connection, retry=bus.BROKER_RETRIES)
            request, wanted = self.database.write_retrying(
                lambda conn: self._create(conn, parsed_args)
            )
            self._ask(conductor, parsed_args, request, wanted)
        uuids = [each.instance_uuid for each in wanted]
        if parsed_args.wait:
            return COLUMNS, [_row(each) for each in self._wait(uuids, parsed_args.timeout)]
        with self.database.read() as conn:
            return COLUMNS, [_row(each) for each in servers.read(conn, uuids)]

    def _create(
        self, conn: Connection, arguments: argparse.Namespace
    ) -> tuple[BootRequest, list[objects.BuildRequest]]:
        request = boot_request(conn, arguments, self.conf)
        if arguments.api == CURRENT:
            return request, booting.want_servers(conn, request)
        return request, booting.create_servers(conn, request)

    def _ask(
        self,
        conductor: ComputeTaskAPI,
        arguments: argparse.Namespace,
        request: BootRequest,
        wanted: list[objects.BuildRequest],
    ) -> None:
        order = Order(
            context=RequestContext(user_id=arguments.user, project_id=arguments.project),
            image=request.image,
            admin_password=None,
            injected_files=[],
            requested_networks=None,
            security_groups=["default"],
        )
        try:
            if arguments.api == CURRENT:
                specs = [booting.request_spec(order.context, request, each) for each in wanted]
                conductor.schedule_and_build_instances(order, wanted, specs)
            else:
                servers_asked_for = [each.instance for each in wanted]
                conductor.build_instances(order, servers_asked_for, request.filter_properties())
        except bus.UNDELIVERED as error:
            self._give_up(wanted, error, are_made=arguments.api == NEWTON)
            reason = f"the conductor could not be told: {errors.message_of(error)}"
            raise base.Failed(reason=reason) from error

    def _give_up(
        self, wanted: list[objects.BuildRequest], error: Exception, are_made: bool
    ) -> None:
        def record(conn: Connection) -> None:
            for each in wanted:
                if not are_made:
                    instances.create(conn, each.instance)
                failure.record(conn, conn, each.instance_uuid, error, self.conf.host, attempts=0)

        self.database.write_retrying(record)

    def _wait(self, uuids: list[str], timeout: float) -> Sequence[servers.Server]:
        wanted = len(uuids)
        seen, in_time = base.follow(
            self.database,
            uuids,
            lambda each: each.is_settled,
            lambda seen: summary(seen, wanted),
            timeout,
        )
        if not in_time:
            living = Watch(self.database).has_living_conductor(self.conf.service_down_time)
            self.tell(unheard_of(seen, wanted, timeout, living))
        if len(seen) < wanted or not all(each.is_active for each in seen):
            self.status = exit_codes.FAILURE
        return seen


def _row(server: servers.Server) -> Sequence[Any]:
    fault = server.fault.message if server.fault else None
    host = server.instance.host
    return server.uuid, server.name, host, server.attempts, server.state, fault


def boot_request(conn: Connection, arguments: argparse.Namespace, conf: Any) -> BootRequest:
    """The request of the command line; raises an error that names missing things."""
    placement = Placement.parse(arguments.availability_zone, tuple(arguments.ignore_host))
    if placement.zone is None:
        placement = Placement(
            conf.default_schedule_zone, placement.host, placement.node, placement.ignored_hosts
        )
    check_placement(conn, placement, conf.default_availability_zone)
    flavor = base.flavor_named(conn, arguments.flavor)
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
        hints=hints_of(arguments.hint),
        metadata=dict(arguments.property),
        wishes=Wishes.from_flavor(flavor, image, conf),
    )


def hints_of(pairs: Iterable[tuple[str, str]]) -> dict[str, str | list[str]]:
    """Scheduler hints; a key given several times has the list of its values."""
    collected: dict[str, list[str]] = {}
    for key, value in pairs:
        collected.setdefault(key, []).append(value)
    return {key: each[0] if len(each) == 1 else each for key, each in collected.items()}


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
