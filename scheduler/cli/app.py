"""``nova-scheduler-manage``: the operator's commands."""

from __future__ import annotations

from collections.abc import Sequence

from cliff import command as cliff_command
from oslo_config import cfg

from scheduler.cli import claims, evaluate, flavors, fleet, groups, program
from scheduler.cli import database as database_commands
from scheduler.conf import startup

PROG = "nova-scheduler-manage"

COMMANDS: dict[str, type[cliff_command.Command] | str] = {
    "db sync": database_commands.Sync,
    "db version": database_commands.Version,
    "db advise": database_commands.Advise,
    "db check": database_commands.Check,
    "host list": fleet.HostList,
    "host show": fleet.HostShow,
    "service list": fleet.ServiceList,
    "service set": fleet.ServiceSet,
    "aggregate list": groups.AggregateList,
    "aggregate create": groups.AggregateCreate,
    "aggregate show": groups.AggregateShow,
    "aggregate set": groups.AggregateSet,
    "aggregate add-host": groups.AggregateAddHost,
    "aggregate remove-host": groups.AggregateRemoveHost,
    "aggregate delete": groups.AggregateDelete,
    "flavor list": flavors.List,
    "flavor create": flavors.Create,
    "flavor show": flavors.Show,
    "flavor delete": flavors.Delete,
    "group list": groups.GroupList,
    "group create": groups.GroupCreate,
    "group show": groups.GroupShow,
    "claims list": claims.List,
    "claims release": claims.Release,
    "claims audit": claims.Audit,
    "evaluate": evaluate.Evaluate,
    # On the message bus, which takes long to load.
    "config validate": "scheduler.cli.config:Validate",
    "config show": "scheduler.cli.config:Show",
    "broker check": "scheduler.cli.broker:Check",
    "upgrade check": "scheduler.cli.upgrade:Check",
    "explain": "scheduler.cli.explain:Explain",
    "state show": "scheduler.cli.state:Show",
    "state compare": "scheduler.cli.state:Compare",
    "state refresh": "scheduler.cli.state:Refresh",
    "what-if": "scheduler.cli.what_if:WhatIf",
}

GROUPS = {
    "config": "check the configuration, and see what it amounts to",
    "db": "create and upgrade the tables, and look at the databases",
    "broker": "look at the message broker and the queues on it",
    "upgrade": "see whether this release can take over",
    "host": "look at the compute hosts",
    "service": "look at the services, disable and enable them",
    "aggregate": "group hosts and give them availability zones and metadata",
    "flavor": "sizes of servers",
    "group": "server groups and their policies",
    "claims": "see what schedulers have promised, close it, compare it with what there is",
    "what-if": "decide a request twice, as things are and with changes, and keep nothing",
    "state": "see what the running schedulers know, and compare it with the database",
    "explain": "why a server went where it went, or nowhere",
    "evaluate": "decide recorded cases again, and compare",
}


class Manage(program.Program):
    """The program."""

    NAME = PROG
    COMMANDS = COMMANDS


def _config_command(argv: Sequence[str]) -> int | None:
    """Where the words ``config validate`` or ``config show`` begin; None if they do not occur."""
    for place, words in enumerate(zip(argv, argv[1:], strict=False)):
        follows = place > 0 and argv[place - 1] in ("--config-file", "--config-dir", "help")
        if words[0] == "config" and f"config {words[1]}" in COMMANDS and not follows:
            return place
    return None


def main(argv: Sequence[str], conf: cfg.ConfigOpts | None = None) -> int:
    """Run the command that *argv* asks for and return the exit status.

    Commands that use the message bus need *conf* to be the process-wide options.
    """
    begin = _config_command(argv)
    if begin is not None:  # it must work on what could not be parsed
        return program.run_on_files(Manage, argv[:begin], argv[begin:])
    option = program.command_option(PROG, GROUPS)
    filled = cfg.ConfigOpts() if conf is None else conf
    startup.parse(argv, PROG, filled, cli_opts=[option], quiet=True)
    return program.run(Manage, filled)
