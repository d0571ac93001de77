"""A program of commands: global options first, then a command.

The global options are those of the daemons and are parsed like theirs; cliff gets the words from
the command on.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import Any

from cliff import app as cliff_app
from cliff import command as cliff_command
from cliff import commandmanager
from oslo_config import cfg

import scheduler
from scheduler import errors
from scheduler.conf import database as database_conf
from scheduler.conf import startup
from scheduler.db.databases import Databases

DATABASE_RETRIES = 2
DATABASE_RETRY_SECONDS = 1
BUILT_IN = {"help": "help on a command", "complete": "print a completion script for bash"}


class Program(cliff_app.App):
    """The program; its commands find the configuration and the databases here."""

    NAME = ""
    DESCRIPTION = scheduler.__doc__
    #: By name the class; the path of a class, ``module:Class``, where its module is to be loaded
    #: only when it is needed.
    COMMANDS: Mapping[str, type[cliff_command.Command] | str] = {}

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        databases: Databases | None,
        given: Sequence[str] = (),
        **streams: Any,
    ) -> None:
        manager = commandmanager.CommandManager()
        for name, command in self.COMMANDS.items():
            if isinstance(command, str):
                manager.commands[name] = EntryPoint(name, command, self.NAME)
            else:
                manager.add_command(name, command)
        super().__init__(
            description=self.DESCRIPTION,
            version=scheduler.__version__,
            command_manager=manager,
            **streams,
        )
        self.conf = conf
        self.databases = databases
        #: The global options, for commands that read the configuration by themselves.
        self.given = given

    def build_option_parser(
        self,
        description: str | None,
        version: str | None,  # noqa: ARG002 - cliff passes it
        argparse_kwargs: dict[str, Any] | None = None,  # noqa: ARG002 - likewise
    ) -> argparse.ArgumentParser:
        """No options: the global ones have been parsed, all others belong to the command."""
        parser = argparse.ArgumentParser(
            prog=self.NAME, description=description, add_help=False, allow_abbrev=False
        )
        parser.set_defaults(deferred_help=False, debug=False, verbose_level=1)
        return parser

    def configure_logging(self) -> None:
        """Let what cliff finds wrong look like all other errors; the rest is set up already."""
        handler = logging.StreamHandler(self.stderr)
        handler.setFormatter(logging.Formatter(f"{self.NAME}: error: %(message)s"))
        self.LOG.handlers = [handler]
        self.LOG.propagate = False


def command_option(prog: str, words: Mapping[str, str]) -> cfg.SubCommandOpt:
    """The option whose value is the command: *words* are the first words of all, with help."""

    def add(subparsers: Any) -> None:
        for name, text in {**words, **BUILT_IN}.items():
            # With no prefix character that anybody types, all words go to cliff untouched.
            parser = subparsers.add_parser(name, help=text, add_help=False, prefix_chars="\0")
            parser.add_argument("words", nargs="*")

    return cfg.SubCommandOpt(
        "command", title="commands", help=f"See: {prog} help COMMAND", handler=add
    )


def run(program: type[Program], conf: cfg.ConfigOpts) -> int:
    """Run the command that *conf* was filled for; returns the exit status."""
    # A person waits: unlike a daemon, a command soon gives up a server that does not answer.
    for group in (database_conf.GROUP, database_conf.API_GROUP):
        conf.set_default("max_retries", DATABASE_RETRIES, group=group)
        conf.set_default("retry_interval", DATABASE_RETRY_SECONDS, group=group)
    try:
        databases = Databases.from_conf(conf, is_patient=True)
    except errors.ConfigurationError as error:
        startup.fail(program.NAME, error)
    try:
        return program(conf, databases).run([conf.command.name, *conf.command.words])
    finally:
        databases.dispose()
