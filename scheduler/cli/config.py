"""``config``: is the configuration right, and what does it amount to."""

from collections.abc import Sequence
from typing import Any

from scheduler import errors, exit_codes
from scheduler.cli.command import Base, List, Text, Wrapped, action, argument, repeated
from scheduler.conf import check, effective, mistakes, startup
from scheduler.daemon.checks import Kind, problems
from scheduler.daemon.service import BINARY, build_manager
from scheduler.rpc import transport

CHAIN = "filter_scheduler.enabled_filters"
_FILES = tuple(
    repeated(name, metavar, f"besides those before the command (without any: as {BINARY} does)")
    for name, metavar in (("--config-file", "PATH"), ("--config-dir", "DIR"))
)


def _source(command: Base, args: Any) -> startup.Source:
    """Source of the configuration that the scheduler would read, which need not be usable."""
    words = list(command.app.given)
    for name in ("config_file", "config_dir"):
        for path in getattr(args, name):
            words += [f"--{name.replace('_', '-')}", path]
    return startup.Source(words, BINARY)


def _show_problems(command: Text, found: Any) -> None:
    """Problems on standard output; questions, and what was not tried, apart from them."""
    wrong = [each for each in found["problems"] if each["kind"] != Kind.QUESTION.name.lower()]
    for each in found["problems"]:
        is_wrong = each in wrong
        place = f"{each['place']}: " if each["place"] else ""
        line = f"{'' if is_wrong else 'question: '}{place}{each['option']}: {each['reason']}\n"
        (command.app.stdout if is_wrong else command.app.stderr).write(line)
    untried = "" if found["broker_tried"] else " The message broker was not tried; --broker does."
    if wrong:
        command.app.stderr.write(f"{len(wrong)} problem(s).{untried}\n")
    else:
        command.app.stdout.write(f"The configuration can be used.{untried}\n")


@action(
    Text,
    *_FILES,
    argument("--broker", action="store_true", help="connect to the message broker, too"),
    show=_show_problems,
)
def validate(command: Text, args: Any) -> dict[str, Any]:
    """Say everything that is wrong with the configuration of the scheduler, and start nothing.

    Each problem is one line: file and line, option, reason. What can be so and is hardly meant is
    asked, and does no harm to the exit status: 0 all is well, 20 a file is missing or cannot be
    parsed, 21 a value cannot be used or nobody knows the option, 22 a driver, filter, weigher or
    the like cannot be loaded, 23 a database cannot be used, 24 the message broker cannot be used,
    25 a file, directory or address that an option names cannot be used; the first that occurs.
    """
    source, conf = _source(command, args), command.app.conf
    found = problems(source, build_manager, with_broker=args.broker, into=conf)
    kinds = [each.kind for each in found if each.kind is not Kind.QUESTION]
    command.status = min(kinds, default=exit_codes.OK)
    return {"broker_tried": args.broker, "problems": [each.fields for each in found]}


@action(
    List,
    *_FILES,
    argument("--all", action="store_true", dest="show_all", help="those that are not set, too"),
    argument(
        "options",
        nargs="*",
        metavar="[GROUP.]OPTION",
        help="only these, with what they mean; or GROUP for all of a group",
    ),
    nothing="No option is set.",
)
def show(command: List, args: Any) -> list[Sequence[Any]]:
    """Show the options that are set, or named, with their values and where each comes from.

    The chain of filters is always among them, as its default follows the back end of claims.
    Secrets are masked. The exit status is 1 if the files cannot be used.
    """
    source = _source(command, args)
    try:
        conf = startup.fill(source)
        transport.complete(conf)
        check.validate(conf)
    except errors.ConfigurationError as error:
        raise errors.NovaException(mistakes.line(error, startup.named_files(source))) from error
    known = list(effective.options(conf, startup.used_files(conf)))
    command.columns = ("Option", "Value", "From", *(("Meaning",) if args.options else ()))
    if args.options:
        found = [each for text in args.options for each in _named(known, text)]
        return [(each.name, each.value, each.origin, Wrapped(each.meaning)) for each in found]
    shown = [each for each in known if args.show_all or each.is_set or each.name == CHAIN]
    return [(each.name, each.value, each.origin) for each in shown]


def _named(known: Sequence[effective.Effective], text: str) -> Sequence[effective.Effective]:
    """The option of that name, today's or an older one, or those of the group; or an error."""
    found = [each for each in known if text in each.names or each.name.startswith(f"{text}.")]
    if not found:
        near = errors.did_you_mean(text, [name for each in known for name in each.names])
        raise errors.InvalidRequest(field=text, reason=f"no such option{near}")
    return found
