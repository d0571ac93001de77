"""``config``: is the configuration right, and what does it amount to."""

from collections.abc import Sequence
from typing import Any

from scheduler import exit_codes
from scheduler.cli.command import Base, List, action, argument
from scheduler.conf import check, effective, startup
from scheduler.daemon.checks import problems
from scheduler.daemon.service import BINARY, build_manager
from scheduler.rpc import transport

_FILES = tuple(
    argument(
        name,
        action="append",
        default=[],
        metavar=metavar,
        help="besides those before the command; may be given several times. Without any, those "
        f"that {BINARY} finds",
    )
    for name, metavar in (("--config-file", "PATH"), ("--config-dir", "DIR"))
)


def _source(command: Base, args: Any) -> startup.Source:
    """Source of the configuration that the scheduler would read, which need not be usable."""
    words = list(command.app.given)
    for name in ("config_file", "config_dir"):
        for path in getattr(args, name):
            words += [f"--{name.replace('_', '-')}", path]
    return startup.Source(words, BINARY)


@action(
    Base,
    *_FILES,
    argument("--broker", action="store_true", help="connect to the message broker, too"),
    needs_tables=False,
)
def validate(command: Base, args: Any) -> int:
    """Say everything that is wrong with the configuration of the scheduler, and start nothing.

    Each problem is one line: file and line, option, reason. Exit status: 0 all is well, 20 a file
    is missing or cannot be parsed, 21 a value cannot be used or nobody knows the option, 22 a
    driver, filter, weigher or the like cannot be loaded, 23 a database cannot be used, 24 the
    message broker cannot be used, 25 a file, directory or address that an option names cannot be
    used; the first of these that occurs.
    """
    source, conf = _source(command, args), command.app.conf
    found = problems(source, build_manager, with_broker=args.broker, into=conf)
    for each in found:
        command.app.stdout.write(f"{each.line}\n")
    if not found:
        command.app.stdout.write("The configuration can be used.\n")
        return exit_codes.OK
    command.app.stderr.write(f"{len(found)} problem(s)\n")
    return min(each.kind for each in found)


@action(
    List,
    *_FILES,
    argument("--all", action="store_true", dest="show_all", help="those that are not set, too"),
    argument(
        "options", nargs="*", metavar="GROUP.OPTION", help="only these, or GROUP for all of a group"
    ),
    columns=("Option", "Value", "From"),
    needs_tables=False,
)
def show(command: Base, args: Any) -> list[Sequence[Any]]:
    """Show the options that are set, with their values and where each comes from.

    Secrets are masked. The exit status is 1 if the files cannot be used.
    """
    conf = startup.fill(_source(command, args))
    transport.complete(conf)
    check.validate(conf)
    found = list(effective.options(conf, startup.used_files(conf)))
    if args.options:
        wanted = tuple(f"{each}." for each in args.options)
        found = [each for each in found if f"{each.name}.".startswith(wanted)]
    elif not args.show_all:
        found = [each for each in found if each.is_set]
    return [(each.name, each.value, each.origin) for each in found]
