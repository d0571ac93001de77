"""The one line on a configuration that cannot be used: file and line, option, reason, next step.

The start of every program, a reload and ``config validate`` say it alike.
"""

import os
import pathlib
import re
from collections.abc import Iterable
from typing import Final

from oslo_config import cfg

from scheduler import errors
from scheduler.conf import names

#: An option, and where its value is if the library says so: a file, or a variable.
OPTION: Final = re.compile(r"\[(?P<group>[^]]*)\] (?P<name>[\w.-]+)(?: \((?P<source>.*)\))?")
#: Words of libraries, and what they mean to a person.
_WORDS: Final = tuple(
    (re.compile(pattern, re.DOTALL), meaning)
    for pattern, meaning in (
        (r"invalid literal for int\(\) with base \d+: ('[^']*')", r"\1 is not an integer"),
        (r"could not convert string to float: ('[^']*')", r"\1 is not a number"),
        (r"Unexpected boolean value ('[^']*')", r"\1 is neither true nor false"),
        (r"\[Errno \d+\] ([^:]*): '([^']*)'( -> '[^']*')?", r"\2: \1"),
        (r"\[Errno \d+\] ", ""),
        (
            r"No module named '(nova(?:\.[\w.]+)?)'",
            r"no module \1; set [scheduler] nova_compat_imports = true for code written for Nova",
        ),
        (  # of the library, which may name the wrong one
            r"no such option [\w.-]+ in group \[\w+\]",
            "a value has $ before what is no option; write $$ for a dollar sign",
        ),
        (r"Failed to find some config files: (\S*)", r"\1: no such file; see --config-file"),
        (
            r"Failed to read config file directory: (\S*)",
            r"\1: no such directory; see --config-dir",
        ),
        (r"Failed to open some config files: (\S*)", r"\1: this user may not read it"),
        (r"No '[^']*' or '=' found in assignment: '\\ufeff.*'", "it begins with a byte order mark"),
        (r"Failed to parse (\S+): at (\S+:\d+), (.*)", r"\2: \3; correct that line"),
        (r"(\[[\da-f:]+\]) is not a valid host address", r"\1: leave the brackets out"),
        (r"Error loading logging config (\S+): ", ""),
        (r"""\((\d+), (["'])(.*?)\2\)""", r"\3 (\1)"),
    )
)


def plain(text: str) -> str:
    """*text* in one line and without words that only a programmer knows."""
    for pattern, meaning in _WORDS:
        text = pattern.sub(meaning, text)
    return " ".join(text.split())


def line(error: Exception | str, paths: Iterable[str]) -> str:
    """The line on *error* of a configuration in the files *paths*."""
    if not isinstance(error, errors.ConfigurationError):
        text = str(error).removeprefix("Invalid request: ")  # an operator's mistake is none
        named = OPTION.search(text)
        where = "" if named is None else place_of(named["group"], named["name"], paths)
        return plain(f"{where and f'{where}: '}{text}")
    where, option = located(str(error.kwargs["option"]), paths)
    return plain(f"{where and f'{where}: '}{option}: {error.kwargs['reason']}")


def located(option: str, paths: Iterable[str]) -> tuple[str, str]:
    """File and line, or variable, that set the *option* of an error, and its plain name."""
    found = OPTION.match(option)
    if found is None:
        return "", option
    where, known = found["source"], list(paths)
    if where is None or where in {str(pathlib.Path(each).absolute()) for each in known}:
        where = place_of(found["group"], found["name"], known)
    return where, f"[{found['group']}] {found['name']}{option[found.end() :]}"


def place_of(group: str, name: str, paths: Iterable[str]) -> str:
    """File and line where the option is set, under whatever name it has; empty if nowhere."""
    settings = list(names.settings(each for each in paths if pathlib.Path(each).is_file()))
    for spelling in names.spellings(group, names.option(group, name)):
        places = [each.place for each in settings if (each.group, each.name) == spelling]
        if places:
            return places[-1]
    return ""


def undecodable(paths: Iterable[str]) -> errors.ConfigurationError:
    """The error on the file of *paths* that is not text, with its line."""
    for path in paths:
        content = pathlib.Path(path).expanduser().read_bytes()
        try:
            content.decode()
        except UnicodeDecodeError as error:
            number = content.count(b"\n", 0, error.start) + 1
            reason = f"byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8"
            return errors.ConfigurationError(option=f"{path}:{number}", reason=reason)
    return errors.ConfigurationError(option="configuration", reason="it is not UTF-8")


def bad_switch(printed: str) -> errors.ConfigurationError | None:
    """The error of the library on a file's value of an option that the command line has, too."""
    found = re.search(r"argument --(\S+): Invalid (\S+) value: (.*)", printed)
    if found is None:
        return None
    reason = f"{found[3]!r} is not of the kind {found[2].lower()}"
    return errors.ConfigurationError(option=f"[{names.DEFAULT}] {found[1]}", reason=reason)


def unusable_log(conf: cfg.ConfigOpts, error: Exception) -> errors.ConfigurationError:
    """The error on the option that names a log which cannot be written."""
    name, path = "log_file" if conf.log_file else "log_dir", conf.log_config_append
    reason = f"{error}; make it so that this user may write there"
    if path:
        name, reason = "log_config_append", f"{path} is no logging file: {error}"
        if not os.access(path, os.R_OK):
            is_there = pathlib.Path(path).exists()
            why = "this user cannot read it" if is_there else "No such file or directory"
            reason = f"{path}: {why}"
    return errors.ConfigurationError(option=f"[{names.DEFAULT}] {name}", reason=reason)
