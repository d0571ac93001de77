"""The commands of ``nova-conductor-stub`` besides ``serve``."""

from __future__ import annotations

from collections.abc import Mapping

from cliff import command as cliff_command
from oslo_config import cfg

from conductor_stub.cli import boot, delete, listing, move
from scheduler.cli import program

PROG = "nova-conductor-stub"

COMMANDS: Mapping[str, type[cliff_command.Command]] = {
    "boot": boot.Boot,
    "list": listing.List,
    "show": listing.Show,
    "resize": move.Resize,
    "migrate": move.Migrate,
    "delete": delete.Delete,
}

WORDS = {
    "serve": "be the conductor",
    "boot": "boot servers",
    "list": "list the servers",
    "show": "show one server",
    "resize": "give a server another flavor",
    "migrate": "move a server to another host",
    "delete": "delete servers",
}


class Servers(program.Program):
    """The program."""

    NAME = PROG
    DESCRIPTION = "A small conductor, and servers without an API."
    COMMANDS = COMMANDS


def run(conf: cfg.ConfigOpts) -> int:
    """Run the command that *conf* was filled for; returns the exit status."""
    return program.run(Servers, conf)
