"""The command line of each program as one parser, with all commands in it."""

import argparse
import os
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oslo_config import cfg

from conductor_stub import compute_daemon, conductor_daemon
from scheduler.cli import app as manage_app
from scheduler.cli import program
from scheduler.conf import startup
from scheduler.daemon import service as daemon

#: Where the parser does not know what the program does.
DEFAULTS = {
    "config_file": "nova.conf in ~/.nova, ~, /etc/nova or /etc",
    "log_date_format": "%Y-%m-%d %H:%M:%S",
}
#: Many commands have the same of these: the forms of a table, or of an answer.
SHARED_GROUPS = {
    "output formatters", "forms for programs",
    *(f"{form} formatter" for form in ("table", "json", "shell")), "CSV Formatter",
}  # fmt: skip
#: Accepted, and without effect, or of no use to a reader.
LEFT_OUT = {"--shell_completion", "--config_source", "--remote_debug-host", "--remote_debug-port"}


@dataclass(frozen=True)
class CommandLine:
    """A program: what stands before its command, and its commands by name."""

    name: str
    description: str
    options: argparse.ArgumentParser
    commands: Mapping[str, argparse.ArgumentParser] = field(default_factory=dict)


def all_programs() -> list[CommandLine]:
    """Every program."""
    manage = program.command_option(manage_app.PROG, manage_app.GROUPS)
    conductor = program.command_option(conductor_daemon.PROG, conductor_daemon.WORDS)
    serve = argparse.ArgumentParser(description="Be the conductor, until told to stop.")
    return [
        CommandLine(
            "nova-scheduler", daemon.DESCRIPTION, _options("nova-scheduler", daemon.CLI_OPTIONS)
        ),
        CommandLine(
            manage_app.PROG,
            manage_app.DESCRIPTION,
            _options(manage_app.PROG, [manage]),
            _commands(manage_app.Manage),
        ),
        CommandLine(
            conductor_daemon.PROG,
            conductor_daemon.Servers.DESCRIPTION,
            _options(conductor_daemon.PROG, [conductor]),
            {conductor_daemon.SERVE: serve, **_commands(conductor_daemon.Servers)},
        ),
        CommandLine(
            compute_daemon.PROGRAM,
            compute_daemon.DESCRIPTION,
            _options(compute_daemon.PROGRAM, compute_daemon.CLI_OPTIONS),
        ),
    ]


def _options(prog: str, cli_opts: Sequence[cfg.Opt] = ()) -> argparse.ArgumentParser:
    """The options of *prog*, each once, in the order of their names."""
    conf = cfg.ConfigOpts()
    words = ["help"] if any(isinstance(each, cfg.SubCommandOpt) for each in cli_opts) else []
    argv = ["--config-file", os.devnull, *words]
    startup.parse(startup.Source(argv, prog, [], cli_opts, is_daemon=False), conf)
    parser = argparse.ArgumentParser(prog=prog, add_help=False)
    parsed: Any = conf._oparser
    for action in sorted(parsed._actions, key=lambda each: each.option_strings[:1]):
        is_left_out = LEFT_OUT.intersection(action.option_strings)
        if action.option_strings and not is_left_out:
            action.default = DEFAULTS.get(action.dest, action.default)
            parser._add_action(action)
    return parser


def _commands(owner: type[program.Program]) -> dict[str, argparse.ArgumentParser]:
    return {name: _command(owner, name) for name in sorted(owner.COMMANDS)}


def _command(owner: type[program.Program], name: str) -> argparse.ArgumentParser:
    """The parser of one command without what all commands share."""
    known = owner.COMMANDS[name]
    command = pkgutil.resolve_name(known) if isinstance(known, str) else known
    complete = command(None, None).get_parser(f"{owner.NAME} {name}")
    parser = argparse.ArgumentParser(
        prog=complete.prog, description=complete.description, add_help=False
    )
    for group in complete._action_groups:
        if group.title not in SHARED_GROUPS:
            for action in group._group_actions:
                if "--help" not in action.option_strings:
                    parser._add_action(action)
    return parser
