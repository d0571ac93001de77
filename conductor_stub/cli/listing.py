"""``list`` and ``show``: the servers there are."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from conductor_stub import servers
from scheduler import objects
from scheduler.cli import cells, command

COLUMNS = ("ID", "Name", "State", "Host", "Flavor", "Zone")
LONG_COLUMNS = (*COLUMNS, "Node", "Attempts", "Image", "Project", "User", "Properties", "Fault")


class List(command.List):
    """List the servers."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """``--long``."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--long", action="store_true", help="more columns")
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Read them."""
        with self.database.read() as conn:
            found = servers.read(conn)
        if parsed_args.long:
            return LONG_COLUMNS, [(*_brief(each), *_more(each)) for each in found]
        return COLUMNS, [_brief(each) for each in found]


class Show(command.Show):
    """Show everything about one server."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The server."""
        parser = super().get_parser(prog_name)
        parser.add_argument("server", metavar="SERVER", help="name or id")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Any]]:
        """Read it."""
        with self.database.read() as conn:
            (server,) = servers.find(conn, [parsed_args.server])
        details = _details(server)
        return tuple(details), tuple(details.values())


def _brief(server: servers.Server) -> Sequence[Any]:
    instance = server.instance
    return (
        server.uuid,
        server.name,
        server.state,
        instance.host,
        _flavor_name(instance.flavor),
        instance.availability_zone,
    )


def _more(server: servers.Server) -> Sequence[Any]:
    instance = server.instance
    return (
        instance.node,
        server.attempts,
        instance.image_ref,
        instance.project_id,
        instance.user_id,
        cells.Properties(instance.metadata),
        server.fault.message if server.fault else None,
    )


def _details(server: servers.Server) -> dict[str, Any]:
    instance, fault = server.instance, server.fault
    return {
        "id": server.uuid,
        "name": server.name,
        "state": server.state,
        "vm_state": instance.vm_state,
        "task_state": instance.task_state,
        "host": instance.host,
        "node": instance.node,
        "availability_zone": instance.availability_zone,
        "attempts": server.attempts,
        "flavor": _flavor_name(instance.flavor),
        "vcpus": instance.vcpus,
        "memory_mb": instance.memory_mb,
        "root_gb": instance.root_gb,
        "ephemeral_gb": instance.ephemeral_gb,
        "image": instance.image_ref,
        "project": instance.project_id,
        "user": instance.user_id,
        "properties": cells.Properties(instance.metadata),
        "created_at": str(instance.created_at),
        "launched_at": None if instance.launched_at is None else str(instance.launched_at),
        "fault_code": fault.code if fault else None,
        "fault_message": fault.message if fault else None,
        "fault_host": fault.host if fault else None,
        "fault_details": cells.LongText(fault.details) if fault and fault.details else None,
    }


def _flavor_name(flavor: objects.Flavor | None) -> str | None:
    return None if flavor is None else flavor.name
