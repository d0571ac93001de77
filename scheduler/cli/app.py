"""``nova-scheduler-manage``: the operator's commands."""

from collections.abc import Sequence

from oslo_config import cfg

from scheduler.cli import api, claims, command, database, evaluate, fleet
from scheduler.conf import startup

PROG = "nova-scheduler-manage"

COMMANDS: dict[str, type[command.Base] | str] = {
    "db sync": database.sync,
    "db version": database.version,
    "db advise": database.advise,
    "db check": database.check,
    "host list": fleet.host_list,
    "host show": fleet.host_show,
    "service list": fleet.service_list,
    "service set": fleet.service_set,
    "aggregate list": api.aggregate_list,
    "aggregate create": api.aggregate_create,
    "aggregate show": api.aggregate_show,
    "aggregate set": api.aggregate_set,
    "aggregate add-host": api.aggregate_add_host,
    "aggregate remove-host": api.aggregate_remove_host,
    "aggregate delete": api.aggregate_delete,
    "flavor list": api.flavor_list,
    "flavor create": api.flavor_create,
    "flavor show": api.flavor_show,
    "flavor delete": api.flavor_delete,
    "group list": api.group_list,
    "group create": api.group_create,
    "group show": api.group_show,
    "claims list": claims.list_claims,
    "claims release": claims.release,
    "claims audit": claims.audit,
    "evaluate": evaluate.Evaluate,
    # On the message bus, which takes long to load.
    "config validate": "scheduler.cli.config:validate",
    "config show": "scheduler.cli.config:show",
    "broker check": "scheduler.cli.broker:Check",
    "upgrade check": "scheduler.cli.upgrade:Check",
    "explain": "scheduler.cli.explain:Explain",
    "state show": "scheduler.cli.state:Show",
    "state refresh": "scheduler.cli.state:refresh",
    "what-if": "scheduler.cli.what_if:WhatIf",
    "shadow report": "scheduler.cli.shadow:Report",
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
    "state": "see what the running schedulers know, and let them read it anew",
    "shadow": "compare a scheduler that runs beside another one with it",
    "explain": "why a server went where it went, or nowhere",
    "evaluate": "decide recorded cases again, and compare",
}


class Manage(command.Program):
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
    """Run the command in *argv*; for the message bus *conf* must be the process-wide options."""
    filled = cfg.ConfigOpts() if conf is None else conf
    begin = _config_command(argv)
    if begin is not None:  # it must work on what could not be parsed
        return int(Manage(filled, None, argv[:begin]).run(list(argv[begin:])))
    option = command.command_option(PROG, GROUPS)
    startup.parse(argv, PROG, filled, cli_opts=[option], quiet=True)
    return command.run(Manage, filled)
