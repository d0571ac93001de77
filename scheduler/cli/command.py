"""The bases of programs and their commands.

A program has global options, then a command.  The options are those of the daemons and are parsed
like theirs; cliff gets the words from the command on.  A command has arguments, the databases, an
exit status, and errors as one line.
"""

import argparse
import functools
import logging as python_logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import Any, ClassVar, TypeVar

from cliff import app, columns, command, commandmanager, lister, show
from oslo_config import cfg
from oslo_log import log as logging
from sqlalchemy import Connection

import scheduler
from scheduler import errors, exit_codes
from scheduler.conf import database as database_conf
from scheduler.conf import startup
from scheduler.db import inspection, layout, migration
from scheduler.db.database import FAILURES, Database
from scheduler.db.databases import Databases

LOG = logging.getLogger(__name__)

DATABASE_RETRIES = 2
DATABASE_RETRY_SECONDS = 1
BUILT_IN = {"help": "help on a command", "complete": "print a completion script for bash"}

Argument = tuple[tuple[str, ...], str, bool, dict[str, Any]]
Table = tuple[Sequence[str], Iterable[Sequence[Any]]]
Shown = tuple[Sequence[str], Iterable[Any]]
Found = TypeVar("Found")


def argument(*names: str, group: str = "", is_choice: bool = False, **settings: Any) -> Argument:
    """An argument as ``ArgumentParser.add_argument`` takes it.

    Those of one *group* are listed together; of a group that *is_choice* one may be given.
    """
    return names, group, is_choice, settings


