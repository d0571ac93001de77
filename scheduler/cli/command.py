"""The base of every command: arguments, the database, exit status, errors as one line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from cliff import columns, command, lister, show
from oslo_config import cfg
from oslo_log import log as logging
from sqlalchemy import Connection

from scheduler import errors, exit_codes
from scheduler.db import inspection, layout, migration
from scheduler.db.database import FAILURES, Database
from scheduler.db.databases import Databases

LOG = logging.getLogger(__name__)

Argument = tuple[tuple[str, ...], dict[str, Any]]
Table = tuple[Sequence[str], Iterable[Sequence[Any]]]
Shown = tuple[Sequence[str], Iterable[Any]]
Found = TypeVar("Found")


def argument(*names: str, **settings: Any) -> Argument:
    """An argument as ``ArgumentParser.add_argument`` takes it."""
    return names, settings


class Base(command.Command):
    """A command on the database of :attr:`database`."""

    app: Any
    arguments: ClassVar[Sequence[Argument]] = ()
    needs_tables: ClassVar[bool] = True
    #: Its rows are the API's, which with Nova's databases are in another one.
    is_of_api: ClassVar[bool] = False
    #: The exit status of a command that did its work.
    status: int = exit_codes.OK
    parser: argparse.ArgumentParser

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The parser, with the class's :attr:`arguments`."""
        self.parser = super().get_parser(prog_name)
        for names, settings in self.arguments:
            self.parser.add_argument(*names, **settings)
        return self.parser

    @property
    def conf(self) -> cfg.ConfigOpts:
        """The configuration."""
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
        """Where compute hosts and services are: the main database and those of the cells.

        One that cannot be used is left out, with a line on stderr.
        """
        found = {"": self.databases.main}
        if not self.databases.has_cells:
            return found
        for cell in self.databases.cells():
            try:
                database = self.databases.of_cell(cell)
                with database.read():
                    found[cell.name or cell.uuid] = database
            except (errors.ConfigurationError, *FAILURES) as error:
                is_ours = isinstance(error, errors.NovaException)
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
            is_ours = isinstance(error, errors.NovaException)
            self.tell(f"error: {error if is_ours else self.database.unusable(error)}")
            return exit_codes.FAILURE

    def tell(self, text: str) -> None:
        """One line for the person at the terminal, apart from the result."""
        sys.stderr.write(f"{self.app.NAME}: {text}\n")


class List(Base, lister.Lister):
    """A command whose result is a table."""


class Show(Base, show.ShowOne):
    """A command whose result is one thing with its properties."""


class OfApi(Base):
    """A command on rows of the API: :meth:`do`, in a transaction that only reads unless it writes.

    All of it is done, or nothing.
    """

    is_of_api = True
    writes: ClassVar[bool] = True

    def do(self, connection: Connection, args: argparse.Namespace) -> Any:
        """Read or change rows; return what is to be shown of them."""
        raise NotImplementedError

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Do it in a transaction; may be done again after a deadlock."""
        if self.writes:
            return self.database.write_retrying(lambda conn: self.do(conn, parsed_args))
        with self.database.read() as connection:
            return self.do(connection, parsed_args)


class ListOfApi(OfApi, List):
    """A table of what :meth:`do` returns: mappings, of which :attr:`columns` names some."""

    writes = False
    #: By heading, the key.
    columns: ClassVar[Mapping[str, str]]

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """One row for each."""
        found = super().take_action(parsed_args)
        return tuple(self.columns), [[row[key] for key in self.columns.values()] for row in found]


class ShowOfApi(OfApi, Show):
    """Everything of the mapping that :meth:`do` returns."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        """One line for each key."""
        return self.dict2columns(super().take_action(parsed_args))


class Usage(columns.FormattableColumn[Any]):
    """``(used, total)``: ``3/16`` for people, two numbers for programs."""

    def human_readable(self) -> str:
        """Used of total."""
        return "{}/{}".format(*self._value)

    def machine_readable(self) -> dict[str, int]:
        """Both numbers."""
        return dict(zip(("used", "total"), self._value, strict=True))


class Names(columns.FormattableColumn[Any]):
    """A list of names, which people see one after the other."""

    def human_readable(self) -> str:
        """Separated by commas."""
        return ", ".join(self._value)

    def machine_readable(self) -> list[str]:
        """A list, for the forms that know no tuples."""
        return list(self._value)


class Properties(columns.FormattableColumn[Any]):
    """Keys and values."""

    def human_readable(self) -> str:
        """``key='value'``, sorted."""
        return ", ".join(f"{key}='{value}'" for key, value in sorted(self._value.items()))


class Shortened(columns.FormattableColumn[Any]):
    """A value that may be a long text or list: people see how it begins."""

    LENGTH = 60

    def human_readable(self) -> str:
        """At most so many characters."""
        text = "-" if self._value is None else str(self._value)
        return text if len(text) <= self.LENGTH else f"{text[: self.LENGTH]}... ({len(text)})"


def pairs_option(help: str, option: str = "--property", dest: str = "properties") -> Argument:
    """An *option* that takes ``KEY=VALUE`` and may be repeated; the result is a list of pairs."""
    return argument(
        option,
        metavar="KEY=VALUE",
        dest=dest,
        action="append",
        type=key_value,
        default=[],
        help=f"{help}; may be repeated",
    )


def key_value(text: str) -> tuple[str, str]:
    """Split ``key=value``; anything else is a usage error."""
    key, separator, value = text.partition("=")
    if not key.strip() or not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form key=value")
    return key.strip(), value.strip()


def non_negative(text: str) -> int:
    """An integer from 0 on; anything else is a usage error."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return number


def positive(text: str) -> int:
    """An integer from 1 on; anything else is a usage error."""
    number = non_negative(text)
    if number == 0:
        raise argparse.ArgumentTypeError("0 is not a whole number of at least 1")
    return number
