"""Programs with commands: global options, then a command and its words.

The options are those of the daemons and are parsed like theirs; cliff gets the words from the
command on.  A command's module is loaded when the command is asked for.
"""

import argparse
import itertools
import logging as python_logging
import sys
from collections.abc import Collection, Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import Any

from cliff import app, command, commandmanager
from oslo_config import cfg

import scheduler
from scheduler import errors, exit_codes
from scheduler.conf import command_line

BUILT_IN = {"help": "help on a command", "complete": "print a completion script for bash"}
HELP_OPTIONS = frozenset(("-h", "--help"))


class Program(app.App):
    """The program; its commands find the configuration and the databases here."""

    NAME = ""
    DESCRIPTION = ""
    #: The first words of all commands, with help.
    WORDS: Mapping[str, str] = {}
    #: By name the class, or its path ``module:Class``.
    COMMANDS: Mapping[str, type[command.Command] | str] = {}

    def __init__(self, conf: cfg.ConfigOpts, given: Sequence[str] = (), **streams: Any) -> None:
        manager = commandmanager.CommandManager("")  # without entry points of others
        for name, each in self.COMMANDS.items():
            if isinstance(each, str):
                manager.commands[name] = EntryPoint(name, each, self.NAME)
            else:
                manager.add_command(name, each)
        super().__init__(
            description=self.DESCRIPTION,
            version=scheduler.__version__,
            command_manager=manager,
            **streams,
        )
        self.conf = conf
        #: Databases of the configuration, from the first use on.
        self.databases: Any = None
        #: The global options, for commands that read the configuration by themselves.
        self.given = given

    def build_option_parser(
        self,
        description: str | None,
        version: str | None,
        argparse_kwargs: dict[str, Any] | None = None,
    ) -> argparse.ArgumentParser:
        """No options: the global ones have been parsed, all others belong to the command."""
        parser = argparse.ArgumentParser(
            prog=self.NAME, description=description, add_help=False, allow_abbrev=False
        )
        parser.set_defaults(deferred_help=False, debug=False, verbose_level=1)
        return parser

    def configure_logging(self) -> None:
        """Let what cliff finds wrong look like all other errors; the rest is set up already."""
        handler = python_logging.StreamHandler(self.stderr)
        handler.setFormatter(python_logging.Formatter(f"{self.NAME}: error: %(message)s"))
        self.LOG.handlers = [handler]
        self.LOG.propagate = False

    def run_subcommand(self, argv: list[str]) -> int:
        """Run the command, or list those of a group; words that are none are a usage error."""
        if argv[0] == "help":
            argv = [*argv[1:], "--help"]
        words = list(itertools.takewhile(lambda each: not each.startswith("-"), argv))
        names = [name.split() for name in (*self.COMMANDS, "complete")]
        if any(name == words[: len(name)] for name in names):
            return super().run_subcommand(argv)
        of_group = sorted(" ".join(name) for name in names if name[0] == words[0])
        if len(words) == 1 and of_group and HELP_OPTIONS.intersection(argv):
            self.stdout.write(self._help_on(words[0], of_group))
            return exit_codes.OK
        said = " ".join(words)
        text = f"{said} needs a command: {', '.join(of_group)}"
        if len(words) > 1 or not of_group:
            near = errors.did_you_mean(said, self.COMMANDS)
            where = f"help {words[0]}" if of_group else "--help"
            text = f"{said!r} is not a command{near or f'; see {self.NAME} {where}'}"
        self.stderr.write(f"{self.NAME}: error: {text}\n")
        return exit_codes.USAGE

    def _help_on(self, group: str, names: Sequence[str]) -> str:
        """The help of a group: what each of its commands is for."""
        width = max(map(len, names))
        known = self.command_manager.commands
        docs = {name: (known[name].load().__doc__ or "").splitlines()[0] for name in names}
        lines = [f"  {name:{width}}  {text}" for name, text in docs.items()]
        head = (f"usage: {self.NAME} {group} COMMAND ...", "")
        purpose = command_line.sentence(self.WORDS[group])
        return "\n".join([*head, purpose, "", "commands:", *lines, ""])


def forms_behind(argv: Sequence[str], words: Collection[str]) -> list[str]:
    """*argv* with the form for programs, which may stand before the command, behind it."""
    rest = list(argv)
    before: list[str] = []
    forms: list[str] = []
    while rest and rest[0] not in words:
        word = rest.pop(0)
        if word in ("-f", "--format"):
            forms += [word, *rest[:1]]
            del rest[:1]
        else:
            (forms if word.startswith(("--json", "--format=")) else before).append(word)
    return [*before, *rest, *(forms if rest else ())]


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
    if conf.command.name == "help" and not conf.command.words:
        sys.stdout.write(command_line.help_of(conf))
        return exit_codes.OK
    made = program(conf)
    try:
        return made.run([conf.command.name, *conf.command.words])
    finally:
        if made.databases is not None:
            made.databases.dispose()