class Base(command.Command):
    """A command on the database of :attr:`database`."""

    app: Any
    arguments: ClassVar[Sequence[Argument]] = ()
    needs_tables: ClassVar[bool] = True
    #: Its rows are the API's, which with Nova's databases are in another one.
    is_of_api: ClassVar[bool] = False
    #: A command of the API that changes nothing needs no transaction that writes.
    writes: ClassVar[bool] = True
    #: The exit status of a command that did its work.
    status: int = exit_codes.OK
    parser: argparse.ArgumentParser

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The parser, with the class's :attr:`arguments`."""
        self.parser = super().get_parser(prog_name)
        groups: dict[str, Any] = {"": self.parser}
        for names, group, is_choice, settings in self.arguments:
            if group not in groups:
                groups[group] = (
                    self.parser.add_mutually_exclusive_group()
                    if is_choice
                    else self.parser.add_argument_group(group)
                )
            groups[group].add_argument(*names, **settings)
        return self.parser

    def act(self, *given: Any) -> Any:
        """Do the work with the parsed arguments; a command of the API gets a connection before."""
        raise NotImplementedError

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Do the work; that of the API all or not at all, and again after a deadlock."""
        if not self.is_of_api:
            return self.act(parsed_args)
        if self.writes:
            return self.database.write_retrying(lambda conn: self.act(conn, parsed_args))
        with self.database.read() as connection:
            return self.act(connection, parsed_args)

    @property
    def conf(self) -> cfg.ConfigOpts:
        return self.app.conf

    @property
    def databases(self) -> Databases:
        """The databases that the configuration names."""
        return self.app.databases

    @property
    def database(self) -> Database:
        """The one of them that has this command's rows."""
        return self.databases.api if self.is_of_api else self.databases.main

    @property
    def cells(self) -> dict[str, Database]:
        """Databases of compute hosts and services, by cell; unusable ones are told and left out."""
        found = {"": self.databases.main}
        if not self.databases.has_cells:
            return found
        for cell in self.databases.cells():
            try:
                database = self.databases.of_cell(cell)
                with database.read():
                    found[cell.name or cell.uuid] = database
            except (errors.ConfigurationError, *FAILURES) as error:
                is_ours = isinstance(error, errors.NovaException)  # and *database* may be missing
                self.tell(f"warning: {error if is_ours else database.unusable(error)}")
        urls = [(each.url.host, each.url.database) for each in found.values()]
        if urls[0] in urls[1:]:
            del found[""]
        return found

    def read_cells(self, read: Callable[[Connection], Iterable[Found]]) -> list[Found]:
        """Collect what *read* finds in the databases of all :attr:`cells`."""
        found: list[Found] = []
        for database in self.cells.values():
            with database.read() as connection:
                found += read(connection)
        return found

    def database_with(self, find: Callable[[Connection], Any]) -> Database:
        """The first database of the cells where *find* finds something; else the main one."""
        for database in self.cells.values():
            with database.read() as connection:
                if find(connection):
                    return database
        return self.database

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command; what it cannot do is one line on stderr and an exit status."""
        self.status = exit_codes.OK
        try:
            if self.needs_tables:
                needed = inspection.NEEDED_API_TABLES if self.is_of_api else layout.NEEDED_TABLES
                migration.check_ready(self.database, needed)
            return super().run(parsed_args) or self.status
        except (errors.NovaException, *FAILURES) as error:
            LOG.debug("The command failed.", exc_info=True)
            is_ours = isinstance(error, errors.NovaException)  # and there may be no database
            self.tell(f"error: {error if is_ours else self.database.unusable(error)}")
            return exit_codes.FAILURE

    def tell(self, text: str) -> None:
        """One line for the person at the terminal, apart from the result."""
        sys.stderr.write(f"{self.app.NAME}: {text}\n")


class List(Base, lister.Lister):
    """A command whose result is a table with :attr:`columns`: rows, or mappings with their keys."""

    columns: ClassVar[Sequence[str] | Mapping[str, str]] = ()

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        found, columns = super().take_action(parsed_args), self.columns
        if isinstance(columns, Mapping):
            found = [[row[key] for key in columns.values()] for row in found]
        return tuple(columns), found


class Show(Base, show.ShowOne):
    """A command whose result is one thing with its properties, a mapping."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        """One line for each property."""
        return self.dict2columns(super().take_action(parsed_args))


def action(
    base: type[Base], *arguments: Argument, **settings: Any
) -> Callable[[Callable[..., Any]], type[Base]]:
    """Make a function a command of the kind *base* with *settings*: its docstring is the help."""

    def command_of(act: Callable[..., Any]) -> type[Base]:
        given = {"__doc__": act.__doc__, "__module__": act.__module__, "act": act}
        return type(act.__name__, (base,), {**given, "arguments": arguments, **settings})

    return command_of


api_action = functools.partial(action, is_of_api=True)
api_reader = functools.partial(api_action, writes=False)


class Usage(columns.FormattableColumn):
    """``(used, total)``: ``3/16`` for people, two numbers for programs."""

    def human_readable(self) -> str:
        return "{}/{}".format(*self._value)

    def machine_readable(self) -> dict[str, int]:
        return dict(zip(("used", "total"), self._value, strict=True))


class Names(columns.FormattableColumn):
    """A list of names, which people see one after the other."""

    def human_readable(self) -> str:
        return ", ".join(self._value)

    def machine_readable(self) -> list[str]:
        """A list, for the forms that know no tuples."""
        return list(self._value)


class Properties(columns.FormattableColumn):
    """Keys and values."""

    def human_readable(self) -> str:
        """``key='value'``, sorted."""
        return ", ".join(f"{key}='{value}'" for key, value in sorted(self._value.items()))


class Shortened(columns.FormattableColumn):
    """A value that may be a long text or list: people see how it begins."""

    LENGTH = 60

    def human_readable(self) -> str:
        text = "-" if self._value is None else str(self._value)
        return text if len(text) <= self.LENGTH else f"{text[: self.LENGTH]}... ({len(text)})"


def pairs_option(
    help: str, option: str = "--property", dest: str = "properties", group: str = ""
) -> Argument:
    """An *option* that takes ``KEY=VALUE`` and may be repeated; the result is a list of pairs."""
    return argument(
        option,
        metavar="KEY=VALUE",
        dest=dest,
        action="append",
        type=key_value,
        default=[],
        help=f"{help}; may be repeated",
        group=group,
    )


def key_value(text: str) -> tuple[str, str]:
    """Split ``key=value``; anything else is a usage error."""
    key, separator, value = text.partition("=")
    if not key.strip() or not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form key=value")
    return key.strip(), value.strip()


def whole_number(least: int) -> Callable[[str], int]:
    """The type of an argument that is an integer from *least* on; else it is a usage error."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            reason = f"{text!r} is not a whole number of at least {least}"
            raise argparse.ArgumentTypeError(reason)
        return number

    return parse


non_negative, positive = whole_number(0), whole_number(1)


class Program(app.App):
    """The program; its commands find the configuration and the databases here."""

    NAME = ""
    DESCRIPTION = scheduler.__doc__
    #: By name the class; the path of a class, ``module:Class``, where its module is to be loaded
    #: only when it is needed.
    COMMANDS: Mapping[str, type[command.Command] | str] = {}

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        databases: Databases | None,
        given: Sequence[str] = (),
        **streams: Any,
    ) -> None:
        manager = commandmanager.CommandManager()
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
        handler = python_logging.StreamHandler(self.stderr)
        handler.setFormatter(python_logging.Formatter(f"{self.NAME}: error: %(message)s"))
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
