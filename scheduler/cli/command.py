"""The bases of commands: arguments, databases, forms of output, exit status, errors in one line."""

import argparse
import contextlib
import functools
import json
import math
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NoReturn, TypeVar

import yaml
from cliff import columns, command, display, lister, show
from oslo_config import cfg
from oslo_db.exception import DBInvalidUnicodeParameter
from oslo_log import log as logging
from rich import progress
from rich.console import Console
from sqlalchemy import Connection

from scheduler import errors, exit_codes, objects
from scheduler.conf import mistakes, startup
from scheduler.db import inspection, layout, migration
from scheduler.db.database import FAILURES, Database, refused_value
from scheduler.db.databases import Databases
from scheduler.threads import in_thread

LOG = logging.getLogger(__name__)

TEXT = "text"
#: Forms for programs: their keys are the columns in small letters with underscores.
FOR_PROGRAMS = ("json", "yaml")

Argument = tuple[tuple[str, ...], str, bool, dict[str, Any]]
Table = tuple[Sequence[str], Iterable[Sequence[Any]]]
Found = TypeVar("Found")


def argument(*names: str, group: str = "", is_choice: bool = False, **settings: Any) -> Argument:
    """An argument as ``ArgumentParser.add_argument`` takes it.

    Those of one *group* are listed together; of a group that *is_choice* one may be given.
    """
    return names, group, is_choice, settings


def repeated(option: str, metavar: str, help: str, **settings: Any) -> Argument:
    """An *option* that may be repeated; the result is a list."""
    settings |= {"action": "append", "default": [], "help": f"{help}; may be repeated"}
    return argument(option, metavar=metavar, **settings)


def timeout(seconds: int, what: str) -> Argument:
    """The argument ``--timeout``: how long to wait for *what*."""
    text = f"how long to wait for {what} (default: {seconds})"
    return argument("--timeout", type=positive, default=seconds, metavar="SECONDS", help=text)


