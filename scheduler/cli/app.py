"""``nova-scheduler-manage``: the operator's commands."""

from collections.abc import Mapping, Sequence
from typing import Final

from oslo_config import cfg

from scheduler.cli import program
from scheduler.conf import startup

PROG = "nova-scheduler-manage"
DESCRIPTION = "See how schedulers and hosts are, and change what an operator may change."

#: By name where the command is; it is loaded when it is asked for.
COMMANDS: Final[Mapping[str, str]] = {
    "db sync": "scheduler.cli.database:sync",
    "db version": "scheduler.cli.database:version",
    "db advise": "scheduler.cli.database:advise",
    "db check": "scheduler.cli.database:check",
    "host list": "scheduler.cli.fleet:host_list",
    "host show": "scheduler.cli.fleet:host_show",
    "service list": "scheduler.cli.fleet:service_list",
    "service set": "scheduler.cli.fleet:service_set",
    "aggregate list": "scheduler.cli.api:aggregate_list",
    "aggregate create": "scheduler.cli.api:aggregate_create",
    "aggregate show": "scheduler.cli.api:aggregate_show",
    "aggregate set": "scheduler.cli.api:aggregate_set",
    "aggregate add-host": "scheduler.cli.api:aggregate_add_host",
    "aggregate remove-host": "scheduler.cli.api:aggregate_remove_host",
    "aggregate delete": "scheduler.cli.api:aggregate_delete",
    "flavor list": "scheduler.cli.api:flavor_list",
    "flavor create": "scheduler.cli.api:flavor_create",
    "flavor show": "scheduler.cli.api:flavor_show",
    "flavor delete": "scheduler.cli.api:flavor_delete",
    "group list": "scheduler.cli.api:group_list",
    "group create": "scheduler.cli.api:group_create",
    "group show": "scheduler.cli.api:group_show",
    "claims list": "scheduler.cli.claims:list_claims",
    "claims release": "scheduler.cli.claims:release",
    "claims audit": "scheduler.cli.claims:audit",
    "evaluate": "scheduler.cli.evaluate:Evaluate",
    "config validate": "scheduler.cli.config:validate",
    "config show": "scheduler.cli.config:show",
    "broker check": "scheduler.cli.broker:check",
    "upgrade check": "scheduler.cli.upgrade:Check",
    "explain": "scheduler.cli.explain:Explain",
    "state show": "scheduler.cli.state:show",
    "state refresh": "scheduler.cli.state:refresh",
    "what-if": "scheduler.cli.what_if:WhatIf",
    "replay": "scheduler.cli.replay:Replay",
    "install-files": "scheduler.cli.install_files:install_files",
    "plan drain": "scheduler.cli.plan:drain",
    "plan fit": "scheduler.cli.plan:fit",
    "plan free-hosts": "scheduler.cli.plan:free_hosts",
    "plan rules": "scheduler.cli.plan:rules",
    "recording show": "scheduler.cli.recording:show",
    "recording check": "scheduler.cli.recording:Check",
    "recording merge": "scheduler.cli.recording:merge",
    "recording anonymize": "scheduler.cli.recording:anonymize",
    "shadow report": "scheduler.cli.state:shadow_report",
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
    "claims": "look at the claims of hosts, close them, compare them with what there is",
    "what-if": "decide a request twice, as things are and with changes, and keep nothing",
    "plan": "which servers to move: to empty hosts, make room, mend rules; nothing is moved",
    "state": "see what the running schedulers know, and let them read it anew",
    "shadow": "compare a scheduler that runs beside another one with it",
    "explain": "why a server went where it went, or nowhere",
    "recording": "look at recorded decisions, decide them again, merge their files",
    "replay": "decide a workload anew on a fleet in memory, and report",
    "evaluate": "decide recorded cases again, and compare",
    "install-files": "copy units and what else the service needs to their places on this host",
}


class Manage(program.Program):
    NAME = PROG
    DESCRIPTION = DESCRIPTION
    WORDS = GROUPS
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
    argv = program.forms_behind(argv, GROUPS)
    begin = _config_command(argv)
    if begin is not None:  # it must work on what could not be parsed
        return int(Manage(filled, argv[:begin]).run(list(argv[begin:])))
    option = program.command_option(PROG, GROUPS)
    source = startup.Source(argv, PROG, cli_opts=[option], is_daemon=False)
    startup.parse(source, filled, DESCRIPTION)
    return program.run(Manage, filled)
