"""One thing that is wrong with a configuration, or with its files, for ``daemon.checks``."""

import enum
import pathlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from oslo_config import cfg

from scheduler import errors, exit_codes
from scheduler.conf import mistakes
from scheduler.conf.effective import masked


class Kind(enum.IntEnum):
    """Subject of a problem, and the exit status of ``config validate`` for it."""

    FILE = exit_codes.CONFIG_FILE
    OPTION = exit_codes.CONFIG_OPTION
    PLUGIN = exit_codes.CONFIG_PLUGIN
    DATABASE = exit_codes.CONFIG_DATABASE
    BROKER = exit_codes.CONFIG_BROKER
    SURROUNDINGS = exit_codes.CONFIG_SURROUNDINGS
    #: Something that can be so, and is probably not meant.
    QUESTION = exit_codes.OK


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: *option* is ``[group] name`` or what else is to be looked at."""

    kind: Kind
    option: str
    reason: str
    #: File and line; empty where nothing is set.
    place: str = ""
    #: Error that the start raises.
    error: Exception | None = field(default=None, compare=False)

    @property
    def fields(self) -> dict[str, str]:
        """All of it for programs."""
        kind, reason = self.kind.name.lower(), masked(mistakes.plain(self.reason))
        return {"kind": kind, "place": self.place, "option": self.option, "reason": reason}


def problem_of(kind: Kind, error: Exception) -> Problem:
    """Describe *error* as a problem, with the option it names."""
    kwargs = getattr(error, "kwargs", {})
    if isinstance(error, errors.ConfigurationError):
        return Problem(kind, str(kwargs["option"]), str(kwargs["reason"]), error=error)
    return Problem(kind, kind.name.lower(), str(error), error=error)


def attempt(kind: Kind, option: str, build: Callable[[], Any]) -> Iterator[Problem]:
    """The problem that *build* has, whatever code of an operator's own it runs."""
    try:
        build()
    except errors.ConfigurationError as error:
        yield problem_of(kind, error)
    except Exception as error:  # noqa: BLE001 - an operator's own code may raise anything
        is_own = isinstance(error, errors.NovaException)
        reason = str(error) if is_own else f"{type(error).__name__}: {error}"
        reason = reason.removeprefix("Invalid request: ").removeprefix(f"{option}: ")
        yield Problem(kind, option, reason, error=error)


def problems_of_file(path: str, copy: pathlib.Path) -> Iterator[Problem]:
    """Problems of reading the file at *path*; where lines cannot be parsed, *copy* lacks them.

    There is no copy where the lines after one of them would mean something else.
    """
    file = pathlib.Path(path).expanduser()
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        yield problem_of(Kind.FILE, mistakes.undecodable([path]))
        return
    except OSError as error:
        yield Problem(Kind.FILE, path, str(error.strerror))
        return
    while True:
        try:
            cfg.ConfigParser(str(file), {}).parse()
            return
        except cfg.ParseError as error:
            yield Problem(Kind.FILE, path, str(error))
            if not error.line or error.line.startswith("["):  # the section is not known
                copy.unlink(missing_ok=True)
                return
            lines[error.lineno - 1] = ""
        copy.write_text("\n".join(lines), encoding="utf-8")
        file = copy
