"""``delete``: servers go, and what they used on their hosts is free again."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from conductor_stub import servers
from conductor_stub.cli import base
from conductor_stub.compute_rpcapi import ComputeAPI
from conductor_stub.deleting import delete_server
from conductor_stub.service import compute_api
from conductor_stub.stores import Stores
from conductor_stub.watching import Watch
from scheduler import errors, faults
from scheduler.cli import on_bus
from scheduler.db.databases import Databases
from scheduler.rpc.context import RequestContext


class Delete(base.OnBus):
    """Delete servers."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The servers."""
        parser = super().get_parser(prog_name)
        parser.add_argument("servers", metavar="SERVER", nargs="+", help="name or id")
        base.add_wait_options(parser, "the servers are gone")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Tell the hosts, or delete the rows; wait if told to."""
        with self.database.read() as conn:
            meant = servers.find(conn, parsed_args.servers)
        stores = Stores(Databases(self.database))
        with self.bus() as connection:
            compute = compute_api(self.conf, stores, connection, on_bus.BROKER_RETRIES)
            for each in meant:
                self._delete(compute, each)
        if parsed_args.wait:
            self._wait([each.uuid for each in meant], parsed_args.timeout)

    def _delete(self, compute: ComputeAPI, server: servers.Server) -> None:
        instance = server.instance
        context = RequestContext(user_id=instance.user_id, project_id=instance.project_id)
        try:
            delete_server(context, self.database, compute, server.uuid)
        except errors.InstanceNotFound:
            self.tell(f"{server.name} was deleted meanwhile")
        except on_bus.UNDELIVERED as error:
            reason = f"host {instance.host} could not be told: {faults.message_of(error)}"
            raise base.Failed(reason=reason) from error

    def _wait(self, uuids: list[str], timeout: float) -> None:
        def read() -> list[servers.Server]:
            with self.database.read() as conn:
                return servers.read(conn, uuids)

        def gone(left: Sequence[servers.Server]) -> int:
            return len(uuids) - len(left)

        def text(left: Sequence[servers.Server]) -> str:
            return f"{gone(left)} of {len(uuids)} deleted"

        with base.progress(len(uuids), gone, text) as show:
            left, in_time = Watch(self.database).until(read, lambda seen: not seen, timeout, show)
        if not in_time:
            named = ", ".join(f"{each.name} on {each.instance.host}" for each in left)
            raise base.Failed(reason=f"not within {timeout:g} seconds: no host has deleted {named}")
