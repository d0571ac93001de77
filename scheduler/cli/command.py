"""What every command shares: the database, ready to use, and errors as one line."""

from __future__ import annotations

import argparse
import sys
from typing import Any, ClassVar

from cliff import command, lister, show
from oslo_config import cfg
from oslo_log import log as logging

from scheduler import errors, exit_codes
from scheduler.db import inspection, layout, migration
from scheduler.db.database import FAILURES, Database
from scheduler.db.databases import Databases

LOG = logging.getLogger(__name__)


class Base(command.Command):
    """A command on the database of :attr:`database`."""

    app: Any
    needs_tables: ClassVar[bool] = True
    #: Whether its rows are the API's, which with Nova's databases are in another one.
    is_of_api: ClassVar[bool] = False

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
                reason = error if is_ours else database.unusable(error)
                sys.stderr.write(f"{self.app.NAME}: warning: {reason}\n")
        urls = [(each.url.host, each.url.database) for each in found.values()]
        if urls[0] in urls[1:]:
            del found[""]
        return found

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command; what it cannot do is one line on stderr and an exit status."""
        try:
            if self.needs_tables:
                needed = inspection.NEEDED_API_TABLES if self.is_of_api else layout.NEEDED_TABLES
                migration.check_ready(self.database, needed)
            return super().run(parsed_args)
        except (errors.NovaException, *FAILURES) as error:
            LOG.debug("The command failed.", exc_info=True)
            is_ours = isinstance(error, errors.NovaException)
            reason = error if is_ours else self.database.unusable(error)
            sys.stderr.write(f"{self.app.NAME}: error: {reason}\n")
            return exit_codes.FAILURE


class List(Base, lister.Lister):
    """A command whose result is a table."""


class Show(Base, show.ShowOne):
    """A command whose result is one thing with its properties."""


def add_pairs_option(
    parser: argparse.ArgumentParser, help: str, option: str = "--property", dest: str = "properties"
) -> None:
    """An *option* that takes ``KEY=VALUE`` and may be repeated; the result is a list of pairs."""
    parser.add_argument(
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
    """A whole number from 0 on; anything else is a usage error."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return number


def positive(text: str) -> int:
    """A whole number from 1 on; anything else is a usage error."""
    number = non_negative(text)
    if number == 0:
        raise argparse.ArgumentTypeError("0 is not a whole number of at least 1")
    return number
