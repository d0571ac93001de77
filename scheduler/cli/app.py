"""``nova-scheduler-manage``: global options first, then a command.

The global options are those of the daemons and are parsed like theirs; cliff gets the words from
the command on.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from cliff import app as cliff_app
from cliff import command as cliff_command
from cliff import commandmanager
from oslo_config import cfg

import scheduler
from scheduler import errors
from scheduler.cli import aggregates, flavors, groups, hosts, services
from scheduler.cli import database as database_commands
from scheduler.conf import startup
from scheduler.db.database import Database

PROG = "nova-scheduler-manage"

COMMANDS: dict[str, type[cliff_command.Command]] = {
    "db sync": database_commands.Sync,
    "db version": database_commands.Version,
    "host list": hosts.List,
    "host show": hosts.Show,
    "service list": services.List,
    "service set": services.Set,
    "aggregate list": aggregates.List,
    "aggregate create": aggregates.Create,
    "aggregate show": aggregates.Show,
    "aggregate set": aggregates.Set,
    "aggregate add-host": aggregates.AddHost,
    "aggregate remove-host": aggregates.RemoveHost,
    "aggregate delete": aggregates.Delete,
    "flavor list": flavors.List,
    "flavor create": flavors.Create,
    "flavor show": flavors.Show,
    "flavor delete": flavors.Delete,
    "group list": groups.List,
    "group create": groups.Create,
    "group show": groups.Show,
}

GROUPS = {
    "db": "create and upgrade the tables",
    "host": "look at the compute hosts",
    "service": "look at the services, disable and enable them",
    "aggregate": "group hosts and give them availability zones and metadata",
    "flavor": "sizes of servers",
    "group": "server groups and their policies",
    "help": "help on a command",
    "complete": "print a completion script for bash",
}


class Manage(cliff_app.App):
    """The program; its commands find the configuration and the database here."""

    NAME = PROG

    def __init__(self, conf: cfg.ConfigOpts, database: Database, **streams: Any) -> None:
        manager = commandmanager.CommandManager()
        for name, command in COMMANDS.items():
            manager.add_command(name, command)
        super().__init__(
            description=scheduler.__doc__,
            version=scheduler.__version__,
            command_manager=manager,
            **streams,
        )
        self.conf = conf
        self.database = database

    def build_option_parser(
        self,
        description: str | None,
        version: str | None,  # noqa: ARG002 - cliff passes it
        argparse_kwargs: dict[str, Any] | None = None,  # noqa: ARG002 - likewise
    ) -> argparse.ArgumentParser:
        """No options: the global ones have been parsed, all others belong to the command."""
        parser = argparse.ArgumentParser(
            prog=PROG, description=description, add_help=False, allow_abbrev=False
        )
        parser.set_defaults(deferred_help=False, debug=False, verbose_level=1)
        return parser

    def configure_logging(self) -> None:
        """Nothing: logging is set up already."""


def main(argv: Sequence[str]) -> int:
    """Run the command that *argv* asks for and return the exit status."""
    conf = startup.parse(argv, PROG, cfg.ConfigOpts(), cli_opts=[_command_option()], quiet=True)
    try:
        database = Database.from_conf(conf)
    except errors.ConfigurationError as error:
        startup.fail(PROG, error)
    try:
        return Manage(conf, database).run([conf.command.name, *conf.command.words])
    finally:
        database.dispose()


def _command_option() -> cfg.SubCommandOpt:
    return cfg.SubCommandOpt(
        "command",
        title="commands",
        help="See: nova-scheduler-manage help COMMAND",
        handler=_add_groups,
    )


def _add_groups(subparsers: Any) -> None:
    for name, text in GROUPS.items():
        # With no prefix character that anybody types, all words go to cliff untouched.
        parser = subparsers.add_parser(name, help=text, add_help=False, prefix_chars="\0")
        parser.add_argument("words", nargs="*")