def writable(text: str) -> Path:
    """A file that can be written when the work for it is done; else it is a usage error."""
    place = text if os.path.exists(text) else f"{Path(text).parent}/"
    if os.path.isdir(text) or not os.access(place, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be written")
    return Path(text)


PAGE = argument("-o", "--output", metavar="REPORT", type=writable, help="write the report as HTML")


def tracked(several: Iterable[Found], what: str, total: int | None = None) -> Iterable[Found]:
    """*several*, with a bar on the terminal, if there is one, that shows how many are done."""
    console = Console(stderr=True)
    shown: dict[str, Any] = {"console": console, "disable": not console.is_terminal}
    return progress.track(several, what, total, transient=True, **shown)


class Base(command.Command):
    """A command on the database of :attr:`database`."""

    app: Any
    arguments: ClassVar[Sequence[Argument]] = ()
    needs_tables: ClassVar[bool] = False
    #: Its rows are the API's, which with Nova's databases are in another one.
    is_of_api: ClassVar[bool] = False
    #: A command of the API that changes nothing needs no transaction that writes.
    writes: ClassVar[bool] = True
    status: int = exit_codes.OK
    parser: argparse.ArgumentParser

    def get_epilog(self) -> str:
        """Nothing, as the library would read all that is installed to name who brought this."""
        return ""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The parser, with the class's :attr:`arguments`."""
        self.parser = super().get_parser(prog_name)
        forms = self.parser.add_argument_group("forms for programs")
        if not isinstance(self, display.DisplayCommandBase):
            choices = (TEXT, *FOR_PROGRAMS, "value")
            forms.add_argument(
                *("-f", "--format"), dest="formatter", choices=choices, default=TEXT,
                help=f"the output format, defaults to {TEXT}",
            )  # fmt: skip
        forms.add_argument(
            "--json", action="store_const", const="json", dest="formatter", help="-f json"
        )
        self.parser.error = self._usage_error  # type: ignore[method-assign]
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

    def _usage_error(self, message: str) -> NoReturn:
        """End the program with one line, and without the library's lines of usage."""
        prog = self.parser.prog
        self.parser.exit(exit_codes.USAGE, f"{prog}: error: {message}; see {prog} --help\n")

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
        if self.app.databases is None:
            self.app.databases = Databases.from_conf(self.conf, for_command=True)
        return self.app.databases

    @property
    def database(self) -> Database:
        """The one of them that has this command's rows."""
        return self.databases.api if self.is_of_api else self.databases.main

    @property
    def cells(self) -> dict[str, Database]:
        """Databases of compute hosts and services, by cell; unusable ones are named and skipped."""
        found = {"": self.databases.main}
        if not self.databases.has_cells:
            return found
        cells = self.databases.cells()
        # Side by side: several that are away must not add up to a long wait.
        attempts = [in_thread(functools.partial(self._opened, cell)) for cell in cells]
        for cell, attempt in zip(cells, attempts, strict=True):
            try:
                found[cell.name or cell.uuid] = attempt.result()
            except errors.ConfigurationError as error:
                self.tell(f"warning: {self._line(error)}")
        urls = [(each.url.host, each.url.database) for each in found.values()]
        if urls[0] in urls[1:]:
            del found[""]
        return found

    def _opened(self, cell: objects.CellMapping) -> Database:
        database = self.databases.of_cell(cell)
        with database.naming_itself(), database.read():
            return database

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
        except (errors.NovaException, *FAILURES, DBInvalidUnicodeParameter) as error:
            LOG.debug("The command failed.", exc_info=True)
            is_ours = isinstance(error, errors.NovaException)  # and there may be no database
            if not is_ours and (text := refused_value(error)) is not None:
                self.tell(f"error: a value cannot be stored: {text}")
                return exit_codes.FAILURE
            self.tell(f"error: {self._line(error if is_ours else self.database.unusable(error))}")
            return exit_codes.FAILURE

    def _line(self, error: Exception) -> str:
        """The text of *error* for a person: a mistake on the command line is no request."""
        paths = startup.used_files(self.conf) if "config_file" in self.conf else ()
        return mistakes.line(error, paths)

    def write_page(self, path: Path, page: str) -> None:
        """Write a report; where that fails, a line and the status say so, and the work goes on."""
        try:
            path.write_text(page, encoding="utf-8")
        except OSError as error:
            self.tell(f"error: --output: {path}: {error.strerror}")
            self.status = exit_codes.FAILURE

    def tell(self, text: str) -> None:
        """One line for the person at the terminal, apart from the result."""
        sys.stderr.write(f"{self.app.NAME}: {text}\n")


def key_of(column: str) -> str:
    """The key of a column in the forms for programs."""
    return column.lower().strip().replace(" ", "_")


class List(Base, lister.Lister):
    """A command whose result is a table with :attr:`columns`: rows, or mappings with their keys."""

    columns: Sequence[str] = ()
    #: The sentence in place of an empty table.
    nothing: str = ""

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        found, columns = super().take_action(parsed_args), self.columns
        rows = (
            [row[key_of(each)] for each in columns] if isinstance(row, Mapping) else row
            for row in found
        )
        return columns, rows

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Any
    ) -> int:
        """Write the table in the form that is wanted; a sentence in place of an empty one."""
        known, given = ", ".join(column_names), (*parsed_args.columns, *parsed_args.sort_columns)
        for name in (each for each in given if key_of(each) not in map(key_of, column_names)):
            self.parser.error(f"there is no column {name!r}; the columns are: {known}")
        rows = list(data)
        if not rows and parsed_args.formatter == "table" and not parsed_args.print_empty:
            self.app.stdout.write(f"{self.nothing}\n")
            return exit_codes.OK
        if parsed_args.formatter in FOR_PROGRAMS:
            column_names = [key_of(each) for each in column_names]
        return super().produce_output(parsed_args, column_names, rows)


