"""``broker check``: can the message broker be used, and is what the schedulers need on it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from scheduler import exit_codes
from scheduler.broker import nodes, queues
from scheduler.broker.nodes import Node
from scheduler.broker.queues import Management, Sight, Unavailable
from scheduler.cli import command
from scheduler.cli.command import Table, argument

COLUMNS = ("Broker", "What", "Name", "State", "Messages", "Consumers", "Detail")
TIMEOUT_SECONDS = 10


class Check(command.List):
    """Connect to every broker of the transport URL and look at the schedulers' queues.

    Nothing is made or changed. Reply and fanout queues that processes left behind, and the
    addresses of consumers, are known where the RabbitMQ management API answers. Exit status: 0 all
    is well, 10 a broker cannot be reached, 11 TLS failed, 12 the login was refused, 13 the virtual
    host was refused, 14 an exchange or queue is missing, different or without a consumer, 15 the
    management API that was asked for does not answer.
    """

    needs_tables = False

    arguments = (
        argument(
            "--management-url",
            metavar="URL",
            help="where the management API is; default: [scheduler] broker_management_url, else "
            "its usual port is tried",
        ),
        argument(
            "--remove-leftovers",
            action="store_true",
            help="after listing them, delete reply and fanout queues that have neither a consumer "
            "nor messages",
        ),
        argument(
            "--timeout",
            type=command.positive,
            default=TIMEOUT_SECONDS,
            metavar="SECONDS",
            help="how long to wait for a broker (default: %(default)s)",
        ),
    )

    def run(self, parsed_args: argparse.Namespace) -> int:
        """As any command; the status names the first thing that is wrong."""
        self._to_remove: list[str] = []
        self._node: Node | None = None
        status = super().run(parsed_args)
        if status == self.status and parsed_args.remove_leftovers:
            self._remove(parsed_args.timeout)
        return status

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """One row per broker, exchange, queue and leftover."""
        brokers = nodes.from_conf(self.conf)
        rows = [self._connection_row(node, parsed_args.timeout) for node in brokers]
        if self._node is not None:
            rows += self._rows_of(self._node, parsed_args)
        return COLUMNS, rows

    def _connection_row(self, node: Node, timeout_seconds: int) -> Sequence[Any]:
        """Row that says if *node* can be used; the first that can is the one that is asked."""
        vhost = f"virtual host {node.vhost}"
        try:
            with nodes.connect(node, timeout_seconds) as connection:
                version = connection.connection.server_properties.get("version", "")
        except nodes.Failure as failure:
            self._blame(failure.status)
            return node.name, "connection", vhost, failure.state, None, None, str(failure)
        self._node = self._node or node
        detail = f"version {version}, {'with' if node.tls else 'without'} TLS"
        return node.name, "connection", vhost, "connected", None, None, detail

    def _rows_of(self, node: Node, parsed_args: argparse.Namespace) -> list[Sequence[Any]]:
        configured = parsed_args.management_url or self.conf.scheduler.broker_management_url
        api = Management(configured, node, parsed_args.timeout)
        consumers: dict[str, list[str]] = {}
        with nodes.connect(node, parsed_args.timeout) as connection:
            sights = [queues.look_at(connection, each) for each in queues.declared(self.conf)]
            if any(sight.state != queues.PRESENT for sight in sights):
                self._blame(exit_codes.BROKER_QUEUES)
            try:
                consumers, unused = api.consumers(), queues.unconsumed(api.queues())
            except Unavailable as reason:
                if configured:
                    self._blame(exit_codes.BROKER_MANAGEMENT)
                detail = f"leftovers are not looked for: {reason}"
                sights.append(Sight("management API", "", "unavailable", detail=detail))
            else:
                found = queues.leftovers(connection, unused)
                self._to_remove = [each.name for each in found if not each.messages]
                sights += found
        return [_row(node, sight, consumers.get(sight.name, [])) for sight in sights]

    def _blame(self, status: int) -> None:
        self.status = self.status or status

    def _remove(self, timeout_seconds: int) -> None:
        """Delete what was listed, if the broker agrees that nobody uses it."""
        if self._node is None or not self._to_remove:
            sys.stderr.write("There is nothing to remove.\n")
            return
        sys.stdout.flush()
        with nodes.connect(self._node, timeout_seconds) as connection:
            for name in self._to_remove:
                reason = queues.remove(connection, name)
                outcome = "Removed" if reason is None else f"Kept ({reason})"
                sys.stderr.write(f"{outcome}: {name}\n")


def _row(node: Node, sight: Sight, consumers: list[str]) -> Sequence[Any]:
    detail = sight.detail or ("consumed by " + ", ".join(sorted(consumers)) if consumers else "")
    counts = (sight.messages, sight.consumers)
    return node.name, sight.kind, sight.name, sight.state, *counts, detail
