"""The command line of every program: help that begins with its use, and errors of one line."""

import contextlib
import io
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from oslo_config import cfg

from scheduler import errors
from scheduler.conf import mistakes

#: Options that help shows before those of logging.
_FIRST: Final = ("-h", "--config-", "--debug", "--version")
_SECTION: Final = re.compile(r"^(?=\S[^\n]*:\n  )", re.MULTILINE)
_ENTRY: Final = re.compile(r"^(?=  -)", re.MULTILINE)
_CHOICES: Final = re.compile(r"^  \{.*?\}.*?(?=\n    \w)\n", re.DOTALL)
_NO_COMMAND: Final = re.compile(r"argument command: invalid choice: '([^']*)'(.*)", re.DOTALL)


def usage(cli_opts: Sequence[cfg.Opt]) -> str:
    """The line of usage, which does not list the options."""
    has_commands = any(isinstance(each, cfg.SubCommandOpt) for each in cli_opts)
    return "%(prog)s [options] COMMAND ..." if has_commands else "%(prog)s [options]"


def sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


@contextlib.contextmanager
def plainly(prog: str, cli_opts: Sequence[cfg.Opt]) -> Iterator[None]:
    """Within it the library's wall of usage becomes one line, and its help is put in order.

    A bad value in a file, which ends the library, too, is a ConfigurationError.
    """
    out, said = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
            yield
    except SystemExit as ended:
        bad = mistakes.bad_switch(said.getvalue())
        if bad is not None:
            raise bad from ended
        if ended.code:
            sys.stderr.write(f"{prog}: error: {last_error(said.getvalue(), prog)}\n")
        else:
            sys.stderr.write(said.getvalue())
            sys.stdout.write(_arranged(out.getvalue(), cli_opts))
        raise
    with contextlib.suppress(OSError):  # a full disk ends nobody
        sys.stderr.write(said.getvalue())


def last_error(printed: str, prog: str) -> str:
    """The error in what the library has printed, with what to do."""
    text = " ".join(printed.rpartition(f"{prog}: error: ")[2].split())
    if text.endswith("required: command"):
        text = "no command is given"
    found = _NO_COMMAND.match(text)
    if found is not None:
        near = errors.did_you_mean(found[1], re.findall(r"[a-z][a-z-]+", found[2])[2:])
        text = f"{found[1]!r} is not a command{near}"
    return f"{text}; see {prog} --help"


def help_of(conf: cfg.ConfigOpts) -> str:
    """The help of a program whose command line has been parsed."""
    out = io.StringIO()
    conf.print_help(out)
    return _arranged(out.getvalue())


def _arranged(text: str, cli_opts: Sequence[cfg.Opt] = ()) -> str:
    """Help with commands first and the options of logging last."""
    head, *sections = _SECTION.split(text)
    titled = dict(each.split("\n", 1) for each in sections)
    if "options:" not in titled:
        return text
    own = tuple(f"--{each.name}" for each in cli_opts)
    first, last = "", ""
    for entry in filter(str.strip, _ENTRY.split(titled["options:"])):
        is_first = entry.strip().startswith((*_FIRST, *own))
        first, last = (first + entry, last) if is_first else (first, last + entry)
    shown: dict[str, Any] = {
        "commands:": _CHOICES.sub("", titled.get("commands:", "")),
        "options:": first,
        "options of logging:": last,
    }
    parts = [f"{title}\n{body.rstrip()}\n" for title, body in shown.items() if body]
    return "\n".join([head.rstrip() + "\n", *parts])