class Show(Base, show.ShowOne):
    """A command whose result is one thing with its properties, a mapping."""

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Any]]:
        found = super().take_action(parsed_args)
        return self.dict2columns({key_of(name): value for name, value in found.items()})


class Text(Base):
    """A command whose result, mappings or a list of them, people get in words.

    Programs get the same mappings.
    """

    #: The words, with the names of the result in braces; empty: the command has its own way.
    words: str = ""

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Do the work, and write the result in the form that is wanted."""
        found, form = super().take_action(parsed_args), parsed_args.formatter
        if form == TEXT:
            self.show(found)
        else:
            self.app.stdout.write(dumped(found, form))
        return self.status

    def show(self, found: Any) -> None:
        said = {
            name: ", ".join(map(str, value)) if isinstance(value, list) else value
            for name, value in found.items()
        }
        self.app.stdout.write(self.words.format(**said) + "\n")


def dumped(found: Any, form: str) -> str:
    """A mapping, or several, as JSON, YAML, or lines of values."""
    found = found if isinstance(found, Mapping) else list(found)
    # Without tuples, which YAML has a tag for; JSON has no word for what a weigher made infinite.
    plain = json.loads(json.dumps(found), parse_constant=lambda _name: None)
    if form == "json":
        return json.dumps(plain, indent=2) + "\n"
    if form == "yaml":
        return str(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True))
    rows = plain if isinstance(plain, list) else [plain]
    cells = ([v if isinstance(v, str) else json.dumps(v) for v in row.values()] for row in rows)
    return "".join(f"{' '.join(each)}\n" for each in cells)


def action(
    base: type[Base], *arguments: Argument, **settings: Any
) -> Callable[[Callable[..., Any]], type[Base]]:
    """Make a function a command of the kind *base* with *settings*: its docstring is the help."""

    def command_of(act: Callable[..., Any]) -> type[Base]:
        given = {"__doc__": act.__doc__, "__module__": act.__module__, "act": act}
        return type(act.__name__, (base,), {**given, "arguments": arguments, **settings})

    return command_of


on_tables = functools.partial(action, needs_tables=True)
api_action = functools.partial(on_tables, is_of_api=True)
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
        return ", ".join(map(str, self._value))


class Properties(columns.FormattableColumn):
    def human_readable(self) -> str:
        return ", ".join(f"{key}='{value}'" for key, value in sorted(self._value.items()))


class Wrapped(columns.FormattableColumn):
    """A text of several sentences, which people get in short lines."""

    def human_readable(self) -> str:
        return textwrap.fill(self._value, 60)


class Shortened(columns.FormattableColumn):
    """A value that may be a long text or list: people see how it begins."""

    LENGTH = 60

    def human_readable(self) -> str:
        text = "-" if self._value is None else str(self._value)
        return text if len(text) <= self.LENGTH else f"{text[: self.LENGTH]}... ({len(text)})"


def pairs_option(help: str, option: str = "--property", dest: str = "properties") -> Argument:
    """An *option* that takes ``KEY=VALUE`` and may be repeated; the result is a list of pairs."""
    return repeated(option, "KEY=VALUE", help, dest=dest, type=key_value)


def key_value(text: str) -> tuple[str, str]:
    """Split ``key=value``; anything else is a usage error."""
    key, separator, value = text.partition("=")
    if not key.strip() or not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form key=value")
    return key.strip(), value.strip()


def _number(kind: type[int] | type[float], least: int) -> Callable[[str], Any]:
    """The type of an argument that is a finite number from *least* on; else it is a usage error."""

    def parse(text: str) -> int | float:
        with contextlib.suppress(ValueError):
            if least <= (found := kind(text)) < math.inf:
                return found
        number = "whole number" if kind is int else "number"
        raise argparse.ArgumentTypeError(f"{text!r} is not a {number} of at least {least}")

    return parse


non_negative, positive, amount = _number(int, 0), _number(int, 1), _number(float, 0)
